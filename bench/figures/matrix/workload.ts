/**
 * The orders of the matrix bench, over any number of markets and beside any number of resting orders: of eleven
 * operations five place an order that rests, one takes from a deep order, and five cancel earlier orders, so that the
 * number of live orders stays constant. One user sends all of them over one WebSocket and needn't read its order
 * updates: because nobody else places orders, their ids are known in advance.
 */
import { Side } from "../../../engine/constants.ts";
import { MICRO_PER_SHARE } from "../../../engine/limits.ts";
import { Api, dataOf, type ListedMarket } from "../../support/api.ts";
import { ClientFrames } from "../../support/client-frames.ts";
import type { ExchangeProcess } from "../../support/exchange-process.ts";
import { itemAt } from "../../support/item-at.ts";
import { randomFrom } from "../../support/random.ts";
import { batchesOf, type Operations, operationId, SocketLoad } from "../../support/socket-load.ts";
import { UNBOUNDED_TERMS } from "../../support/terms.ts";

/** The pattern of a turn: `+` rests, `x` takes, `-` cancels. */
const PATTERN = "+-+-+-+-+-x";
export const PLACEMENTS_SHARE = 6 / PATTERN.length;
/** An order is canceled this many placements later: more than are in flight at a time. */
const KEPT = 512;
/** Orders rest at 20 prices a side, behind the deep orders at the best ones. */
const LEVELS = 20;
const DEEP_BID = LEVELS + 1;
const DEEP_ASK = DEEP_BID + 1;
const MAX_QUANTITY = 10;
/**
 * Shares of the deep orders per side, and the sender's complete sets, over all markets: within the daily activity
 * limit.
 */
const ALL_SHARES = 1_000_000;
/** The initial resting orders belong to users with at most this many each. */
const ORDERS_OF_HOLDER = 10_000;
const BATCH_ORDERS = 50;
const BATCH_WINDOW = 8;
const HELPERS = 16;
const SENDER = "sender";
const OWNER = "owner";

const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const tokenOf = (name: string): string => `pm_pat_matrix-${name.padStart(36, "0")}`;
const slugOf = (market: number): string => `matrix-${market}-market`;
const sharesIn = (markets: number): number => Math.ceil(ALL_SHARES / markets);
const holdersOf = (live: number): number => Math.ceil(live / ORDERS_OF_HOLDER);
const holderName = (holder: number): string => `holder-${holder}`;

/** How large an exchange is. */
export interface Size {
  readonly markets: number;
  /** Orders that rest while the sender sends, its own included. */
  readonly live: number;
}

export function seedOf({ markets, live }: Size): object {
  const names = [SENDER, OWNER, ...indices(holdersOf(live)).map(holderName)];
  return {
    users: names.map((name) => ({
      email: `${name}@example.com`,
      kyc_tier: 2,
      terms: UNBOUNDED_TERMS,
      deposit: 4 * Math.max(markets * sharesIn(markets), ORDERS_OF_HOLDER) * MICRO_PER_SHARE,
      pats: [{ name: "bench", scopes: ["orders:write", "portfolio:read"], token: tokenOf(name) }],
    })),
    markets: indices(markets).map((market) => ({
      slug: slugOf(market),
      question: `Does ${market} win?`,
      outcomes: ["Yes", "No"],
    })),
  };
}

function bodyOf({ id, outcomes }: ListedMarket, side: number, price: number, quantity: number): object {
  return { market_id: id, outcome_id: itemAt(outcomes, 0).id, side, price, quantity };
}

async function placeAll(url: string, name: string, bodies: readonly object[]): Promise<void> {
  if (bodies.length === 0) return;
  // All frames have the same number of orders; the rest goes in frames of one.
  const full = bodies.length - (bodies.length % BATCH_ORDERS);
  for (const [part, each] of [
    [bodies.slice(0, full), BATCH_ORDERS],
    [bodies.slice(full), 1],
  ] as const) {
    if (part.length === 0) continue;
    const socket = await SocketLoad.open(url, tokenOf(name));
    const texts = part.map((body) => JSON.stringify(body));
    const { refused } = await socket.send(batchesOf(texts, part.length, each), BATCH_WINDOW);
    socket.close();
    if (refused > 0) throw new Error(`${refused} of the orders that rest were refused`);
  }
}

export class MatrixWorkload {
  private readonly markets: readonly ListedMarket[];
  private readonly random = randomFrom(20_261_122);
  /** Ids of the sender's orders that rest, oldest first. */
  private resting: number[] = [];
  private lastOrderId: number;
  private readonly url: string;

