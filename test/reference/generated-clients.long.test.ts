/**
 * Clients that other generators make of the served document compile under `strict`, and one of them trades. Their packages
 * are no dependencies: test/generated-client/generators has a lock file of its own.
 */
import { execFile, execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPackages } from "../../bench/support/on-demand.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type OrderJson } from "../support/client.ts";
import { temporaryFolder } from "../support/server.ts";
import { tokenOf, World } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const GENERATORS = join(ROOT, "test/generated-client/generators");
const COMPILER = join(ROOT, "node_modules/typescript-native/bin/tsc");

/** Programs that place an order: one for each generated client. */
const BOTS: Readonly<Record<string, string>> = {
  oazapfts: `import { defaults, placeOrder, getBalance } from "./client.ts";
export async function trade(base: string, token: string, outcome: number) {
  defaults.baseUrl = base;
  defaults.headers = { Authorization: "Bearer " + token };
  const placed = await placeOrder({ market_id: 1, outcome_id: outcome, side: 1, price: 4200, quantity: 3 });
  if (placed.status !== 202) throw new Error(placed.data.msg);
  const { id, status, client_order_id } = placed.data.data;
  const balance = await getBalance();
  if (balance.status !== 200) throw new Error(balance.data.msg);
  const held: number = balance.data.data.held;
  return { id, status, client_order_id, held };
}
`,
  "swagger-typescript-api": `import { Api } from "./client.ts";
export async function trade(baseUrl: string, token: string, outcome: number) {
  const baseApiParams = { headers: { Authorization: "Bearer " + token } };
  const api = new Api({ baseUrl, baseApiParams });
  const order = { market_id: 1, outcome_id: outcome, side: 1 as const, price: 4200, quantity: 3 };
  const { data: { data } } = await api.orders.placeOrder(order);
  const { data: balance } = await api.wallet.getBalance();
  const held: number = balance.data.held;
  return { id: data.id, status: data.status, client_order_id: data.client_order_id, held };
}
`,
};
type Trade = (
  base: string,
  token: string,
  outcome: number,
) => Promise<Pick<OrderJson, "id" | "status"> & { held: number }>;

let world: World;
beforeAll(async () => {
  expect(missingPackages(GENERATORS, true)).toBeNull();
  world = await World.start({ users: 2 });
}, 180_000);
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe.each(Object.entries(BOTS))("%s", (generator, bot) => {
  let folder: string;
  beforeAll(async () => {
    folder = temporaryFolder();
    const { data } = await world.anonymous().requestRoot("GET", "/openapi.json");
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(data));
    writeFileSync(join(folder, "bot.ts"), bot);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    symlinkSync(join(GENERATORS, "node_modules"), join(folder, "node_modules"));
    const args =
      generator === "oazapfts"
        ? ["openapi.json", "client.ts"]
        : ["generate", "--path", "openapi.json", "--output", folder, "--name", "client.ts"];
    execFileSync(join(folder, "node_modules/.bin", generator), args, { cwd: folder, stdio: "pipe" });
  });

  test("the generated client and a bot on it compile", async () => {
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: "es2022",
      lib: ["es2022", "dom", "dom.iterable"],
      module: "esnext",
      moduleResolution: "bundler",
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      types: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["bot.ts"] }));
    const messages = await new Promise<string>((resolve) => {
      execFile(process.execPath, [COMPILER, "-p", folder], (error, out) => resolve(error === null ? "" : out));
    });
    expect(messages).toBe("");
  });

  test("a bot on the generated client trades at first try", async () => {
    const { trade } = (await import(pathToFileURL(join(folder, "bot.ts")).href)) as { trade: Trade };
    const user = generator === "oazapfts" ? "user0" : "user1";
    const [outcome] = world.markets[0]!.outcomes;
    const traded = await trade(world.server.root + API_BASE, tokenOf(user), outcome!);
    expect(traded).toMatchObject({ status: "queued", client_order_id: null, held: 3 * 42 * 10_000 });
  });
});
