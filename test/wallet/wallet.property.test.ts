/**
 * Random deposits, withdrawals with every end, money of the house, orders and sets, over a kill -9. After each step the
 * books balance; at the end each user's balance is the sum of its transactions, and each withdrawal has the status that the
 * server confirmed. TEST_SEED repeats a run.
 */
import { afterEach, expect, test } from "vitest";
import { eventually, expectBalanced, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { expectAddsUp, type WithdrawalJson } from "../support/money.ts";
import { EFFORT, variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

const STEPS = 50 * EFFORT;
const USERS = ["alice", "bob", "carol"];
const EXPECTED = [0, 40900, 42201, 42202, 42900, 42901];

let world: World | null = null;
const guests = new Guests();
afterEach(async () => {
  guests.close();
  await world?.server.kill();
  world = null;
});

interface Known {
  readonly id: number;
  readonly user: number;
  readonly amount: number;
  status: string;
}

class Session {
  readonly log: string[] = [];
  readonly withdrawals: Known[] = [];
  private readonly random: Random;
  private readonly market: TestMarket;
  private readonly ids: readonly number[];
  private readonly references: [path: string, body: object][] = [];
  users: readonly Client[];
  operators: readonly Client[];

  constructor(
    random: Random,
    market: TestMarket,
    users: readonly Client[],
    ids: readonly number[],
    operators: readonly Client[],
  ) {
    this.random = random;
    this.market = market;
    this.users = users;
    this.ids = ids;
    this.operators = operators;
  }

  /** One request, or two at once. */
  async step(): Promise<void> {
    await Promise.all(Array.from({ length: this.random.integer(1, 2) }, () => this.act()));
  }

  private act(): Promise<unknown> {
    const { random } = this;
    const user = random.integer(0, USERS.length - 1);
    const kind = random.next();
    if (kind < 0.1) return this.credit(user);
    if (kind < 0.3) return this.request(user);
    if (kind < 0.5) return this.decide();
    if (kind < 0.55) return this.house();
    if (kind < 0.65)
      return this.ask(this.users[user]!, "POST", `/wallet/${random.pick(["split", "merge"])}`, {
        ...{ market_id: this.market.id, quantity: random.integer(1, 20) },
      });
    if (kind < 0.7) return this.ask(this.users[user]!, "DELETE", "/orders");
    const side = random.pick([BUY, SELL]);
    const order = terms(this.market, random.integer(0, 1), side, random.integer(40, 60) * 100, random.integer(1, 15));
    return this.ask(this.users[user]!, "POST", "/orders", order);
  }

  private async ask<T>(client: Client, method: string, path: string, body?: object): Promise<Answer<T>> {
    const answer = await client.request<T>(method, path, body === undefined ? {} : { body });
    this.log.push(`${method} ${path} ${JSON.stringify(body)}: ${answer.code} ${answer.msg}`);
    expect(EXPECTED).toContain(answer.code);
    return answer;
  }

  /** A new deposit, or a repeat of one, which must have no effect. */
  private async credit(user: number): Promise<void> {
    const { random } = this;
    const fresh = {
      user_id: this.ids[user]!,
      amount: random.integer(1, 20 * USDC),
      reference: `in ${this.log.length}.${random.next()}`,
    };
    const again = this.references.length > 0 && random.chance(0.3);
    const [path, body] = again ? random.pick(this.references) : ["/admin/deposits", fresh];
    const { code } = await this.ask(random.pick(this.operators), "POST", path as string, body as object);
    expect(code).toBe(0);
    if (!again) this.references.push([path as string, body as object]);
  }

  private async request(user: number): Promise<void> {
    const amount = this.random.integer(1, 25 * USDC);
    const { code, data } = await this.ask<WithdrawalJson>(this.users[user]!, "POST", "/wallet/withdrawals", {
      amount,
      address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    });
    if (code === 0) this.withdrawals.push({ id: data.id, user, amount, status: data.status });
  }

  /** Any end of any withdrawal: it must be rejected after a first one. */
  private async decide(): Promise<void> {
    const { random } = this;
    if (this.withdrawals.length === 0) return;
    const known = random.pick(this.withdrawals.slice(-15));
    const before = known.status;
    const operator = random.pick(this.operators);
    const kind = random.pick(["cancel", "pay", "refuse"] as const);
    const path = `/admin/withdrawals/${known.id}/${kind}`;
    const { code } =
      kind === "cancel"
        ? await this.ask(this.users[known.user]!, "DELETE", `/wallet/withdrawals/${known.id}`)
        : await this.ask(
            operator,
            "POST",
            path,
            kind === "pay" && random.chance(0.5) ? { reference: `out ${known.id}` } : {},
          );
    // A second payment with the same reference succeeds without effect.
    if (before !== "pending") expect([0, 40900]).toContain(code);
    else if (code === 0 && known.status === "pending")
      known.status = { cancel: "canceled", pay: "paid", refuse: "refused" }[kind];
  }

  private async house(): Promise<void> {
    const { random } = this;
    const path = `/admin/house/${random.pick(["deposits", "withdrawals"])}`;
    const body = { amount: random.integer(1, 2 * USDC), reference: `house ${this.log.length}.${random.next()}` };
    const { code } = await this.ask(random.pick(this.operators), "POST", path, body);
    if (code === 0) this.references.push([path, body]);
  }

  async expectKnown(): Promise<void> {
    for (const [i, user] of this.users.entries()) {
      const listed = await user.all<WithdrawalJson>("/wallet/withdrawals", 200);
      const known = this.withdrawals.filter((each) => each.user === i).toSorted((a, b) => b.id - a.id);
      expect(listed.map(({ id, amount, status }) => [id, amount, status])).toEqual(
        known.map(({ id, amount, status }) => [id, amount, status]),
      );
      const pending = known.filter(({ status }) => status === "pending").reduce((sum, { amount }) => sum + amount, 0);
      await eventually(async () => {
        const buys = (await user.all<OrderJson>("/orders?side=1", 200)).reduce(
          (sum, each) => sum + each.price * each.remaining * 100,
          0,
        );
        expect((await user.balance()).held).toBe(pending + buys);
      });
      await expectAddsUp(user);
    }
  }
}

test.each(variants([1], [2]))(
  "money in and out beside trading neither appears nor disappears, with ENGINE_THREADS=%i",
  async (threads) => {
    const random = Random.printed("money in and out");
    const person = { deposit: 60 * USDC, password: PASSWORD };
    const operator = { ...person, role: "operator" as const, deposit: 0 };
    const named = { ...Object.fromEntries(USERS.map((name) => [name, person])), chief: operator, deputy: operator };
    world = await World.start({ users: 0, named, env: { PUBLIC_URL, ENGINE_THREADS: String(threads) } });
    const on = world;
    const signIn = (name: string) => guests.signIn(on.server, `${name}@example.com`);
    const people = await Promise.all(USERS.map(signIn));
    const operators = await Promise.all(["chief", "deputy"].map(signIn));
    const clients = people.map(({ client }) => client);
    const session = new Session(
      random,
      on.market(),
      clients,
      people.map(({ user }) => user.id),
      operators.map(({ client }) => client),
    );
    try {
      for (let step = 0; step < STEPS; step++) {
        await session.step();
        await expectBalanced(on.anonymous());
        if (step !== Math.floor(STEPS / 2)) continue;
        await session.expectKnown();
        await on.server.kill();
        expectSoundDatabase(on.server.dataDir);
        on.server = await on.server.restart();
        session.users = people.map(({ accessToken }) => guests.client(on.server, accessToken));
        session.operators = operators.map(({ accessToken }) => guests.client(on.server, accessToken));
      }
      await session.expectKnown();
      expectQuiet(on.server);
      await on.stop();
      expectSoundDatabase(on.server.dataDir);
    } catch (error) {
      (error as Error).message += `\nTEST_SEED=${random.seed}, after\n${session.log.slice(-12).join("\n")}`;
      throw error;
    }
  },
);
