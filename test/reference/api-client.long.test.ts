/** A client generated from the served document compiles and trades. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type OrderJson, type PositionJson } from "../support/client.ts";
import { temporaryFolder } from "../support/server.ts";
import { tokenOf, World } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BOT = join(ROOT, "test/generated-client/bot.ts");
const COMPILER = join(ROOT, "node_modules/typescript-native/bin/tsc");

/** The bot's result; its own types exist only once it is compiled. */
interface Outcome {
  readonly placed: OrderJson;
  readonly after: OrderJson;
  readonly positions: readonly PositionJson[];
  readonly canceled: readonly number[];
  readonly refused: readonly [number, string];
}

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 2 });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** The compiler's messages about the bot with the types generated from the document. */
async function compiled(bot: string): Promise<string> {
  const { data } = await world.anonymous().requestRoot("GET", "/openapi.json");
  const folder = temporaryFolder();
  writeFileSync(join(folder, "exchange-api.ts"), astToString(await openapiTS(JSON.stringify(data))));
  writeFileSync(join(folder, "bot.ts"), bot);
  const options = {
    strict: true,
    noEmit: true,
    noUncheckedIndexedAccess: true,
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable"],
    module: "esnext",
    moduleResolution: "bundler",
    skipLibCheck: true,
    types: [],
    paths: {
      "exchange-api": [join(folder, "exchange-api.ts")],
      "openapi-fetch": [join(ROOT, "node_modules/openapi-fetch")],
    },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["bot.ts"] }));
  return new Promise((resolve) => {
    execFile(process.execPath, [COMPILER, "-p", folder], (error, out) => resolve(error === null ? "" : out));
  });
}

test("the bot compiles", async () => {
  expect(await compiled(readFileSync(BOT, "utf8"))).toBe("");
});

test("a bot that departs from the document doesn't compile", async () => {
  const wrong = readFileSync(BOT, "utf8").replace('time_in_force: "gtc"', 'time_in_force: "for ever"');
  expect(await compiled(wrong)).toContain('"for ever"');
});

test("the bot trades", async () => {
  const { trade }: { trade: (base: string, tokens: string[]) => Promise<Outcome> } = await import(BOT);
  const outcome = await trade(world.server.root + API_BASE, [tokenOf("user0"), tokenOf("user1")]);
  const { placed, after, positions, canceled, refused } = outcome;
  expect(placed).toMatchObject({ status: "queued", filled: 0, trades: [] });
  expect(after).toMatchObject({ id: placed.id, status: "partially_filled", filled: 40 });
  expect(after.trades).toMatchObject([{ price: 4_200, quantity: 40, role: "maker", match_type: "mint" }]);
  expect(positions).toMatchObject([{ quantity: 40, cost: 16_800_000, average_price: 4_200 }]);
  expect(canceled).toEqual([placed.id]);
  expect(refused).toEqual([40000, expect.stringContaining("price")]);
});
