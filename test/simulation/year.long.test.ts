/**
 * A year of a small exchange in a minute: 200 users, 60 markets of 2 to 5 outcomes. Each month users propose markets
 * and operators decide on them, deposits are credited, all users trade, markets are halted, resumed, closed (some by
 * their own schedule), resolved and voided, withdrawals are requested, canceled, paid and refused; in most months the
 * server is killed meanwhile. Requests without a response are retried if that is safe.
 *
 * At the end every micro-USDC is accounted for: by the exchange's own totals, by SQL only, and by the responses.
 * TEST_SEED repeats a run's choices, not the moments of its crashes.
 */
import { afterEach, expect, test } from "vitest";
import { expectBalanced, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { type Answer, Client, type MarketJson, type TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { login, PASSWORD } from "../support/identity.ts";
import { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import { PUBLIC_URL, tokenOf, USDC, World } from "../support/world.ts";

const USERS = 200;
/** The users who sign in, and so can withdraw. Each sign-in costs two hashes of a password. */
const WITH_PASSWORD = 12;
const MONTHS = 12;
const MARKETS_A_MONTH = 5;
const ORDERS_A_MONTH = 350;
const AT_ONCE = 12;

let world: World | null = null;
afterEach(async () => {
  await world?.server.kill();
  world = null;
});

test("a year of a small exchange: every micro-USDC is accounted for", { timeout: 240_000 }, async () => {
  const random = Random.printed("a year of a small exchange");
  const named = Object.fromEntries([
    ...Array.from({ length: WITH_PASSWORD }, (_, i) => [nameOf(i), { password: PASSWORD, deposit: 0 }]),
    ...Array.from({ length: USERS - WITH_PASSWORD }, (_, i) => [nameOf(WITH_PASSWORD + i), { deposit: 0 }]),
    ["operator", { password: PASSWORD, role: "operator", deposit: 0 }],
  ]);
  world = await World.start({ users: 0, named, markets: [], env: { PUBLIC_URL } });
  const year = await Year.begin(world.server, random);
  try {
    for (let month = 1; month <= MONTHS; month++) await year.month(month);
    await year.end();
  } finally {
    year.close();
  }
});

const nameOf = (user: number): string => `trader${user}`;
const SETTLED = ["resolved", "voided"];

interface Withdrawal {
  readonly id: number;
  readonly amount: number;
  readonly status: string;
}

interface Holding {
  readonly user_id: number;
  readonly outcome_id: number;
  readonly quantity: number;
  readonly market: MarketJson;
}

/** Requests that a killed server left without a response. */
type Asked<T> = Answer<T> | null;

class Year {
  private server: TestServer;
  private readonly random: Random;
  /** By user: a personal access token's client. The first ones have a session too. */
  private clients: Client[] = [];
  private sessions: Client[] = [];
  private operator: Client;
  private readonly tokens: { readonly operator: string; readonly sessions: readonly string[] };
  /** Of the users, in the order of their clients. */
  private readonly ids: readonly number[];
  private references = 0;
  /** Complete sets that a user may still have. */
  private readonly splits: { readonly user: number; readonly body: object }[] = [];
  /** The responses' figures. */
  private deposited = 0;
  private withdrawn = 0;
  private approved = 0;
  /** Actions by kind, so that a kind that never happened is noticed. */
  private readonly done: Record<string, number> = {};
  /** True while the server is being killed: failures are expected then. */
  private isCrashing = false;

  private constructor(server: TestServer, random: Random, operator: string, sessions: readonly string[]) {
    this.server = server;
    this.random = random;
    this.tokens = { operator, sessions };
    const ids = rowsOf<{ id: number }>(server.dataDir, "SELECT id FROM users WHERE role = 'user' ORDER BY id");
    this.ids = ids.map(({ id }) => id);
    this.operator = new Client(server, operator, AT_ONCE);
    this.connect();
  }

  static async begin(server: TestServer, random: Random): Promise<Year> {
    const names = [...Array.from({ length: WITH_PASSWORD }, (_, i) => nameOf(i)), "operator"];
    const answers = await Promise.all(names.map((name) => login(server, `${name}@example.com`)));
    const tokens = answers.map(({ data }) => data.access_token);
    return new Year(server, random, tokens.at(-1)!, tokens.slice(0, -1));
  }

  private connect(): void {
    this.close();
    this.operator = new Client(this.server, this.tokens.operator, AT_ONCE);
    this.clients = Array.from({ length: USERS }, (_, i) => new Client(this.server, tokenOf(nameOf(i)), 2));
    this.sessions = this.tokens.sessions.map((token) => new Client(this.server, token, 2));
  }

  close(): void {
    for (const client of [this.operator, ...this.clients, ...this.sessions]) client.close();
  }

  /** Counts an action; returns the data of a success, null for a rejection or none. */
  private note<T>(what: string, answer: Asked<T>): T | null {
    if (answer === null || answer.code !== 0) return null;
    this.done[what] = (this.done[what] ?? 0) + 1;
    return answer.data;
  }

  /** Null if the server was killed before it responded. Only rejections with these codes are expected. */
  private async ask<T>(
    client: Client,
    method: string,
    path: string,
    body: object | undefined,
    rejections: readonly number[],
  ): Promise<Asked<T>> {
    let answer: Answer<T>;
    try {
      answer = await client.request<T>(method, path, body === undefined ? {} : { body });
    } catch (error) {
      if (this.isCrashing) return null;
      throw error;
    }
    expect([0, ...rejections], `${method} ${path}: ${answer.code} ${answer.msg}`).toContain(answer.code);
    return answer;
  }

  /** As an operator, retried over a crash until there is a response: a retry may find it done. */
  private async operate<T>(path: string, body: object, rejections: readonly number[] = []): Promise<Answer<T>> {
    for (;;) {
      const answer = await this.ask<T>(this.operator, "POST", path, body, rejections);
      if (answer !== null) return answer;
      await this.restart();
    }
  }

  // ---------------------------------------------------------------- a month

  async month(number: number): Promise<void> {
    await this.propose(number);
    await this.deposit();
    if (number % 3 !== 0) {
      await this.trade(ORDERS_A_MONTH / 2, true);
      await this.restart();
    }
    await this.trade(ORDERS_A_MONTH / 2, false);
    await this.haltAndResume();
    await this.withdraw();
    await this.closeSome();
    await this.settleSome(number === MONTHS);
    await expectBalanced(this.operator);
    if (number % 4 === 0) expectSoundDatabase(this.server.dataDir);
  }

  private async restart(): Promise<void> {
    if (!this.isCrashing) return;
    await this.server.kill();
    this.server = await this.server.restart();
    world!.server = this.server;
    this.isCrashing = false;
    this.connect();
    this.done["crash"] = (this.done["crash"] ?? 0) + 1;
    await expectBalanced(this.operator);
    expectSoundDatabase(this.server.dataDir);
  }

  /** Users propose more markets than there is room for; an operator takes five. Some close by themselves before long. */
  private async propose(month: number): Promise<void> {
    const { random } = this;
    for (let i = 0; i < MARKETS_A_MONTH + 2; i++) {
      const count = random.integer(2, 5);
      const closesSoon = random.chance(0.2);
      const body = {
        question: `Will number ${i} of month ${month} be the one?`,
        description: "Whatever the official source says at the end of the month.",
        category: random.pick(["sports", "weather", "politics"]),
        outcomes: Array.from({ length: count }, (_, n) => `Answer ${n + 1}`),
        slug: `month-${month}-number-${i}`,
        ...(closesSoon ? { closes_at: Date.now() + random.integer(4_000, 12_000) } : {}),
      };
      const proposed = await this.ask<MarketJson>(random.pick(this.clients), "POST", "/markets/proposals", body, []);
      const market = this.note("proposal", proposed)!;
      expect([market.status, market.outcomes.length]).toEqual(["proposed", count]);
      const isWanted = i < MARKETS_A_MONTH;
      const decision = isWanted ? "approve" : "refuse";
      const decided = await this.operate<MarketJson>(`/admin/proposals/${market.id}/${decision}`, { note: "as usual" });
      expect(this.note(decision, decided)!.status).toBe(isWanted ? "open" : "rejected");
      if (isWanted) this.approved++;
    }
    await expectBalanced(this.operator);
  }

  private async deposit(): Promise<void> {
    const { random } = this;
    for (let i = 0; i < USERS / 4; i++) {
      const amount = random.integer(1 * USDC, 60 * USDC);
      const body = { user_id: random.pick(this.ids), amount, reference: `bank-${++this.references}` };
      const times = random.chance(0.2) ? 2 : 1;
      const found = new Set<number>();
      for (let n = 0; n < times; n++) {
        const { data } = await this.operate<{ id: number }>("/admin/deposits", body);
        found.add(data.id);
      }
      expect(found.size).toBe(1);
      this.note("deposit", { code: 0, data: null } as Answer);
      this.deposited += amount;
    }
    const other = { user_id: this.ids[0]!, amount: 61 * USDC, reference: `bank-${this.references}` };
    expect((await this.operate("/admin/deposits", other, [40900])).code).toBe(40900);
    await expectBalanced(this.operator);
  }

  /** Many concurrently; a crash happens at any moment among them. */
  private async trade(count: number, crashes: boolean): Promise<void> {
    const open = await this.markets("open");
    const holdings = open.flatMap((market) => this.holders(market.id).map((holding) => ({ ...holding, market })));
    let left = count;
    const crashAt = crashes ? this.random.integer(1, count - AT_ONCE) : -1;
    const worker = async (): Promise<void> => {
      while (left > 0 && !this.isCrashing) {
        left--;
        if (left === crashAt) {
          this.isCrashing = true;
          await this.server.kill();
          return;
        }
        await this.act(open, holdings);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** One thing that a trader does. */
  private async act(open: readonly MarketJson[], holdings: readonly Holding[]): Promise<void> {
    const { random } = this;
    const user = random.integer(0, USERS - 1);
    const client = this.clients[user]!;
    const market = random.pick(open);
    const kind = random.next();
    const quantity = random.integer(1, 8);
    // Some close by their own clock in the middle of it.
    const rejections = [42201, 42202, 42203, 42901];
    if (kind < 0.12) {
      const body = { market_id: market.id, quantity };
      const split = await this.ask(client, "POST", "/wallet/split", body, rejections);
      if (this.note("split", split) !== null) this.splits.push({ user, body });
    } else if (kind < 0.16) {
      // They may have sold some of it.
      const made = this.splits.splice(random.integer(0, this.splits.length), 1)[0];
      if (made === undefined) return;
      const merged = await this.ask(this.clients[made.user]!, "POST", "/wallet/merge", made.body, rejections);
      this.note("merge", merged);
    } else if (kind < 0.2) {
      this.note("cancel", await this.ask(client, "DELETE", `/orders?market_id=${market.id}`, undefined, []));
    } else {
      const holding = holdings.length > 0 && random.chance(0.5) ? random.pick(holdings) : null;
      const { id, outcomes } = holding?.market ?? market;
      const body = {
        market_id: id,
        outcome_id: holding?.outcome_id ?? random.pick(outcomes).id,
        side: holding === null ? 1 : 2,
        price: Math.min(9_999, Math.max(1, Math.floor(10_000 / outcomes.length) + random.integer(-800, 800))),
        quantity: holding === null ? quantity : Math.min(quantity, holding.quantity),
        type: random.chance(0.1) ? "market" : "limit",
      };
      const trader = holding === null ? client : this.clients[this.ids.indexOf(holding.user_id)]!;
      this.note("order", await this.ask(trader, "POST", "/orders", body, rejections));
    }
  }

  private async markets(status: string): Promise<MarketJson[]> {
    return this.operator.all<MarketJson>(`/markets?status=${status}`);
  }

  private async haltAndResume(): Promise<void> {
    const { random } = this;
    for (const market of (await this.markets("open")).filter(() => random.chance(0.3))) {
      const halted = await this.operate<MarketJson>(`/admin/markets/${market.id}/halt`, { note: "news" }, [40900]);
      if (this.note("halt", halted) === null) continue;
      const order = { market_id: market.id, outcome_id: market.outcomes[0]!.id, side: 1, price: 9_999, quantity: 1 };
      const refused = await this.ask(random.pick(this.clients), "POST", "/orders", order, [42203]);
      expect(refused?.code).toBe(42203);
      const before = await this.operator.get<MarketJson>(`/markets/${market.id}`);
      expect(before.volume).toBe(halted.data.volume);
      const resumed = await this.operate(`/admin/markets/${market.id}/resume`, {}, [40900]);
      this.note("resume", resumed);
    }
    await expectBalanced(this.operator);
  }

  private async withdraw(): Promise<void> {
    const { random } = this;
    for (const session of this.sessions) {
      const { available } = await session.balance();
      if (available < USDC) continue;
      const body = { amount: random.integer(1, Math.floor(available / 2)), address: `0x${"ab".repeat(20)}` };
      const asked = await this.ask<Withdrawal>(session, "POST", "/wallet/withdrawals", body, []);
      const { id } = this.note("withdrawal", asked)!;
      const fate = random.next();
      if (fate < 0.2) {
        this.note(
          "cancel of a withdrawal",
          await this.ask(session, "DELETE", `/wallet/withdrawals/${id}`, undefined, []),
        );
      } else if (fate < 0.4) {
        this.note("refusal", await this.operate(`/admin/withdrawals/${id}/refuse`, { note: "not now" }));
      } else if (fate < 0.9) {
        const reference = `out-${id}`;
        const pay = (): Promise<Answer<{ withdrawal: Withdrawal }>> => {
          return this.operate(`/admin/withdrawals/${id}/pay`, { reference });
        };
        const paid = this.note("payment", await pay())!;
        expect([paid.withdrawal.status, paid.withdrawal.amount]).toEqual(["paid", body.amount]);
        this.withdrawn += body.amount;
        // A repeat finds it done.
        expect((await pay()).data.withdrawal).toEqual(paid.withdrawal);
      }
      await expectBalanced(this.operator);
    }
  }

  private async closeSome(): Promise<void> {
    for (const { id } of (await this.markets("open")).filter(() => this.random.chance(0.5))) {
      this.note("close", await this.operate(`/admin/markets/${id}/close`, { note: "it is over" }, [40900]));
    }
    await expectBalanced(this.operator);
  }

  /** Each holder gets exactly the payout, and the house nothing. */
  private async settleSome(isAll: boolean): Promise<void> {
    const { random } = this;
    if (isAll) {
      for (const status of ["open", "halted"]) {
        for (const { id } of await this.markets(status)) await this.operate(`/admin/markets/${id}/close`, {}, [40900]);
      }
    }
    for (const market of await this.markets("closed")) {
      if (!isAll && random.chance(0.3)) continue;
      const count = market.outcomes.length;
      const before = this.balances();
      const { house } = await this.operator.solvency();
      const holders = this.holders(market.id);
      const kind = random.next();
      let payouts: readonly number[];
      if (kind < 0.2) {
        payouts = market.outcomes.map((_, i) => Math.floor(10_000 / count) + (i < 10_000 % count ? 1 : 0));
        const answer = await this.operate<{ market: MarketJson }>(`/admin/markets/${market.id}/void`, { note: "void" });
        this.note("void", answer);
        expect(answer.data.market).toMatchObject({ status: "voided", open_interest: 0, resolution: { payouts } });
      } else {
        payouts = kind < 0.8 ? winner(random.integer(0, count - 1), count) : shares(random, count);
        const body = { payouts, note: "as the source says" };
        const answer = await this.operate<{ market: MarketJson }>(`/admin/markets/${market.id}/resolve`, body);
        this.note("resolution", answer);
        expect(answer.data.market).toMatchObject({ status: "resolved", open_interest: 0, resolution: { payouts } });
      }
      const due = new Map<number, number>();
      let rest = market.open_interest * USDC;
      for (const { user_id, outcome_id, quantity } of holders) {
        const amount = quantity * payouts[market.outcomes.findIndex(({ id }) => id === outcome_id)]! * 100;
        due.set(user_id, (due.get(user_id) ?? 0) + amount);
        rest -= amount;
      }
      const after = this.balances();
      for (const [user, balance] of after) expect(balance - before.get(user)!).toBe(due.get(user) ?? 0);
      expect([rest, (await this.operator.solvency()).house]).toEqual([0, house]);
      await expectBalanced(this.operator);
    }
  }

  private balances(): Map<number, number> {
    const rows = rowsOf<{ user_id: number; balance: number }>(this.server.dataDir, "SELECT * FROM accounts");
    return new Map(rows.map(({ user_id, balance }) => [user_id, balance]));
  }

  private holders(marketId: number): Omit<Holding, "market">[] {
    const sql = `SELECT user_id, outcome_id, quantity FROM positions JOIN outcomes ON id = outcome_id
      WHERE market_id = ? AND quantity > 0`;
    return rowsOf(this.server.dataDir, sql, marketId);
  }

  // ---------------------------------------------------------------- the end

  async end(): Promise<void> {
    process.stdout.write(`the year: ${JSON.stringify(this.done)}\n`);
    const kinds = ["proposal", "approve", "refuse", "deposit", "order", "split", "merge", "cancel", "halt", "resume"];
    const ends = ["close", "resolution", "void", "withdrawal", "payment", "refusal", "cancel of a withdrawal", "crash"];
    for (const kind of [...kinds, ...ends])
      expect([kind, this.done[kind] ?? 0]).toEqual([kind, expect.toSatisfy((n: number) => n > 0)]);
    expect(this.approved).toBe(MONTHS * MARKETS_A_MONTH);

    const { deposits, withdrawals, users_total, collateral, house } = await this.operator.solvency();
    expect([deposits, withdrawals]).toEqual([this.deposited, this.withdrawn]);
    expect(collateral).toBe(0);
    expect(deposits - withdrawals).toBe(users_total + collateral + house);

    // Each user's transactions in the API lead to the balance, one by one.
    let sum = 0;
    for (const client of this.clients) {
      const transactions = (await client.all<TransactionJson>("/wallet/transactions")).reverse();
      let balance = 0;
      for (const { amount, balance_after } of transactions) {
        balance += amount;
        expect(balance_after).toBe(balance);
      }
      expect((await client.balance()).total).toBe(balance);
      sum += balance;
    }
    expect(sum).toBe(users_total);

    // And by SQL, independently of the program.
    const { dataDir } = this.server;
    const [sums] = rowsOf<Record<string, number>>(
      dataDir,
      `SELECT (SELECT sum(amount) FROM entries WHERE type = 'deposit') AS deposited,
         (SELECT -sum(amount) FROM entries WHERE type = 'withdrawal') AS withdrawn,
         (SELECT sum(balance) FROM accounts) AS balances,
         (SELECT sum(sets) FROM markets) AS sets,
         (SELECT count(*) FROM markets WHERE status IN (4, 5)) AS settled,
         (SELECT coalesce(sum(quantity), 0) FROM positions) AS shares,
         (SELECT count(*) FROM fills WHERE match_type = 0) AS direct, (SELECT count(*) FROM fills WHERE match_type = 1) AS mints,
         (SELECT count(*) FROM fills WHERE match_type = 2) AS merges, house FROM totals`,
    );
    expect(sums).toMatchObject({ deposited: this.deposited, withdrawn: this.withdrawn, sets: 0, shares: 0 });
    expect(sums!["settled"]).toBe(this.approved);
    for (const kind of ["direct", "mints", "merges"]) expect([kind, sums![kind]! > 0]).toEqual([kind, true]);
    expect(this.deposited - this.withdrawn).toBe(sums!["balances"]! + sums!["house"]!);
    for (const status of SETTLED) {
      for (const market of await this.markets(status))
        expect([market.open_interest, market.id]).toEqual([0, market.id]);
    }
    expectQuiet(this.server);
    await this.server.stop();
    expectSoundDatabase(dataDir);
  }
}

function winner(index: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i === index ? 10_000 : 0));
}

/** Any vector that sums to 10000. */
function shares(random: Random, count: number): number[] {
  const parts = Array.from({ length: count }, () => random.integer(0, 100));
  const sum = Math.max(
    1,
    parts.reduce((total, part) => total + part, 0),
  );
  const payouts = parts.map((part) => Math.floor((part * 10_000) / sum));
  payouts[0]! += 10_000 - payouts.reduce((total, part) => total + part, 0);
  return payouts;
}