  private constructor(url: string, markets: readonly ListedMarket[], lastOrderId: number) {
    this.url = url;
    this.markets = markets;
    this.lastOrderId = lastOrderId;
  }

  /** Splits shares, and places the deep orders and the initial resting ones. */
  static async prepare({ url }: ExchangeProcess, size: Size): Promise<MatrixWorkload> {
    const api = new Api(url, HELPERS);
    await api.open();
    const markets = await api.markets(indices(size.markets).map(slugOf));
    const shares = sharesIn(size.markets);
    const holders = holdersOf(size.live);
    const splits = [
      ...markets.flatMap(({ id }) => [SENDER, OWNER].map((name) => ({ name, market_id: id, quantity: shares }))),
      ...indices(holders).map((holder) => {
        const market_id = itemAt(markets, holder % size.markets).id;
        return { name: holderName(holder), market_id, quantity: ORDERS_OF_HOLDER };
      }),
    ];
    await api.each(splits.length, async (i, send) => {
      const { name, ...body } = itemAt(splits, i);
      dataOf("/wallet/split", await send(api.bytes("POST", "/wallet/split", tokenOf(name), body)));
    });
    const deep = markets.flatMap((market) => [
      bodyOf(market, Side.buy, DEEP_BID, shares),
      bodyOf(market, Side.sell, DEEP_ASK, shares),
    ]);
    await placeAll(url, OWNER, deep);
    const before = Math.max(0, size.live - deep.length - KEPT);
    for (const holder of indices(holders)) {
      const count = Math.min(ORDERS_OF_HOLDER, before - holder * ORDERS_OF_HOLDER);
      await placeAll(url, holderName(holder), restingOrders(holder, Math.max(0, count), markets));
    }
    let lastOrderId = 0;
    await api.each(1, async (_, send) => {
      const order = api.bytes("POST", "/orders", tokenOf(SENDER), bodyOf(itemAt(markets, 0), Side.buy, 1, 1));
      lastOrderId = dataOf<{ id: number }>("/orders", await send(order)).id;
    });
    api.close();
    const workload = new MatrixWorkload(url, markets, lastOrderId);
    await workload.send(workload.fill());
    return workload;
  }

  /** As many operations as whole patterns make of `count`. */
  operations(count: number): Operations {
    const frames = new ClientFrames();
    const patterns = Math.floor(count / PATTERN.length);
    for (let done = 0; done < patterns; done++) for (const kind of PATTERN) this.add(frames, kind);
    return { frames, ordersPerFrame: 1 };
  }

  /** Sends the operations with `window` in flight; returns the seconds. @throws Error if one is rejected */
  async send(operations: Operations, window = 64): Promise<number> {
    const socket = await SocketLoad.open(this.url, tokenOf(SENDER));
    const { seconds, refused } = await socket.send(operations, window);
    socket.close();
    if (refused > 0) throw new Error(`${refused} of ${operations.frames.count} operations were refused`);
    return seconds;
  }

  /** The sender's orders that rest at all times. */
  private fill(): Operations {
    const frames = new ClientFrames();
    for (let i = 0; i < KEPT; i++) this.add(frames, "+");
    return { frames, ordersPerFrame: 1 };
  }

  private add(frames: ClientFrames, kind: string): void {
    const id = operationId(frames.count);
    if (kind === "-") frames.add(`{"id":${id},"op":"order.cancel","data":{"id":${this.resting.shift()!}}}`);
    else frames.add(`{"id":${id},"op":"order.place","data":${JSON.stringify(this.nextOrder(kind === "+"))}}`);
  }

  private nextOrder(rests: boolean): object {
    const upTo = (count: number): number => Math.floor(this.random() * count);
    const market = itemAt(this.markets, upTo(this.markets.length));
    const orderId = ++this.lastOrderId;
    if (rests) this.resting.push(orderId);
    const buys = upTo(2) === 0;
    const behind = rests ? 1 + upTo(LEVELS) : 0;
    // A taker trades with the other side's deep order.
    const price = buys === rests ? DEEP_BID - behind : DEEP_ASK + behind;
    return bodyOf(market, buys ? Side.buy : Side.sell, price, 1 + upTo(MAX_QUANTITY));
  }
}

/** By turns a bid in any market and an ask in the holder's own. */
function restingOrders(holder: number, count: number, markets: readonly ListedMarket[]): object[] {
  return indices(count).map((i) => {
    const level = (i >> 1) % LEVELS;
    if (i % 2 === 0) return bodyOf(itemAt(markets, (holder + (i >> 1)) % markets.length), Side.buy, 1 + level, 1);
    return bodyOf(itemAt(markets, holder % markets.length), Side.sell, DEEP_ASK + 1 + level, 1);
  });
}
