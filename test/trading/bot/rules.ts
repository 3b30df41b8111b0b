/**
 * Rules of the contract that span several messages. A request replaces quotes as a whole, and unchanged quotes stay.
 * With cancel_on_disconnect, a connection's orders end with it, and no others. A breach throws.
 */
import { expectThat, type OwnOrder, SELL } from "./books.ts";
import { isQuote, type Quote, type Wish } from "./requests.ts";

/** The quotes of one step, which replaces them at most once. */
export class QuoteRules {
  /** Pending: sent, without a response yet. Lost: the response never arrived. */
  private state: "none" | "in flight" | "lost" = "none";
  private overSocket = false;
  private asked: readonly Quote[] = [];
  private standing: readonly OwnOrder[] = [];
  /** Orders seen that no response has named. */
  private unnamed: OwnOrder[] = [];
  /** By replaced order: the new quotes with its remaining quantity. */
  private readonly replacements = new Map<number, readonly Quote[]>();
  /** Orders that another wish of the step may have changed. */
  private readonly touched = new Set<number>();

  /** Starts a new step: the outcome of every earlier request is known. */
  clear(): void {
    this.state = "none";
    this.unnamed = [];
    this.replacements.clear();
    this.touched.clear();
  }

  sent(asked: readonly Quote[], standing: readonly OwnOrder[], overSocket: boolean): void {
    this.state = "in flight";
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
    expectThat(isLost || (this.state === "in flight" && !this.overSocket), "every order was requested", order);
    this.unnamed.push(order);
    return isLost && this.overSocket;
  }

  /** A resting quote that the response doesn't name ends; the response entered these. */
  replaced({ id, remaining }: OwnOrder, entered: readonly Quote[]): void {
    this.replacements.set(
      id,
      entered.filter(({ quantity }) => quantity === remaining),
    );
  }

  /** An order that the user ended: no identical quote may have replaced it. */
  ended(order: OwnOrder): void {
    if (order.reason !== "user" || this.touched.has(order.id)) return;
    const same = this.replacements
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
      expectThat(isWanted || !live.has(order.id), "new quotes replace old ones", order, asked);
    }
    return true;
  }
}

/** Which orders end with which connection. */
export class Ties {
  /** Orders tied to the present connection, and orders tied to none; of others the bot can't know. */
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

  /** A response was lost or repeated: the bot can't know which connection owns the orders. */
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
    expectThat(this.enabled && !this.untied.has(id), "only orders that a connection placed end with it", id);
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

/** Money and the day's limit suffice for bots. Shares may not, an order may end first, and a gtd order may expire. */
export function mayBeRejected(wish: Wish, code: number, orders: ReadonlyMap<number, OwnOrder>): boolean {
  switch (wish.kind) {
    case "place":
      if (code === 40000) return Number(wish.body["expires_at"]) <= Date.now();
      return code === 42202 && wish.body.side === SELL;
    case "quotes":
      return code === 42202 && wish.quotes.some(({ side }) => side === SELL);
    case "amend":
      return code === 40900 || (code === 42202 && orders.get(wish.id)!.side === SELL);
    case "cancel":
      return code === 40900;
    case "cancelByClientId":
      return code === 40900;
    case "sets":
      return code === 42202 && wish.name === "merge";
    default:
      return false;
  }
}
