/**
 * Compares the venue's REST state of an account with a bot's own books: live orders, balance, positions, and every
 * finished order, fill and transaction since the last comparison. Any difference throws.
 */
import { isDeepStrictEqual } from "node:util";
import type { BalanceJson, OrderJson, OwnFillJson, PositionJson, TransactionJson } from "../../support/client.ts";
import type { Random } from "../../support/random.ts";
import type { TestMarket } from "../../support/world.ts";
import { type Books, expectThat, withoutTrades } from "./books.ts";
import type { Link } from "./link.ts";

/** Reads that other users may disturb before the audit pauses them. */
const DISTURBED_READINGS = 3;
const SINGLE_ORDERS = 3;
const DAY_MS = 86_400_000;

export interface AuditOptions {
  readonly market: TestMarket;
  readonly random: Random;
  /** Pauses or resumes the other users. */
  readonly pause: (still: boolean) => Promise<void>;
  readonly count: (what: string) => void;
}

const NOTHING = { orderId: 0, fillId: 0, transactionId: 0 };

export class Audit {
  private readonly books: Books;
  private readonly options: AuditOptions;
  /** Everything up to these ids is compared and final. */
  private checked = NOTHING;
  /** The sums of the compared transactions, by type. */
  private sums = new Map<string, number>();

  constructor(books: Books, options: AuditOptions) {
    this.books = books;
    this.options = options;
  }

  /** @throws Lost */
  async compareState(link: Link, withLimits: boolean): Promise<void> {
    const { books, options } = this;
    await this.undisturbed("state", link, async () => {
      const [orders, balance, positions, limits] = await Promise.all([
        link.list<OrderJson>("/orders", undefined, options.random.pick([7, 50, 200])),
        link.get<BalanceJson>("/wallet/balance"),
        link.list<PositionJson>("/me/positions"),
        withLimits ? link.get<{ daily_activity: { used: number } }>("/me/limits") : null,
      ]);
      return () => {
        const own = [...books.live.values()].sort((a, b) => b.id - a.id);
        const { total, held } = books;
        const differences = [
          difference("orders", orders.map(withoutTrades), own),
          difference("balance", balance, { available: total - held, held, total }),
        ];
        for (const outcome of options.market.outcomes) {
          const found = positions.find(({ outcome_id }) => outcome_id === outcome);
          const seen = { quantity: found?.quantity ?? 0, held: found?.held ?? 0 };
          const expected = { quantity: books.shares(outcome), held: books.heldShares(outcome) };
          differences.push(difference(`position in ${outcome}`, seen, expected));
        }
        if (limits !== null)
          differences.push(difference("activity", limits.daily_activity.used, books.activity(startOfDay())));
        return differences.flat();
      };
    });
  }

  /** Compares finished orders, fills and transactions since the last comparison. @throws Lost */
  async compareHistory(link: Link): Promise<void> {
    const { books, checked } = this;
    await this.undisturbed("history", link, async () => {
      const [fills, orders, transactions] = await Promise.all([
        link.list<OwnFillJson>("/me/fills", ({ id }) => id <= checked.fillId),
        link.list<OrderJson>("/orders?status=all", ({ id }) => id <= checked.orderId),
        link.list<TransactionJson>("/wallet/transactions", ({ id }) => id <= checked.transactionId),
      ]);
      const recent = [...books.orders.keys()].slice(-SINGLE_ORDERS);
      const single = await Promise.all(recent.map((id) => link.get<OrderJson>(`/orders/${id}`)));
      return () => {
        const ownFills = [...books.fills.values()].filter(({ id }) => id > checked.fillId);
        const ownOrders = [...books.orders.values()].filter(({ id }) => id > checked.orderId);
        const differences = [
          difference("fills", byId(fills), byId(ownFills)),
          difference("all orders", byId(orders.map(withoutTrades)), byId(ownOrders)),
          ...single.map((order) => {
            const own = (books.fillsOf.get(order.id) ?? []).map(({ id, fee, rebate }) => ({ id, fee, rebate }));
            const seen = order.trades.map(({ id, fee, rebate }) => ({ id, fee, rebate }));
            return difference(`trades of ${order.id}`, byId(seen), byId(own));
          }),
          this.compareTransactions(transactions),
        ].flat();
        if (differences.length === 0) this.advance(transactions);
        return differences;
      };
    });
  }

