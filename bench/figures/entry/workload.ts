/**
 * The orders of the entry bench, the same for every path: of a hundred, 45 buys and 45 sells that rest, and 5 of each
 * that fill immediately. They fill against one deep order per side and market of separate users, so that a single
 * market maker can send all of them without a self-trade. Notionals are small, because a user's daily activity counts
 * resting buys.
 */
import { Side } from "../../../engine/constants.ts";
import { MICRO_PER_SHARE } from "../../../engine/limits.ts";
import { Api, dataOf, type ListedMarket } from "../../support/api.ts";
import { ClientFrames } from "../../support/client-frames.ts";
import { itemAt } from "../../support/item-at.ts";
import { randomFrom } from "../../support/random.ts";
import type { SbeOrder } from "../../support/sbe-frames.ts";
import { batchesOf, binaryOf, type Operations, operationId } from "../../support/socket-load.ts";
import { UNBOUNDED_TERMS } from "../../support/terms.ts";
import type { OrderRequest } from "../http/workload.ts";

export const MARKETS = 100;
/** Users whose orders come over HTTP; each sells in one market only. The makers, over WebSockets, sell in all. */
export const HTTP_SENDERS = 200;
const TEMPLATES = 20_000;
const MAX_QUANTITY = 10;
/** Orders rest at 20 prices per side, behind the deep orders at the best ones, and fill at those. */
const LEVELS = 20;
const DEEP_BID = LEVELS + 1;
const DEEP_ASK = DEEP_BID + 1;
const DEEP_SHARES = 100_000;
/** Owners of deep orders, each in its share of the markets. */
const OWNERS = 20;
/** Complete sets that a sender has in each market it sells in. */
const SETS = 50_000;
const HELPERS = 16;
const UUID_START = "0193465e-7a2c-7c41-9d3f-";
const UUID_END_DIGITS = 12;

interface Template {
  readonly rests: boolean;
  /** The sender over HTTP. */
  readonly sender: number;
  readonly body: Readonly<Record<string, number>>;
}

type Post = readonly [name: string, body: object];

export const tokenOf = (name: string): string => `pm_pat_entry-${name.padStart(36, "0")}`;
export const emailOf = (name: string): string => `entry-${name}@example.com`;
const slugOf = (market: number): string => `entry-${market}-market`;
/** The sender's name; "%" stands for all senders in SQL. */
export const httpSender = (sender: number | "%"): string => `http-${sender}`;
const ownerOf = (market: number): string => `owner-${market % OWNERS}`;
const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** @param makers the names of the users who send over WebSockets */
export function seedOf(makers: readonly string[]): object {
  const deposits = new Map<string, number>();
  for (const sender of indices(HTTP_SENDERS)) deposits.set(httpSender(sender), 2 * SETS * MICRO_PER_SHARE);
  for (const owner of indices(OWNERS)) {
    deposits.set(ownerOf(owner), ((2 * MARKETS) / OWNERS) * DEEP_SHARES * MICRO_PER_SHARE);
  }
  for (const maker of makers) deposits.set(maker, 2 * MARKETS * SETS * MICRO_PER_SHARE);
  return {
    users: [...deposits].map(([name, deposit]) => ({
      email: emailOf(name),
      kyc_tier: 2,
      terms: UNBOUNDED_TERMS,
      deposit,
      pats: [{ name: "bench", scopes: ["orders:write", "portfolio:read"], token: tokenOf(name) }],
    })),
    markets: indices(MARKETS).map((market) => ({
      slug: slugOf(market),
      question: `Does ${market} win?`,
      outcomes: ["Yes", "No"],
    })),
  };
}

/** The requests of the bench's users to an exchange that was started with the seed. */
export class Workload {
  private readonly api: Api;
  private readonly templates: readonly Template[];
  private namedSoFar = 0;
  /** The length of the response to an order. */
  answerBytes = 0;

  private constructor(api: Api, markets: readonly ListedMarket[]) {
    this.api = api;
    const random = randomFrom(20_241_120);
    this.templates = indices(TEMPLATES).map((i) => makeTemplate(i, markets, random));
  }

  /** Splits the senders' shares and places the deep orders. @throws ExchangeError if a request fails */
  static async prepare(root: string, makers: readonly string[]): Promise<Workload> {
    const api = new Api(root, HELPERS);
    await api.open();
    const markets = await api.markets(indices(MARKETS).map(slugOf));
    const workload = new Workload(api, markets);
    const split = (name: string, market: number, quantity: number): Post => [
      name,
      { market_id: itemAt(markets, market).id, quantity },
    ];
    await workload.post("/wallet/split", [
      ...indices(HTTP_SENDERS).map((sender) => split(httpSender(sender), sender % MARKETS, SETS)),
      ...makers.flatMap((maker) => indices(MARKETS).map((market) => split(maker, market, SETS))),
      ...indices(MARKETS).map((market) => split(ownerOf(market), market, DEEP_SHARES)),
    ]);
    await workload.post(
      "/orders",
      markets.flatMap((market, i): Post[] => [
        [ownerOf(i), bodyOf(market, Side.buy, DEEP_BID, DEEP_SHARES)],
        [ownerOf(i), bodyOf(market, Side.sell, DEEP_ASK, DEEP_SHARES)],
      ]),
    );
    return workload;
  }

