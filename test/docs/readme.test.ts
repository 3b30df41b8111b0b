/** Runs README.md's commands and programs unchanged: the first order, the first fill, the two bots. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { eventually, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { API_BASE, Client, type MarketJson, type OrderJson, type PositionJson } from "../support/client.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { ALL_SCOPES, PUBLIC_URL, tokenOf, USDC } from "../support/world.ts";
import { blockUnder, codeBlocks, putFile, pythonMissing, Running, readDocument } from "./code-blocks.ts";

const BOT = "A bot in 30 lines";
const MAX_BOT_LINES = 30;
const BUY = 1;

let server: TestServer;
beforeAll(async () => {
  const user = (name: string) => ({
    email: `${name}@example.com`,
    kyc_tier: 2,
    deposit: 10_000 * USDC,
    pats: [{ name, scopes: ALL_SCOPES, token: tokenOf(name) }],
  });
  const market = (name: string) => ({ slug: name, question: `${name}?`, outcomes: ["Yes", "No"] });
  server = await TestServer.start({
    seed: { users: ["node", "python", "other"].map(user), markets: [market("first")] } as Seed,
    env: { PUBLIC_URL },
  });
});
afterAll(async () => {
  expectQuiet(server);
  await server.stop();
  expectSoundDatabase(server.dataDir);
});

test("first order, first fill", async () => {
  // Like `npm start` in an empty folder.
  const folder = temporaryFolder();
  const fresh = await TestServer.start({ dataDir: join(folder, "data") });
  const code = blockUnder("README.md", "First order, first fill", "sh").replaceAll("8080", String(fresh.port));
  // Its progress meter would stand in the middle of a long response.
  const quiet = 'curl() { command curl --no-progress-meter "$@"; }';
  const output = await new Running("bash", ["-euc", `${quiet}\n${code}`], folder).finished();
  const responses = [...output.matchAll(/\{"code":\d+.*?\}(?=\{"code"|\s|$)/g)].map(([text]) => JSON.parse(text));
  expect(responses.map(({ code: status }) => status)).toEqual([0, 0, 0, 0, 0]);
  expect(responses[2].data.bids).toEqual([[4200, 100]]);
  const client = new Client(fresh, tokenIn(code, folder));
  await eventually(async () => {
    const [position] = await client.all<PositionJson>("/me/positions");
    expect(position).toMatchObject({ market_id: 1, outcome_id: 1, quantity: 100, average_price: 4200 });
  });
  client.close();
  await fresh.stop();
});

/** Returns the token that the block reads from its file. */
function tokenIn(code: string, folder: string): string {
  const [, path] = /TOKEN=\$\(cat (\S+)\)/.exec(code)!;
  return readFileSync(join(folder, path!), "utf8").trim();
}

test("the bots have at most 30 lines", () => {
  const bots = codeBlocks("README.md").filter(({ heading }) => heading === BOT);
  expect(bots.map(({ language }) => language)).toEqual(["js", "python"]);
  for (const { code } of bots) expect(code.trimEnd().split("\n").length).toBeLessThanOrEqual(MAX_BOT_LINES);
});

const missing = pythonMissing();
if (missing !== null) console.log(`skipping README's bot in Python: ${missing}`);

