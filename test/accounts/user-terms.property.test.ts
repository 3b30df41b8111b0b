/**
 * Random trading while an operator changes the terms of the traders: each fill has the fee and the rebate of the terms
 * at the arrival of its order, by a plain reference model, and all views of the money agree. TEST_SEED repeats a run.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAKER_REBATE_BPS, MAX_OWN_RATE_BPS, PAT_REBATE_BPS, TRADING_FEE_BPS } from "../../engine/limits.ts";
import type { UserTerms } from "../../engine/log/user-terms.ts";
import { MAX_OWN_REBATE_BPS } from "../../server/accounts/limits.ts";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { OPERATOR, type OperatorUserJson, operatorOf, setTerms, userNamed } from "../support/operator.ts";
import { EFFORT, variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, USDC, World } from "../support/world.ts";
import { expectOneStory, FILLS, type FillRow } from "./fill-rows.ts";

const feeOn = (n: number, bps: number): number => Number((BigInt(n) * BigInt(bps) + 9_999n) / 10_000n);
const rebateOn = (n: number, bps: number): number => Number((BigInt(n) * BigInt(bps)) / 10_000n);
type Rates = Pick<UserTerms, "tradingFee" | "makerRebate" | "patRebate">;
const USUAL: Rates = { tradingFee: null, makerRebate: null, patRebate: null };

/**
 * Returns the expected fee and rebate of a match's fills. Rebates come out of the match's fees, in the order of the
 * fills.
 */
function expected(rows: readonly FillRow[], ratesOf: (user: number) => Rates): [fee: number, rebate: number][] {
  const fees = rows.map(({ price, quantity, side, user_id }) => {
    return side === SELL ? feeOn(price * quantity * 100, ratesOf(user_id).tradingFee ?? 150) : 0;
  });
  let left = fees.reduce((sum, fee) => sum + fee, 0);
  return rows.map(({ price, quantity, role, pat, user_id }, i) => {
    const { patRebate, makerRebate } = ratesOf(user_id);
    const bps = pat === 1 ? (patRebate ?? 10) : (makerRebate ?? 5);
    const rebate = role === 0 ? Math.min(left, rebateOn(price * quantity * 100, bps)) : 0;
    left -= rebate;
    return [fees[i]!, rebate];
  });
}

/** The traders of the first test and of the second; each test has its own markets, too. */
const STEADY = ["ann", "bob", "cem", "dia"];
const BUSY = ["eve", "fay", "gus", "hal"];
const STEADY_MARKETS = [2, 3, 2];
const BUSY_MARKETS = [2, 3, 5];
const NAMED = Object.fromEntries(
  [...STEADY, ...BUSY].map((name) => [name, { password: PASSWORD, deposit: 5_000 * USDC }]),
);
const randomRate = (random: Random, most: number): number | null =>
  random.pick([null, 0, 1, random.integer(0, most), most]);
const randomFee = (random: Random): number | null => randomRate(random, MAX_OWN_RATE_BPS);
const randomRebate = (random: Random): number | null => randomRate(random, MAX_OWN_REBATE_BPS);

