/** What a page says and does while another box takes over from the one that it is connected to. */
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { keyed, paired, TestNodes } from "../replication/cluster.ts";
import { NO_NATS } from "../replication/streamed-log.ts";
import { admin } from "../support/admin.ts";
import { Line } from "../support/line.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, PATIENTLY } from "./support/user-actions.ts";

const PAGE = "/markets/market-0";
/** What Chromium says of a server that is gone, stops, or isn't the active one. */
const GONE = [/WebSocket connection to .* failed/, /Failed to load resource: .*(503|ERR_)/];

describe.skipIf(NO_BROWSER || NO_NATS)("a page", () => {
  const openPage = useBrowser();
  const nodes = TestNodes.use();

  /** Two boxes with addresses of their own. */
  async function pair(name: string) {
    const ports = [await freePort(), await freePort()] as const;
    const [a, b] = ports.map((port, i) => ({
      STANDBY_ACK: "standby",
      STANDBY_TAKEOVER: "auto",
      STANDBY_BOX: ["a", "b"][i]!,
      STANDBY_URL: `http://127.0.0.1:${port}`,
      PORT: String(port),
    }));
    const { world } = await nodes.begin(name, a!);
    const standby = await nodes.standBy(name, b!);
    await paired(world.server);
    await keyed(standby);
    return { active: world.server, standby, ports };
  }

  test("says where the exchange goes on, and leads there", { timeout: 120_000 }, async () => {
    const { standby, ports } = await pair("moved");
    const page = await openPage({ baseURL: `http://127.0.0.1:${ports[0]}`, possible: GONE });
    await page.goto(PAGE);
    await expectLoaded(page);
    await page.getByText("Prices live").waitFor();
    expect((await admin(standby.dataDir, "standby", "promote")).code).toBe(0);
    const link = page.getByRole("link", { name: `Go on at http://127.0.0.1:${ports[1]}` });
    await link.waitFor();
    expect(await link.getAttribute("href")).toBe(`http://127.0.0.1:${ports[1]}${PAGE}`);
    await link.click();
    await expectLoaded(page);
    await page.getByText("Prices live").waitFor();
    await standby.stop();
  });

  test("behind one address goes on by itself once the other box trades", { timeout: 120_000 }, async () => {
    const { active, standby, ports } = await pair("one");
    const line = await Line.open(ports[0]);
    onTestFinished(() => line.close());
    const page = await openPage({ baseURL: `http://127.0.0.1:${line.port}`, possible: GONE });
    await page.goto(PAGE);
    await expectLoaded(page);
    await page.getByText("Prices live").waitFor();
    await active.kill();
    await page.getByText("No connection to the exchange.").waitFor();
    [, line.target] = ports;
    await expect.poll(() => page.getByText("Prices live").count(), PATIENTLY).toBe(1);
    expect(await page.getByRole("alert").count()).toBe(0);
    await standby.ready();
    await standby.stop();
  });
});
