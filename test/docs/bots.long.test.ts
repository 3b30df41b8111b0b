/** Runs every program of docs/bots.md unchanged, against one real exchange where another user makes a market. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client } from "../support/client.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { tokenOf, World } from "../support/world.ts";
import { blockUnder, codeBlocks, putFile, pythonMissing, Running } from "./code-blocks.ts";

const PAGE = "docs/bots.md";
const BUY = 1;
const SELL = 2;

/** What each program prints on success. */
const EXPECTED_OUTPUT: Readonly<Record<string, RegExp>> = {
  "quotes.mjs": /^6 quotes rest, [1-9]\d+ micro-USDC held\n$/,
  "silent.mjs": /^order \d+: canceled, cancel_after\n$/,
  "dead-man.mjs": /^order \d+: canceled, cancel_on_disconnect\n$/,
  "retries.mjs": /^sent three times: 1 order, same id\n$/,
  "retries.py": /^sent three times: 1 order\n$/,
  "order.mjs": /^taker in a direct match: 10 at 5500, fee 0, rebate 0\nfilled: 10 of 10\n$/,
  "book.mjs": /^sequence \d+: same book\n$/,
  "resume.mjs": /^nothing missed: [3-9] updates of order \d+\n$/,
  "ticket.mjs": /^connected by ticket\n$/,
  "fees.mjs": /^[1-9]\d* fills, 0 with unexpected fees\n$/,
  "fees.py": /^[1-9]\d* fills, 0 with unexpected fees; [1-9]\d* paid, [1-9]\d* rebated, micro-USDC\n$/,
  "sets.mjs": /^10 sets cost 10000000 micro-USDC and return 10000000\n$/,
  "limits.mjs":
    /^\d+ of 10000 left, reset in 60 s\none every 6 ms\n\{\n {2}route: 'PUT \/quotes\/:market_id',[^}]*\}\n$/,
  "packed.mjs": /^over REST: market 1\nover the WebSocket: code 0\n$/,
  "times.mjs": /^\d+ µs in total: matched \d+, durable \d+, sent \d+\n$/,
};

interface Program {
  readonly name: string;
  readonly code: string;
}

const programs: Program[] = codeBlocks(PAGE)
  .filter(({ language }) => language === "js" || language === "python")
  .map(({ code }) => ({ name: /^(?:\/\/|#) (\S+)$/m.exec(code)![1]!, code }));
const runnable = programs.filter(({ name }) => name !== "exchange.mjs");
const folder = temporaryFolder();

let world: World;
let quoter: Client;
beforeAll(async () => {
  world = await World.start({
    users: 1,
    named: { bot: {} },
    env: { RATE_LIMITS: '{"user": 10000, "address": 10000, "order_user": 10000, "order_address": 10000}' },
  });
  for (const { name, code } of programs) putFile(folder, name, code);
  const market = world.markets[0]!;
  const [yes] = market.outcomes;
  const other = world.user();
  quoter = other;
  const bot = world.client("bot");
  await world.split(other, market, 1_000);
  await world.split(bot, market, 100);
  const order = (side: number, price: number, quantity: number) => ({
    ...{ market_id: market.id, outcome_id: yes!, side, price, quantity },
  });
  // The bot needs a fill as a maker and seller: it sells 7.
  await bot.data("POST", "/orders", order(SELL, 4_713, 7));
  await other.data("POST", "/orders", order(BUY, 4_713, 7));
  await other.data("POST", "/orders", order(SELL, 5_500, 500));
  await other.data("POST", "/orders", order(BUY, 4_500, 500));
});
afterAll(async () => {
  await expectEndsWell(world);
});

/** Moves another user's quotes while the program runs. */
async function moveBook(program: Running): Promise<void> {
  const market = world.markets[0]!;
  let ended = false;
  void program.exited.then(() => {
    ended = true;
  });
  for (let round = 0; !ended; round++) {
    const quotes = [1, 2, 3].map((level) => {
      return {
        outcome_id: market.outcomes[0]!,
        side: BUY,
        price: 3_000 + ((round * 7) % 50) * level,
        quantity: 5 + level,
      };
    });
    await quoter.data("PUT", `/quotes/${market.id}`, { quotes });
  }
  await quoter.data("PUT", `/quotes/${market.id}`, { quotes: [] });
}

const missing = pythonMissing();
if (missing !== null) console.log(`skipping the Python programs of ${PAGE}: ${missing}`);

test("every program has an expected output", () => {
  expect(runnable.map(({ name }) => name).toSorted()).toEqual(Object.keys(EXPECTED_OUTPUT).toSorted());
});

test.each(runnable)("$name", async ({ name }) => {
  const isPython = name.endsWith(".py");
  if (isPython && missing !== null) return;
  const env = { BASE: world.server.root + API_BASE, TOKEN: tokenOf("bot") };
  const program = new Running(isPython ? "python3" : process.execPath, [name], folder, env);
  if (name === "book.mjs") await moveBook(program);
  expect(await program.finished()).toMatch(EXPECTED_OUTPUT[name]!);
});

test("the shell recipe creates an account and a token", async () => {
  const cwd = temporaryFolder();
  const server = await TestServer.start({ dataDir: join(cwd, "data") });
  const code = blockUnder(PAGE, "An account and a token", "sh").replaceAll("8080", String(server.port));
  const output = await new Running("bash", ["-euc", code], cwd).finished();
  const responses = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(responses.map(({ code: status }) => status)).toEqual([0, 0, 0, 0, 0]);
  const { token } = responses.at(-1).data;
  const response = await fetch(`${server.root}${API_BASE}/orders`, { headers: { Authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  await server.stop();
});
