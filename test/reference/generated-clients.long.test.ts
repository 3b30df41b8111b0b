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

interface Generator {
  /** What it is called with, in the folder that has openapi.json. @param base the address of the API */
  readonly args: readonly string[];
  readonly config?: (base: string) => string;
  /** A program that places an order with the client. */
  readonly bot: string;
}

/** By the generator's command. openapi-typescript, whose client is a dependency, has a test of its own. */
const GENERATED: Readonly<Record<string, Generator>> = {
  oazapfts: {
    args: ["openapi.json", "client.ts"],
    bot: `import { defaults, placeOrder, getBalance } from "./client.ts";
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
  },
  "swagger-typescript-api": {
    args: ["generate", "--path", "openapi.json", "--output", ".", "--name", "client.ts"],
    bot: `import { Api } from "./client.ts";
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
  },
  orval: {
    args: ["--config", "orval.config.json"],
    config: (base) =>
      JSON.stringify({
        exchange: {
          input: "./openapi.json",
          output: { target: "./client.ts", client: "fetch", mode: "single", baseUrl: base },
        },
      }),
    bot: `import { getBalance, placeOrder } from "./client.ts";
export async function trade(_base: string, token: string, outcome: number) {
  const headers = { Authorization: "Bearer " + token };
  const order = { market_id: 1, outcome_id: outcome, side: 1 as const, price: 4200, quantity: 3 };
  const placed = await placeOrder(order, undefined, { headers });
  if (placed.status !== 202) throw new Error(placed.data.msg);
  const { id, status, client_order_id } = placed.data.data;
  const balance = await getBalance({ headers });
  if (balance.status !== 200) throw new Error(balance.data.msg);
  const held: number = balance.data.data.held;
  return { id, status, client_order_id, held };
}
`,
  },
  "openapi-zod-client": {
    args: ["openapi.json", "--output", "client.ts", "--with-alias"],
    bot: `import { createApiClient } from "./client.ts";
export async function trade(base: string, token: string, outcome: number) {
  const api = createApiClient(base, { axiosConfig: { headers: { Authorization: "Bearer " + token } } });
  const placed = await api.placeOrder({ market_id: 1, outcome_id: outcome, side: 1, price: 4200, quantity: 3 });
  const { id, status, client_order_id } = placed.data;
  const held: number = (await api.getBalance()).data.held;
  return { id, status, client_order_id, held };
}
`,
  },
  "openapi-ts": {
    args: ["--input", "openapi.json", "--output", "client", "--client", "@hey-api/client-fetch"],
    bot: `import { client } from "./client/client.gen.ts";
import { getBalance, placeOrder } from "./client/sdk.gen.ts";
export async function trade(baseUrl: string, token: string, outcome: number) {
  client.setConfig({ baseUrl, auth: token });
  const body = { market_id: 1, outcome_id: outcome, side: 1 as const, price: 4200, quantity: 3 };
  const { data: placed, error } = await placeOrder({ body });
  if (placed === undefined) throw new Error(error.msg);
  const { data: balance } = await getBalance({ throwOnError: true });
  const held: number = balance.data.held;
  return { id: placed.data.id, status: placed.data.status, client_order_id: placed.data.client_order_id, held };
}
`,
  },
};
type Trade = (
  base: string,
  token: string,
  outcome: number,
) => Promise<Pick<OrderJson, "id" | "status"> & { held: number }>;

let world: World;
beforeAll(async () => {
  expect(missingPackages(GENERATORS, true)).toBeNull();
  world = await World.start({ users: Object.keys(GENERATED).length });
}, 180_000);
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe.each(Object.entries(GENERATED))("%s", (generator, { args, config, bot }) => {
  let folder: string;
  beforeAll(async () => {
    folder = temporaryFolder();
    const { data } = await world.anonymous().requestRoot("GET", "/openapi.json");
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(data));
    writeFileSync(join(folder, "bot.ts"), bot);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    symlinkSync(join(GENERATORS, "node_modules"), join(folder, "node_modules"));
    if (config !== undefined) {
      writeFileSync(join(folder, `${generator}.config.json`), config(world.server.root + API_BASE));
    }
    execFileSync(join(folder, "node_modules/.bin", generator), [...args], { cwd: folder, stdio: "pipe" });
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
    const user = `user${Object.keys(GENERATED).indexOf(generator)}`;
    const [outcome] = world.markets[0]!.outcomes;
    const traded = await trade(world.server.root + API_BASE, tokenOf(user), outcome!);
    expect(traded).toMatchObject({ status: "queued", client_order_id: null, held: 3 * 42 * 10_000 });
  });
});
