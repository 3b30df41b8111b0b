/** A box whose log the stream doesn't continue gets the active box's files, from nothing or after a long absence. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";
import { type TestMarket, World } from "../support/world.ts";
import { bid, expectEqual, keyed, paired, SYNC_MS, stopBoth, TestNodes } from "./cluster.ts";
import { NO_NATS } from "./streamed-log.ts";

const said = (server: TestServer, part: string): boolean => server.log.some(({ msg }) => msg.includes(part));

describe.skipIf(NO_NATS)("a copy of the active box's files", () => {
  const nodes = TestNodes.use();

  /** An exchange that is older than its stream, under orders that go on until the returned function is called. */
  async function olderThanStream(name: string) {
    const world = await World.start({ users: 2, markets: [2] });
    const [market, before] = [world.market(), world.client("user0")];
    for (let i = 0; i < 20; i++) await bid(before, market, `before-${i}`, 1 + i);
    before.close();
    await world.server.stop();
    world.server = await world.server.restart(nodes.settings(name, { STANDBY_BOX: "a", STANDBY_ACK: "standby" }));
    onTestFinished(() => world.server.kill());
    return { world, market, load: load(world.client("user0"), market) };
  }

  function load(user: Client, market: TestMarket) {
    let [isOver, placed] = [false, 0];
    const done = (async () => {
      for (; !isOver; placed++) expect((await bid(user, market, `load-${placed}`, 1 + (placed % 50))).status).toBe(202);
    })();
    done.catch(() => {});
    return {
      placed: () => placed,
      end: () => {
        isOver = true;
        return done;
      },
    };
  }

  test("goes to a standby with an empty folder under load, and the boxes are equal", async () => {
    const { world, load } = await olderThanStream("copy-empty");
    const { server: a } = world;
    const b = await nodes.standBy("copy-empty", { STANDBY_ACK: "standby" });
    await paired(a, SYNC_MS);
    await keyed(b);
    const placed = load.placed();
    await eventually(async () => expect(load.placed()).toBeGreaterThan(placed + 5));
    await load.end();
    expect(said(b, "this box has no log, and needs a copy: getting one from the box a")).toBe(true);
    expect(said(a, "making a copy of this box's files for the box b")).toBe(true);
    await stopBoth(a, b);
    await expectEqual(a.dataDir, b.dataDir);
    for (const dataDir of [a.dataDir, b.dataDir]) {
      const folder = join(dataDir, "copy");
      expect(existsSync(folder) ? readdirSync(folder).flatMap((name) => readdirSync(join(folder, name))) : []).toEqual(
        [],
      );
    }
  });
});
