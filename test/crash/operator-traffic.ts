/**
 * Two operators at work, and a record of every response they receive. The first makes withdrawals, creates personal
 * access tokens, and takes markets with holders from creation to payout. The second credits the first one's deposits,
 * with references, and pays the withdrawals. After a crash, `expectKept` checks a restarted server against the record.
 * A request without a response may have taken effect or not. The desk resends a deposit: its reference counts once.
 */
import assert from "node:assert/strict";
import { Client, type MarketJson } from "../support/client.ts";
import { type CreatedPatJson, signIn } from "../support/identity.ts";
import type { DepositJson, WithdrawalJson } from "../support/money.ts";
import type { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import { tokenOf } from "../support/world.ts";

const EMAIL = "operator@example.com";
/** No operator may act on their own account. */
const OTHER_EMAIL = "other@example.com";
/** A session's token lives three times as long, by a clock that stands still. */
const SIGN_IN_AGAIN_MS = 300_000;
const MAX_PENDING = 5;
const MAX_TOKENS = 10;
const SETS_OF_HOLDER = 2;
const SET_PAYS = 10_000 * 100;
/** The steps of a market's life, in order. */
const STATES = ["open", "closed", "resolved"];

/** The known state of a thing: as of the last response, and the state that a pending request may have set since. */
interface Known {
  state: string;
  asked: string | null;
}

/** Complete sets of one holder: the confirmed number, and the number a pending request may have added. */
interface Sets {
  least: number;
  most: number;
}

export class Desk {
  /** Requests that received a response. */
  answered = 0;
  /** Markets whose resolution received a response. */
  settled = 0;
  retried = 0;
  private readonly random: Random;
  private readonly holders: readonly string[];
  private readonly deposits = new Map<string, { amount: number; isAnswered: boolean }>();
  private readonly withdrawals = new Map<number, Known>();
  private readonly tokens = new Map<number, Known & { readonly token: string }>();
  private readonly markets = new Map<number, Known & { readonly outcome: number; readonly sets: Sets[] }>();
  /** By e-mail. */
  private readonly sessions = new Map<string, { token: string; userId: number; since: number; server: TestServer }>();
  private client: Client | null = null;
  private other: Client | null = null;
  private holding: Client[] = [];
  private work: Promise<void> = Promise.resolve();
  private running = false;
  private names = 0;

  constructor(random: Random, holders: readonly string[]) {
    this.random = random;
    this.holders = holders;
  }

  async start(server: TestServer): Promise<void> {
    this.client = await this.signIn(server);
    this.other = await this.signIn(server, OTHER_EMAIL);
    this.holding = this.holders.map((name) => new Client(server, tokenOf(name)));
    this.running = true;
    this.work = this.loop();
    // end() awaits this loop and reports its error.
    this.work.catch(() => {});
  }

  /** Resolves when the pending request has received its response, or its connection has failed. */
  async end(): Promise<void> {
    this.running = false;
    await this.work;
    for (const client of [this.client!, this.other!, ...this.holding]) client.close();
  }

  /** Resolves once the desk has sent the resolution of a market with holders. The response may have arrived already. */
  async resolving(): Promise<void> {
    const before = this.resolutions;
    while (this.resolutions === before && this.running) await new Promise((resolve) => setImmediate(resolve));
  }
  private resolutions = 0;

  /** Resends the deposits that received no response. */
  async retry(server: TestServer): Promise<void> {
    const client = await this.signIn(server, OTHER_EMAIL);
    for (const [reference, known] of this.deposits) {
      if (known.isAnswered) continue;
      await client.data("POST", "/admin/deposits", this.depositOf(reference, known.amount));
      known.isAnswered = true;
      this.retried++;
    }
    client.close();
  }

  async expectKept(server: TestServer): Promise<void> {
    if (!this.sessions.has(EMAIL)) return;
    const client = await this.signIn(server);
    const deposits = await client.all<DepositJson>("/wallet/deposits");
    const references = new Set(deposits.map(({ reference }) => reference));
    assert.equal(references.size, deposits.length, "a reference counts once");
    for (const { reference, amount } of deposits) {
      if (!reference.startsWith("seed:"))
        assert.equal(amount, this.deposits.get(reference)?.amount, `deposit ${reference}`);
    }
    for (const [reference, { isAnswered }] of this.deposits) {
      assert(!isAnswered || references.has(reference), `deposit ${reference}`);
    }
    const withdrawals = new Map((await client.all<WithdrawalJson>("/wallet/withdrawals")).map((one) => [one.id, one]));
    for (const [id, known] of this.withdrawals) settle(known, withdrawals.get(id)?.status, `withdrawal ${id}`);
    const tokens = new Set((await client.all<{ id: number }>("/me/personal-access-tokens")).map(({ id }) => id));
    for (const [id, known] of this.tokens) settle(known, tokens.has(id) ? "there" : "gone", `token ${id}`);
    await this.expectTokens(server);
    await this.expectMarkets(server, client);
    client.close();
  }

  /** Checks the two newest tokens: each gets 200 while it exists, and 401 if it is gone. */
  private async expectTokens(server: TestServer): Promise<void> {
    for (const { state, token } of [...this.tokens.values()].slice(-2)) {
      const client = new Client(server, token);
      const { status } = await client.request("GET", "/wallet/balance");
      assert.equal(status, state === "there" ? 200 : 401);
      client.close();
    }
  }

  private async expectMarkets(server: TestServer, client: Client): Promise<void> {
    for (const [id, known] of this.markets) {
      settle(known, (await client.get<MarketJson>(`/markets/${id}`)).status, `market ${id}`);
      if (known.state !== "resolved") continue;
      for (const [i, { least, most }] of known.sets.entries()) {
        const name = this.holders[i]!;
        const holder = new Client(server, tokenOf(name));
        const paid = await holder.all<{ amount: number }>(`/wallet/settlements?market_id=${id}`);
        const sets = paid.reduce((sum, { amount }) => sum + amount, 0) / SET_PAYS;
        assert(sets >= least && sets <= most, `${name} of market ${id}: ${sets} of ${least} to ${most} sets are paid`);
        holder.close();
      }
      // Nothing changes any more.
      this.markets.delete(id);
    }
  }

  private async signIn(server: TestServer, email = EMAIL): Promise<Client> {
    let session = this.sessions.get(email);
    // Each life has its own clock.
    if (session === undefined || session.server !== server || Date.now() > session.since + SIGN_IN_AGAIN_MS) {
      const { client, accessToken: token, user } = await signIn(server, email);
      client.close();
      session = { token, userId: user.id, since: Date.now(), server };
      this.sessions.set(email, session);
    }
    return new Client(server, session.token);
  }

  private async loop(): Promise<void> {
    while (this.running) {
      try {
        await this.step(this.client!);
        this.answered++;
      } catch (error) {
        // Connections fail once the process is gone. The test reports any earlier error.
        if ((error as NodeJS.ErrnoException).code === undefined || error instanceof assert.AssertionError) throw error;
        return;
      }
    }
  }

  private async step(client: Client): Promise<void> {
    const kind = this.random.next();
    if (kind < 0.3) await this.deposit(this.other!);
    else if (kind < 0.5) await this.withdraw(client);
    else if (kind < 0.65) await this.changeTokens(client);
    else await this.changeMarkets(client);
  }

  private depositOf(reference: string, amount: number): object {
    return { user_id: this.sessions.get(EMAIL)!.userId, amount, reference };
  }

  private async deposit(client: Client): Promise<void> {
    const reference = `payment ${++this.names}`;
    const known = { amount: this.random.integer(1, 1_000_000), isAnswered: false };
    this.deposits.set(reference, known);
    const body = this.depositOf(reference, known.amount);
    known.isAnswered = (await granted(client, "POST", "/admin/deposits", body)) !== null;
  }

  private async withdraw(client: Client): Promise<void> {
    const pending = [...this.withdrawals].filter(([, { state }]) => state === "pending");
    if (pending.length < MAX_PENDING && this.random.chance(0.6)) {
      const asked = await granted<WithdrawalJson>(client, "POST", "/wallet/withdrawals", {
        amount: 1_000,
        address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      });
      if (asked !== null) this.withdrawals.set(asked.id, { state: "pending", asked: null });
    } else if (pending.length > 0) {
      const [id, known] = this.random.pick(pending);
      if (this.random.chance(0.5)) await step(known, "paid", this.other!, "POST", `/admin/withdrawals/${id}/pay`, {});
      else await step(known, "canceled", client, "DELETE", `/wallet/withdrawals/${id}`);
    }
  }

  private async changeTokens(client: Client): Promise<void> {
    const path = "/me/personal-access-tokens";
    const there = [...this.tokens].filter(([, { state }]) => state === "there");
    if (there.length < MAX_TOKENS && this.random.chance(0.6)) {
      const body = { name: `token ${++this.names}`, scopes: ["portfolio:read"] };
      const made = await granted<CreatedPatJson>(client, "POST", path, body);
      if (made !== null) this.tokens.set(made.id, { state: "there", asked: null, token: made.token });
    } else if (there.length > 0) {
      const [id, known] = this.random.pick(there);
      await step(known, "gone", client, "DELETE", `${path}/${id}`);
    }
  }

  /** Moves the current market one step on: created, held by all, closed, resolved. */
  private async changeMarkets(client: Client): Promise<void> {
    const found = [...this.markets].find(([, { state }]) => state !== "resolved");
    if (found === undefined) {
      const body = { question: `Question ${++this.names} of the desk?`, outcomes: ["Yes", "No"] };
      const made = await granted<MarketJson>(client, "POST", "/admin/markets", body);
      if (made === null) return;
      const sets = this.holders.map(() => ({ least: 0, most: 0 }));
      this.markets.set(made.id, { state: "open", asked: null, outcome: this.random.pick(made.outcomes).id, sets });
      return;
    }
    const [id, known] = found;
    if (known.state === "open") {
      const body = { market_id: id, quantity: SETS_OF_HOLDER };
      const split = async (holder: Client, sets: Sets): Promise<void> => {
        sets.most += SETS_OF_HOLDER;
        const { code } = await holder.request("POST", "/wallet/split", { body });
        if (code === 0) sets.least += SETS_OF_HOLDER;
        else sets.most -= SETS_OF_HOLDER;
      };
      await Promise.all(this.holding.map((holder, i) => split(holder, known.sets[i]!)));
      await step(known, "closed", client, "POST", `/admin/markets/${id}/close`, {});
    } else {
      const body = { outcome_id: known.outcome };
      this.resolutions++;
      if (await step(known, "resolved", client, "POST", `/admin/markets/${id}/resolve`, body)) this.settled++;
    }
  }
}

/** Returns the data of a success, or null if the server rejects the request. */
async function granted<T>(client: Client, method: string, path: string, body?: object): Promise<T | null> {
  const { code, data } = await client.request<T>(method, path, body === undefined ? {} : { body });
  return code === 0 ? data : null;
}

async function step(
  known: Known,
  state: string,
  client: Client,
  method: string,
  path: string,
  body?: object,
): Promise<boolean> {
  known.asked = state;
  // A removal's data is null.
  const isGranted = (await client.request(method, path, body === undefined ? {} : { body })).code === 0;
  if (isGranted) known.state = state;
  known.asked = null;
  return isGranted;
}

/** Checks that the found state is the known one or the one requested since, and records it as known. */
function settle(known: Known, found: string | undefined, what: string): void {
  assert(found !== undefined && [known.state, known.asked].includes(found), `${what}: ${found}, not ${known.state}`);
  if (STATES.includes(found)) assert(STATES.indexOf(found) >= STATES.indexOf(known.state), what);
  known.state = found;
  known.asked = null;
}