describe.each(variants([1], [2]))("with ENGINE_THREADS=%i", (threads) => {
  let world: World;
  let operator: Client;
  beforeAll(async () => {
    world = await World.start({
      users: 0,
      named: { operator: OPERATOR, ...NAMED },
      markets: [...STEADY_MARKETS, ...BUSY_MARKETS],
      env: { PUBLIC_URL, ENGINE_THREADS: String(threads) },
    });
    operator = await operatorOf(world.server, "operator", 4);
  });
  afterAll(async () => {
    operator.close();
    await expectEndsWell(world);
  });

  test("each fill has the fee and the rebate of the terms at the arrival of its order", async () => {
    const random = Random.printed(`terms and trades on ${threads}`);
    const markets = world.markets.slice(0, STEADY_MARKETS.length);
    const sessions = await Promise.all(STEADY.map((name) => signIn(world.server, `${name}@example.com`)));
    const ids = sessions.map(({ user }) => user.id);
    const rates = new Map<number, Rates>(ids.map((id) => [id, USUAL]));
    /** All users' rates at the arrival of each taker order, by order. */
    const ratesAt = new Map<number, ReadonlyMap<number, Rates>>();
    const changed = async (): Promise<void> => {
      const id = random.pick(ids);
      const tradingFee = randomFee(random);
      // A rebate may not exceed the fee.
      const atMost = (rebate: number | null, usual: number): number | null =>
        (rebate ?? usual) > (tradingFee ?? TRADING_FEE_BPS) ? tradingFee : rebate;
      const makerRebate = atMost(randomRebate(random), MAKER_REBATE_BPS);
      const patRebate = atMost(randomRebate(random), PAT_REBATE_BPS);
      rates.set(id, { tradingFee, makerRebate, patRebate });
      await setTerms(operator, id, { trading_fee: tradingFee, maker_rebate: makerRebate, pat_rebate: patRebate });
    };
    const traders = [...STEADY.map((name) => world.client(name)), ...sessions.map(({ client }) => client)];
    for (const market of markets)
      for (const trader of traders.slice(0, STEADY.length)) await world.split(trader, market, 200);
    for (let step = 0; step < 250; step++) {
      if (random.chance(0.2)) await changed();
      const market: TestMarket = random.pick(markets);
      const price = Math.floor(10_000 / market.outcomes.length) + random.integer(-400, 400);
      const outcome = random.integer(0, market.outcomes.length - 1);
      const body = terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 9), {
        self_trade_prevention: random.pick(["decrement", "cancel_maker"]),
      });
      const trader = random.pick(traders);
      const { code, data } = await trader.request<OrderJson>("POST", "/orders", { body });
      expect([0, 42201, 42202]).toContain(code);
      if (code !== 0) continue;
      ratesAt.set(data.id, new Map(rates));
      await eventually(async () => expect((await trader.order(data.id)).status).not.toBe("queued"));
    }
    const rows = rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`);
    expect(rows.length).toBeGreaterThan(50);
    const takerOf = new Map(
      rows.filter(({ role }) => role === 1).map(({ match_id, order_id }) => [match_id, order_id]),
    );
    const wrong = [...takerOf.keys()].filter((match) => {
      const fills = rows.filter(({ match_id }) => match_id === match);
      const must = expected(fills, (user) => ratesAt.get(takerOf.get(match)!)!.get(user)!);
      return fills.some(({ fee, rebate }, i) => fee !== must[i]![0] || rebate !== must[i]![1]);
    });
    expect([random.seed, wrong]).toEqual([random.seed, []]);
    for (const [i, id] of ids.entries()) await expectOneStory(traders[i]!, id, rows);
    await expectBalanced(world.anonymous());
    for (const { client } of sessions) client.close();
  });

  test("while the terms change during trading, gateway and database agree, also after a kill -9", async () => {
    const random = Random.printed(`terms amid trades on ${threads}`);
    const users = await Promise.all(BUSY.map((name) => userNamed(operator, name)));
    const trading = new RandomTrading(
      random,
      world.markets.slice(STEADY_MARKETS.length),
      BUSY.map((name) => tokenOf(name)),
    );
    await trading.prepare(world.server);
    trading.start(world.server);
    const until = trading.answered + 200 * EFFORT;
    while (trading.answered < until) {
      const [user, name] = [random.pick(users), random.pick(["trading_fee", "maker_rebate", "pat_rebate"])];
      const rate = name === "trading_fee" ? randomFee(random) : randomRebate(random);
      const wanted = { ...user.terms, [name]: rate };
      const { trading_fee, maker_rebate, pat_rebate } = wanted;
      const rebate = Math.max(maker_rebate ?? MAKER_REBATE_BPS, pat_rebate ?? PAT_REBATE_BPS);
      const isRefused = rebate > (trading_fee ?? TRADING_FEE_BPS);
      const asked = await operator.request("PATCH", `/admin/users/${user.id}/terms`, { body: { [name]: rate } });
      expect([wanted, asked.code]).toEqual([wanted, isRefused ? 40000 : 0]);
      if (!isRefused) user.terms = wanted;
    }
    await trading.stop();
    const agree = async (): Promise<void> => {
      for (const { id, email } of users) {
        const client = new Client(world.server, tokenOf(email.split("@")[0]!));
        await client.data("DELETE", "/orders");
        await eventually(async () => expect((await client.balance()).held).toBe(0));
        await expectOneStory(client, id, rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`));
        client.close();
      }
    };
    await agree();
    const shown = await operator.all<OperatorUserJson>("/admin/users");
    operator.close();
    await world.server.kill();
    world.server = await world.server.restart();
    operator = await operatorOf(world.server, "operator", 4);
    await agree();
    const later = await operator.all<OperatorUserJson>("/admin/users");
    expect(later.map((user) => [user.id, user.balance, user.terms])).toEqual(
      shown.map((user) => [user.id, user.balance, user.terms]),
    );
  });
});