  /** Compares everything since the account's first order. @throws Lost */
  async compareWholeHistory(link: Link): Promise<void> {
    this.checked = NOTHING;
    this.sums.clear();
    await this.compareHistory(link);
  }

  /** Each balance follows from the previous one, up to the current balance; fees, rebates and sets equal the books'. */
  private compareTransactions(newest: readonly TransactionJson[]): string[] {
    const sums = this.summed(newest);
    let balance = total(this.sums);
    for (const transaction of [...newest].reverse()) {
      balance += transaction.amount;
      if (transaction.balance_after !== balance)
        return [`balance_after is not ${balance}: ${JSON.stringify(transaction)}`];
    }
    const { books } = this;
    let [fees, rebates] = [0, 0];
    for (const { fee, rebate } of books.fills.values()) {
      fees -= fee;
      rebates += rebate;
    }
    const sets = (sums.get("split") ?? 0) + (sums.get("merge") ?? 0);
    return [
      difference("the sum of the transactions", total(sums), books.total),
      difference("fees", sums.get("fee") ?? 0, fees),
      difference("rebates", sums.get("rebate") ?? 0, rebates),
      difference("sets", 0 - sets, books.setsCost),
    ].flat();
  }

  private summed(newest: readonly TransactionJson[]): Map<string, number> {
    const sums = new Map(this.sums);
    for (const { type, amount } of newest) sums.set(type, (sums.get(type) ?? 0) + amount);
    return sums;
  }

  private advance(newest: readonly TransactionJson[]): void {
    const { books } = this;
    this.sums = this.summed(newest);
    this.checked = {
      orderId: Math.min(books.lastOrderId, ...[...books.live.keys()].map((id) => id - 1)),
      fillId: books.lastFillId,
      transactionId: newest[0]?.id ?? this.checked.transactionId,
    };
  }

  /**
   * Reads between two pings, and retries if an order.updated arrives in between, so that the state and the books are of the
   * same moment. `read` returns a function that finds the differences.
   */
  private async undisturbed(what: string, link: Link, read: () => Promise<() => string[]>): Promise<void> {
    const { pause, count } = this.options;
    let isStill = false;
    try {
      for (let reading = 1; ; reading++) {
        if (reading > DISTURBED_READINGS && !isStill) {
          isStill = true;
          await pause(true);
        }
        await link.heard();
        const before = link.sequence;
        const compare = await read();
        await link.heard();
        if (link.sequence === before) {
          const differences = compare();
          expectThat(differences.length === 0, `${what} as of ${before}`, ...differences);
          count(`${what}: equal`);
          return;
        }
        count(`${what}: retried`);
      }
    } finally {
      if (isStill) await pause(false);
    }
  }
}

/** Of the present UTC day, ms. */
const startOfDay = (): number => Math.floor(Date.now() / DAY_MS) * DAY_MS;
const byId = <T extends { readonly id: number }>(list: readonly T[]): T[] => [...list].sort((a, b) => a.id - b.id);

function total(sums: ReadonlyMap<string, number>): number {
  return [...sums.values()].reduce((sum, amount) => sum + amount, 0);
}

/** Returns nothing or one line; of lists, only the differences. */
function difference(what: string, seen: unknown, own: unknown): string[] {
  if (isDeepStrictEqual(seen, own)) return [];
  if (!Array.isArray(seen) || !Array.isArray(own))
    return [`${what}: REST ${JSON.stringify(seen)} own ${JSON.stringify(own)}`];
  const only = (list: unknown[], other: unknown[]) => {
    const there = new Set(other.map((item) => JSON.stringify(item)));
    return list.map((item) => JSON.stringify(item)).filter((item) => !there.has(item));
  };
  const [inRest, inBooks] = [only(seen, own), only(own, seen)];
  return [
    `${what} (${seen.length}, own ${own.length}): only REST\n  ${inRest.join("\n  ")}\nonly own\n  ${inBooks.join("\n  ")}`,
  ];
}
