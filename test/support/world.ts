/**
 * A seeded exchange for tests: users of each KYC tier with money and tokens, and markets of several sizes. Each test takes
 * fresh ones, so that the tests of a file share a server but no state.
 */

import type { TermsChange } from "../../server/accounts/terms.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { Client, type MarketJson } from "./client.ts";
import { type ServerOptions, TestServer } from "./server.ts";
import { Socket } from "./socket.ts";

export const USDC = 1_000_000;
/** Tokens are issued for this URL: they stay valid after a restart, which changes the port. */
export const PUBLIC_URL = "http://exchange.test";
export const ALL_SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];

export interface UserSpec {
  readonly tier?: number;
  /** micro-USDC */
  readonly deposit?: number;
  /** The scopes of each token. */
  readonly scopes?: readonly (readonly string[])[];
  /** Without a password, the user can't sign in. */
  readonly password?: string;
  readonly role?: "user" | "operator";
  readonly terms?: TermsChange;
}

export interface WorldOptions extends Omit<ServerOptions, "seed"> {
  /** The number of tier 2 users with 10,000 USDC each. */
  readonly users?: number;
  /** Of those users. */
  readonly usersTerms?: TermsChange;
  /** More users, by name. */
  readonly named?: Readonly<Record<string, UserSpec>>;
  /** The number of outcomes of each market. */
  readonly markets?: readonly number[];
}

export interface TestMarket {
  readonly id: number;
  readonly slug: string;
  readonly outcomes: readonly number[];
}

export const tokenOf = (name: string, index = 0): string => `pm_pat_test-${name}-${index}`;

export function seedOf({ users = 2, usersTerms, named = {}, markets = [2] }: WorldOptions): Seed {
  const specs: [string, UserSpec][] = Object.entries(named);
  for (let i = 0; i < users; i++) specs.push([`user${i}`, usersTerms === undefined ? {} : { terms: usersTerms }]);
  return {
    users: specs.map(([name, { tier = 2, deposit = 10_000 * USDC, scopes = [ALL_SCOPES], password, role, terms }]) => ({
      email: `${name}@example.com`,
      ...(password === undefined ? {} : { password }),
      ...(role === undefined ? {} : { role }),
      kyc_tier: tier,
      deposit,
      ...(terms === undefined ? {} : { terms }),
      pats: scopes.map((list, i) => ({ name: `token ${i}`, scopes: [...list], token: tokenOf(name, i) })),
    })),
    events: [{ slug: "event-0", title: "Event 0" }],
    markets: markets.map((outcomes, i) => ({
      slug: `market-${i}`,
      question: `Question ${i}?`,
      outcomes: Array.from({ length: outcomes }, (_, n) => `Outcome ${n}`),
    })),
  } as Seed;
}

export class World {
  server: TestServer;
  readonly markets: readonly TestMarket[];
  private readonly clients: Client[] = [];
  private readonly freeMarkets: TestMarket[];
  private nextUser = 0;

  private constructor(server: TestServer, markets: TestMarket[]) {
    this.server = server;
    this.markets = markets;
    this.freeMarkets = [...markets];
  }

  static async start(options: WorldOptions): Promise<World> {
    const server = await TestServer.start({ ...options, seed: seedOf(options) });
    const client = new Client(server, null);
    const listed = await client.all<MarketJson>("/markets");
    client.close();
    const markets = listed
      .reverse()
      .map(({ id, slug, outcomes }) => ({ id, slug, outcomes: outcomes.map((o) => o.id) }));
    return new World(server, markets);
  }

  /** A fresh market with this number of outcomes. */
  market(outcomes = 2): TestMarket {
    const at = this.freeMarkets.findIndex((market) => market.outcomes.length === outcomes);
    if (at < 0) throw new Error(`the seed has no more markets with ${outcomes} outcomes`);
    return this.freeMarkets.splice(at, 1)[0]!;
  }

  /** A fresh tier 2 user with money. */
  user(): Client {
    return this.client(`user${this.nextUser++}`);
  }

  /** A user by name; `index` picks one of its tokens. */
  client(name: string, index = 0, sockets = 1): Client {
    return this.clientFor(tokenOf(name, index), sockets);
  }

  anonymous(): Client {
    return this.clientFor(null, 1);
  }

  socket(client: Client): Promise<Socket> {
    return Socket.open(this.server, client.token);
  }

  /** Gives the user this number of complete sets. */
  async split(client: Client, market: TestMarket, quantity: number): Promise<void> {
    await client.data("POST", "/wallet/split", { market_id: market.id, quantity });
  }

  private clientFor(token: string | null, sockets: number): Client {
    const client = new Client(this.server, token, sockets);
    this.clients.push(client);
    return client;
  }

  /** Stops the server as an operator would; fails unless it exits with 0. */
  async stop(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.server.stop();
  }
}
