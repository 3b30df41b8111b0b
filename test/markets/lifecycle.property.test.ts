/**
 * Random market lives while users trade, split and merge in them, over several kills: each response matches a plain state
 * machine, the exchange balances after each step, and at the end no resolved market owes a share.
 */
import { expect, test } from "vitest";
import { expectBalanced } from "../support/checks.ts";
import type { Client, MarketJson, PositionJson } from "../support/client.ts";
import { ask, asOperator, NEXT_STATUS, newMarket, OPERATORS, type Status } from "../support/markets.ts";
import { Random } from "../support/random.ts";
import { alone, BUY, SELL, terms } from "../support/trading.ts";
import type { TestMarket, World } from "../support/world.ts";

const STEPS = 250;
const USERS = 4;
const MOST_MARKETS = 8;
const KILL_CHANCE = 0.01;
/** The codes that trading in an open market may return. */
const FAIR = [0, 42201, 42202, 42900, 42901];

interface Known extends TestMarket {
  status: Status;
  /** What it was resolved or voided with. */
  payouts: readonly number[] | null;
}

class Lives {
  readonly markets: Known[] = [];
  readonly seen = new Set<string>();
  operator!: Client;
  private users: Client[] = [];
  private readonly world: World;
  private readonly random: Random;

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
  }

  async connect(): Promise<void> {
    this.operator = await asOperator(this.world);
    this.users = Array.from({ length: USERS }, (_, i) => this.world.client(`user${i}`));
  }

  async step(): Promise<void> {
    const { random, markets } = this;
    const kind = random.next();
    if (random.chance(KILL_CHANCE)) await this.restart();
    else if (markets.length < 2 || (kind < 0.06 && this.living().length < MOST_MARKETS)) await this.make();
    else if (kind < 0.2) await this.lead(random.pick(markets));
    else if (kind < 0.23) await this.decide(random.pick(markets));
    else if (kind < 0.45) await this.changeSets(random.pick(markets));
    else await this.place(random.pick(this.living()));
  }

  /** Most of what happens is in these. */
  private living(): Known[] {
    const found = this.markets.filter(({ status }) => ["proposed", "open", "halted", "closed"].includes(status));
    return found.length > 0 ? found : this.markets;
  }

  private async restart(): Promise<void> {
    this.operator.close();
    await this.world.server.kill();
    this.world.server = await this.world.server.restart();
    await this.connect();
    this.seen.add("kill");
  }

  private async make(isProposal = this.random.chance(0.4)): Promise<void> {
    const { random } = this;
    const names = Array.from({ length: random.integer(2, 4) }, (_, i) => `Outcome ${i}`);
    const body = newMarket({ outcomes: names });
    const answer = isProposal
      ? await random.pick(this.users).request<MarketJson>("POST", "/markets/proposals", { body })
      : await this.operator.request<MarketJson>("POST", "/admin/markets", { body });
    // So many a day, and so many that wait.
    if (isProposal && answer.code === 42900) return;
    expect(answer.code).toBe(0);
    const { id, slug, outcomes, status } = answer.data;
    expect(status).toBe(isProposal ? "proposed" : "open");
    this.markets.push({ id, slug, outcomes: outcomes.map((each) => each.id), status: status as Status, payouts: null });
  }

  /** @param step by chance ends are rarer: what has ended is of little use */
  private async lead(
    market: Known,
    step = this.random.pick(["open", "open", "halt", "resume", "resume", "close", "resolve", "void"]),
  ): Promise<void> {
    const to = NEXT_STATUS[step]![market.status];
    const payouts = step === "resolve" ? this.payouts(market) : null;
    const answer = await ask(this.operator, market, step, payouts === null ? {} : { payouts });
    this.seen.add(`${step} ${answer.code}`);
    expect([step, market.status, answer.code]).toEqual([step, market.status, to === undefined ? 40900 : 0]);
    if (to === undefined) return;
    market.status = to;
    const { length } = market.outcomes;
    if (to === "resolved") market.payouts = payouts;
    else if (to === "voided") {
      const even = Math.floor(10_000 / length);
      market.payouts = market.outcomes.map((_, i) => even + (i < 10_000 % length ? 1 : 0));
    }
  }

  private async decide(market: Known): Promise<void> {
    const decision = this.random.pick(["approve", "refuse", "refuse"] as const);
    const { code } = await this.operator.request("POST", `/admin/proposals/${market.id}/${decision}`, { body: {} });
    if (market.status === "proposed") {
      expect(code).toBe(0);
      market.status = decision === "approve" ? "open" : "rejected";
    } else expect([40900, 4040]).toContain(code);
    this.seen.add(`${decision} ${code}`);
  }

  private payouts({ outcomes }: Known): number[] {
    const { random } = this;
    const payouts = outcomes.map(() => 0);
    if (random.chance(0.5)) payouts[random.integer(0, outcomes.length - 1)] = 10_000;
    else
      for (let left = 10_000, part = 0; left > 0; left -= part) {
        part = random.integer(1, left);
        payouts[random.integer(0, outcomes.length - 1)]! += part;
      }
    return payouts;
  }

  private async changeSets(market: Known, name = this.random.pick(["split", "split", "merge"])): Promise<void> {
    const { random } = this;
    const body = { market_id: market.id, quantity: random.integer(1, 12) };
    const { code } = await random.pick(this.users).request("POST", `/wallet/${name}`, { body });
    const allowed = name === "split" ? ["open", "halted"] : ["open", "halted", "closed"];
    if (allowed.includes(market.status)) expect(FAIR).toContain(code);
    else expect([name, market.status, code]).toEqual([name, market.status, 42203]);
    this.seen.add(`${name} ${code}`);
  }

  private async place(market: Known): Promise<void> {
    const { random } = this;
    const even = Math.floor(10_000 / market.outcomes.length);
    const outcome = random.integer(0, market.outcomes.length - 1);
    const price = even + 10 * random.integer(-6, 6);
    const order = terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 8));
    const { code } = await random.pick(this.users).request("POST", "/orders", { body: order });
    if (market.status === "open") expect(FAIR).toContain(code);
    else expect([market.status, code]).toEqual([market.status, 42203]);
    this.seen.add(`place ${code}`);
  }

  /** One more market's life, with every rejection that chance may have left out. */
  async wholeLife(): Promise<void> {
    await this.make(false);
    const market = this.markets.at(-1)!;
    await this.changeSets(market, "split");
    await this.lead(market, "halt");
    await this.place(market);
    await this.lead(market, "resume");
    await this.place(market);
    await this.lead(market, "close");
    await this.lead(market, "close");
    await this.changeSets(market, "split");
    await this.lead(market, "resolve");
  }

  /** Every market is what the count says; none that has ended has a share or an order left. */
  async compare(): Promise<void> {
    for (const { id, status, payouts } of this.markets) {
      const shown = await this.operator.get<MarketJson>(`/markets/${id}`);
      expect([id, shown.status, shown.resolution?.payouts ?? null]).toEqual([id, status, payouts]);
      if (payouts !== null) expect(shown.open_interest).toBe(0);
    }
    const ended = new Set(this.markets.filter(({ payouts }) => payouts !== null).map(({ id }) => id));
    for (const user of this.users) {
      const positions = await user.all<PositionJson>("/me/positions");
      expect(positions.filter(({ market_id, quantity }) => ended.has(market_id) && quantity > 0)).toEqual([]);
    }
  }
}

test("random market lives, over kills, match a plain state machine and balance at every step", async () => {
  const random = Random.printed("lives of markets");
  await alone({ users: USERS, named: OPERATORS, markets: [] }, async (world) => {
    const lives = new Lives(world, random);
    await lives.connect();
    for (let step = 0; step < STEPS; step++) {
      await lives.step();
      await expectBalanced(lives.operator);
      if (step % 100 === 99) await lives.compare();
    }
    await lives.wholeLife();
    await lives.compare();
    lives.operator.close();
    for (const what of ["halt 0", "close 0", "close 40900", "place 0", "place 42203", "split 0", "split 42203"]) {
      expect([...lives.seen]).toContain(what);
    }
  });
});
