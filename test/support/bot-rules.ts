/**
 * Rules of the contract that span several messages. A request replaces quotes as a whole, and unchanged quotes stay.
 * With cancel_on_disconnect, a connection's orders end with it, and no others. A breach throws.
 */
import { expectThat, type OwnOrder } from "./bot-books.ts";
import { isQuote, type Quote, type Wish } from "./bot-wishes.ts";

/** Of one step, in which quotes are replaced once at most. */
export class QuoteRules {
  /** Pending: sent, without a response yet. Lost: the response never arrived. */
  private state: "none" | "under way" | "lost" = "none";
  private overSocket = false;
  private asked: readonly Quote[] = [];
  private standing: readonly OwnOrder[] = [];
  /** Orders seen that no response has named. */
  private unnamed: OwnOrder[] = [];
  /** By order that went: the quotes that came for it, of those that have the size which it had. */
  private readonly cameFor = new Map<number, readonly Quote[]>();
  /** What another wish of the step may have changed. */
  private readonly touched = new Set<number>();

  /** Starts a new step: the outcome of every earlier request is known. */
  clear(): void {
    this.state = "none";
    this.unnamed = [];
    this.cameFor.clear();
    this.touched.clear();
  }

  sent(asked: readonly Quote[], standing: readonly OwnOrder[], overSocket: boolean): void {
    this.state = "under way";
    this.overSocket = overSocket;
    this.asked = asked;
    this.standing = standing;
  }

  lost(): void {
    this.state = "lost";
  }

  answered(): void {
    this.state = "none";
  }

  touch(ids: Iterable<number>): void {
    for (const id of ids) this.touched.add(id);
  }

  /** An order without client_order_id that no response has named. Returns whether a lost connection placed it. */
  meet(order: OwnOrder): boolean {
    const isLost = this.state === "lost";
    // Over the socket, the response arrives first.
    expectThat(isLost || (this.state === "under way" && !this.overSocket), "no order that nobody asked for", order);
    this.unnamed.push(order);
    return isLost && this.overSocket;
  }

  /** A standing quote that an answer didn't name goes, for these that came. */
  replaced({ id, remaining }: OwnOrder, entered: readonly Quote[]): void {
    this.cameFor.set(
      id,
      entered.filter(({ quantity }) => quantity === remaining),
    );
  }

  /** An order that ended by the user's wish: no quote just like it may have come in its place. */
  ended(order: OwnOrder): void {
    if (order.reason !== "user" || this.touched.has(order.id)) return;
    const same = this.cameFor
      .get(order.id)
      ?.find((quote) => isQuote(order, quote) && quote.quantity === order.remaining);
    expectThat(same === undefined, "an unchanged quote keeps its order", order, same);
  }

  /** Quotes without a response took effect as a whole or not at all. Returns whether they did. */
  checkLost(live: ReadonlyMap<number, OwnOrder>): boolean {
    const { state, asked, standing, unnamed } = this;
    this.unnamed = [];
    if (state !== "lost" || unnamed.length === 0) return false;
    const left = [...unnamed];
    for (const quote of asked) {
      const at = left.findIndex((order) => isQuote(order, quote));
      if (at >= 0) left.splice(at, 1);
      else {
        const stands = standing.some((order) => isQuote(order, quote));
        expectThat(stands, "all quotes or none", quote, asked, unnamed, standing);
      }
    }
    expectThat(left.length === 0, "no quote twice", left, asked);
    for (const order of standing) {
      const isWanted = asked.some((quote) => isQuote(order, quote));
      expectThat(isWanted || !live.has(order.id), "old quotes go where new ones come", order, asked);
    }
    return true;
  }
}

/** Which orders end with which connection. */
export class Ties {
  /** What the contract ties to the present connection, and what it ties to none; of others it isn't known. */
  private readonly tied = new Set<number>();
  private readonly untied = new Set<number>();
  /** Tied to a connection that broke. */
  private readonly orphaned = new Set<number>();
  private readonly enabled: boolean;

  constructor(enabled: boolean) {
    this.enabled = enabled;
  }

  placed(id: number, overSocket: boolean): void {
    this.unsure([id]);
    (overSocket ? this.tied : this.untied).add(id);
  }

  /** An answer was lost, or came for a second time: which connection they belong to isn't known. */
  unsure(ids: Iterable<number>): void {
    for (const id of ids) {
      this.tied.delete(id);
      this.untied.delete(id);
    }
  }

  orphan(id: number): void {
    if (this.enabled) this.orphaned.add(id);
  }

  disconnected(): void {
    for (const id of this.tied) this.orphan(id);
    this.tied.clear();
  }

  ended({ id, reason }: OwnOrder): void {
    if (reason !== "cancel_on_disconnect") return;
    expectThat(this.enabled && !this.untied.has(id), "only what a connection placed ends with it", id);
  }

  /** Orders that must end. */
  get orphans(): ReadonlySet<number> {
    return this.orphaned;
  }

  buried(): void {
    this.orphaned.clear();
  }
}

/** The orders that a wish may change, quotes apart. */
export function idsTouchedBy(wish: Wish, live: ReadonlyMap<number, OwnOrder>): number[] {
  switch (wish.kind) {
    case "cancel":
    case "amend":
      return [wish.id];
    case "cancelAll":
      return [...live.keys()];
    case "batch":
      return wish.wishes.flatMap((each) => idsTouchedBy(each, live));
    default:
      return [];
  }
}