  /** The orders over HTTP, in order. */
  get requests(): OrderRequest[] {
    return this.templates.map(({ sender, body }) => ({
      token: tokenOf(httpSender(sender)),
      body: JSON.stringify(body),
    }));
  }

  /** Of the first `count` orders, how many rest. */
  restingOf(count: number): number {
    const resting = (templates: readonly Template[]): number => templates.filter(({ rests }) => rests).length;
    const rounds = Math.floor(count / TEMPLATES);
    return rounds * resting(this.templates) + resting(this.templates.slice(0, count % TEMPLATES));
  }

  /** The first `count` orders, one a frame, each with a client order id that no other has, or without. */
  single(count: number, named: boolean): Operations {
    const bodies = this.bodies();
    return placements(count, (i) => {
      const order = itemAt(bodies, i % TEMPLATES);
      return named ? `{"client_order_id":"${this.nextUuid()}",${order.slice(1)}` : order;
    });
  }

  /** So many orders that are rejected, one a frame: in turn for a price out of bounds and for lack of shares. */
  rejected(count: number): Operations {
    return placements(count, (i) => {
      const wrong = i % 2 === 0 ? { price: 0 } : { side: Side.sell, quantity: MAX_QUANTITY * SETS };
      return JSON.stringify({ ...itemAt(this.templates, i % TEMPLATES).body, ...wrong });
    });
  }

  /** The first `count` orders, so many a frame. */
  batches(count: number, ordersPerFrame: number): Operations {
    return batchesOf(this.bodies(), count, ordersPerFrame);
  }

  /** The first `count` orders in binary, so many a frame, as a batch or not, with or without client order ids. */
  binary(count: number, ordersPerFrame: number, isBatch: boolean, named: boolean): Operations {
    const orders = this.templates.map(({ body }) => body as unknown as SbeOrder);
    return binaryOf(orders, count, ordersPerFrame, isBatch, () => (named ? BigInt(++this.namedSoFar) : null));
  }

  /** Cancels all orders of these users; returns their number. */
  async cancelAll(names: readonly string[]): Promise<number> {
    let ended = 0;
    await this.api.each(names.length, async (i, send) => {
      const answer = await send(this.api.bytes("DELETE", "/orders", tokenOf(itemAt(names, i))));
      ended += dataOf<{ order_ids: number[] }>("/orders", answer).order_ids.length;
    });
    return ended;
  }

  /** Whether the sums of all money balance. */
  async isSolvent(): Promise<boolean> {
    return (await this.api.get<{ balanced: boolean }>("/solvency")).balanced;
  }

  close(): void {
    this.api.close();
  }

  private async post(path: string, posts: readonly Post[]): Promise<void> {
    await this.api.each(posts.length, async (i, send) => {
      const [name, body] = itemAt(posts, i);
      const answer = await send(this.api.bytes("POST", path, tokenOf(name), body));
      dataOf(path, answer);
      this.answerBytes = JSON.stringify(answer).length;
    });
  }

  private bodies(): string[] {
    return this.templates.map(({ body }) => JSON.stringify(body));
  }

  private nextUuid(): string {
    return UUID_START + String(++this.namedSoFar).padStart(UUID_END_DIGITS, "0");
  }
}

/** @param bodyAt the JSON body of each order */
function placements(count: number, bodyAt: (index: number) => string): Operations {
  const frames = new ClientFrames();
  for (let i = 0; i < count; i++) frames.add(`{"id":${operationId(i)},"op":"order.place","data":${bodyAt(i)}}`);
  return { frames, ordersPerFrame: 1 };
}

function bodyOf(market: ListedMarket, side: number, price: number, quantity: number): Record<string, number> {
  return { market_id: market.id, outcome_id: itemAt(market.outcomes, 0).id, side, price, quantity };
}

function makeTemplate(index: number, markets: readonly ListedMarket[], random: () => number): Template {
  const upTo = (count: number): number => Math.floor(random() * count);
  const sender = upTo(HTTP_SENDERS);
  const buys = index % 2 === 0;
  const market = itemAt(markets, buys ? upTo(MARKETS) : sender % MARKETS);
  const rests = upTo(10) > 0;
  const behind = 1 + upTo(LEVELS);
  const price = buys ? (rests ? DEEP_BID - behind : DEEP_ASK) : rests ? DEEP_ASK + behind : DEEP_BID;
  return { rests, sender, body: bodyOf(market, buys ? Side.buy : Side.sell, price, 1 + upTo(MAX_QUANTITY)) };
}