test.each([
  ["node", "js", "bot.mjs", process.execPath],
  ["python", "python", "bot.py", "python3"],
])("the bot in %s quotes, is filled, and leaves no orders", async (name, language, file, command) => {
  if (name === "python" && missing !== null) return;
  const folder = temporaryFolder();
  putFile(folder, file, blockUnder("README.md", BOT, language));
  const env = { BASE: server.root + API_BASE, TOKEN: tokenOf(name) };
  const bot = new Running(command, [file], folder, env);
  const [owner, other] = [new Client(server, tokenOf(name)), new Client(server, tokenOf("other"))];
  const [market] = await other.all<MarketJson>("/markets");
  const [yes, no] = market!.outcomes;
  const quotes = await eventually(async () => {
    const found = await owner.all<OrderJson>("/orders");
    expect(found.filter(({ status }) => status === "open")).toHaveLength(2);
    return found;
  });
  // A bid for No at 10,000 less the bot's bid for Yes mints with it.
  const { price } = quotes.find(({ outcome_id }) => outcome_id === yes!.id)!;
  const terms = { market_id: market!.id, outcome_id: no!.id, side: BUY, price: 10_000 - price, quantity: 20 };
  await other.data("POST", "/orders", { ...terms, time_in_force: "ioc" });
  await bot.wrote(new RegExp(`^filled 20 at ${price}$`, "m"));
  bot.child.kill("SIGINT");
  await bot.exited;
  await eventually(async () => expect(await owner.all<OrderJson>("/orders")).toEqual([]));
  owner.close();
  other.close();
});

test("every link in the documents leads to a file", () => {
  const broken: string[] = [];
  for (const document of documents()) {
    for (const [, target] of readDocument(document).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      const path = join(dirname(document), target!);
      if (/^[a-z]+:/.test(target!) || existsSync(pathOf(path))) continue;
      broken.push(`${document}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test("every source file that the documents name exists", () => {
  const missing: string[] = [];
  for (const document of documents()) {
    for (const [, path] of readDocument(document).matchAll(
      /`((?:engine|server|bench|test)\/[\w./-]+\.(?:ts|tsx|js|py|json|css))`/g,
    )) {
      if (!existsSync(pathOf(path!))) missing.push(`${document}: ${path}`);
    }
  }
  expect(missing).toEqual([]);
});

test("every test that the threat model names exists", () => {
  const folders = filesIn("test").join("|");
  const named = [...readDocument("docs/threat-model.md").matchAll(/`([a-z]+\/[a-z./-]+)`/g)].map(
    ([, name]) => `test/${name}`,
  );
  const tests = named.filter((name) => new RegExp(`^(?:${folders})/`).test(name) && !/(\/|\.ts)$/.test(name));
  expect(tests.length).toBeGreaterThan(40);
  const exists = (name: string): boolean => [".test.ts", ".long.test.ts"].some((end) => existsSync(pathOf(name + end)));
  expect(tests.filter((name) => !exists(name))).toEqual([]);
});

test("every command in the documents exists", async () => {
  const { scripts } = JSON.parse(readDocument("package.json")) as { scripts: Record<string, string> };
  const help = await new Running(process.execPath, [pathOf("dist/admin.js"), "help"], pathOf("")).finished();
  const unknown: string[] = [];
  const figures = [...readdirSync(pathOf("bench/figures")), "plot.ts"];
  for (const document of ["README.md", ...filesIn("docs").filter((name) => name.endsWith(".md"))]) {
    const text = readDocument(document);
    for (const [call, script] of text.matchAll(/npm run (?:-s )?([a-z]+)/g)) {
      if (!(script! in scripts)) unknown.push(`${document}: ${call}`);
    }
    for (const [call, figure] of text.matchAll(/npm run bench -- (?!--)([a-z]+)/g)) {
      if (!figures.includes(`${figure}.ts`)) unknown.push(`${document}: ${call}`);
    }
    for (const [call, command] of text.matchAll(
      /(?:npm run admin --|dist\/admin\.js)\s+([a-z]+(?:-[a-z]+)*(?: [a-z]+)?)/g,
    )) {
      const [first] = command!.split(" ");
      if (first !== "help" && !help.includes(`\n  ${first} `) && !help.includes(`\n  ${first}\n`))
        unknown.push(`${document}: ${call}`);
    }
  }
  expect(unknown).toEqual([]);
});

function documents(): string[] {
  return ["README.md", "CHANGELOG.md", ...filesIn("docs").filter((name) => name.endsWith(".md"))];
}

function filesIn(folder: string): string[] {
  return readdirSync(pathOf(folder)).map((name) => join(folder, name));
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../../${name}`, import.meta.url));
}
