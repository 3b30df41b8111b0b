/**
 * The matching rules once more, as plainly as they can be said: arrays, whole scans, copies. Written from section 2 of
 * the contract and not from the matcher, which is tested against it. One instance is one market. Speaks the words that
 * clients see. Knows no slots, batches or events: it keeps every order's state and the list of matches.
 */
export type StatusWord = "open" | "partially_filled" | "filled" | "canceled" | "expired" | "rejected";
export type SideNumber = 1 | 2;
export type PreventionWord = "cancel_taker" | "cancel_maker" | "cancel_both" | "decrement";

/** The fields of a placement. `price` is the bound of a market order. */
export interface Placement {
  readonly id: number;
  readonly user: number;
  readonly outcome: number;
  readonly side: SideNumber;
  readonly price: number;
  readonly quantity: number;
  readonly type: "limit" | "market";
  readonly timeInForce: "gtc" | "gtd" | "ioc" | "fok";
  readonly prevention: PreventionWord;
  readonly postOnly: boolean;
  readonly pat: boolean;
  readonly at: number;
  /** 0 = none, as is `validUntil`. */
  readonly expiresAt: number;
  readonly validUntil: number;
  /** The order that it replaces, and its remaining quantity as the sender believes it. */
  readonly replaces?: { readonly id: number; readonly expected: number };
}

export interface ReferenceOrder {
  readonly terms: Placement;
  /** The quantity that the replaced order had lost unknown to the sender. */
  readonly missing: number;
  price: number;
  quantity: number;
  remaining: number;
  status: StatusWord;
  reason: string | null;
}

/** Ends of replacements, and beside a `validUntil`, are compared with the machine's clock before they come here. */
function isEnded({ timeInForce, expiresAt, at, replaces, validUntil }: Placement): boolean {
  return timeInForce === "gtd" && replaces === undefined && validUntil === 0 && expiresAt <= at;
}

export interface Match {
  readonly type: "direct" | "mint" | "merge";
  readonly quantity: number;
  readonly taker: number;
  /** The taker's price. */
  readonly price: number;
  readonly makers: readonly { readonly id: number; readonly price: number }[];
}

export interface Rejection {
  readonly id: number;
  readonly command: "cancel" | "amend";
  readonly reason: string | null;
}

interface Step {
  readonly type: Match["type"];
  readonly price: number;
  readonly makers: ReferenceOrder[];
}

const BUY = 1;
const isLive = (order: ReferenceOrder) => order.status === "open" || order.status === "partially_filled";

export class ReferenceBook {
  status: "open" | "halted" | "closed" = "open";
  /** Every order that was ever placed, and every match, in the order of their making. */
  readonly orders = new Map<number, ReferenceOrder>();
  readonly matches: Match[] = [];
  readonly rejections: Rejection[] = [];
  readonly outcomes: readonly number[];
  /** The resting orders, best price first and then oldest first, under `outcome:side`. */
  private readonly books = new Map<string, ReferenceOrder[]>();

  constructor(outcomes: readonly number[]) {
    this.outcomes = outcomes;
  }

  resting(outcome: number, side: SideNumber): ReferenceOrder[] {
    const key = `${outcome}:${side}`;
    if (!this.books.has(key)) this.books.set(key, []);
    return this.books.get(key)!;
  }

  place(terms: Placement): void {
    const { price, quantity } = terms;
    const missing = this.missing(terms);
    const state = { price, quantity, remaining: quantity, status: "open", reason: null } as const;
    const order: ReferenceOrder = { terms, missing, ...state };
    this.orders.set(terms.id, order);
    if (this.status === "halted") end(order, "rejected", "market_halted");
    else if (this.status === "closed") end(order, "rejected", "market_closed");
    else if (terms.replaces === undefined && terms.validUntil > 0 && terms.at > terms.validUntil)
      end(order, "rejected", "too_late");
    else if (isEnded(terms)) end(order, "expired", "expired");
    else if (terms.postOnly && this.bestStep(order) !== null) end(order, "rejected", "post_only_would_cross");
    else if (terms.timeInForce === "fok" && !this.fillable(order)) end(order, "canceled", "fok_unfillable");
    else if (quantity <= missing) end(order, "rejected", "too_late");
    else {
      if (missing > 0) reduce(order, missing);
      this.enter(order);
    }
  }

  /** A rejected replacement keeps its quantity, less what it lacked of the order before it. */
  private missing({ replaces }: Placement): number {
    if (replaces === undefined) return 0;
    const { status, quantity, missing, remaining } = this.orders.get(replaces.id)!;
    return Math.max(0, replaces.expected - (status === "rejected" ? quantity - missing : remaining));
  }

  cancel(id: number, reason: string): void {
    const order = this.orders.get(id);
    if (order === undefined || !isLive(order)) this.rejections.push({ id, command: "cancel", reason: null });
    else this.endResting(order, reason === "expired" ? "expired" : "canceled", reason);
  }

  /** `total` includes filled quantity; null keeps price or total. */
  amend(id: number, newPrice: number | null, newTotal: number | null, at: number, validUntil: number): void {
    const order = this.orders.get(id);
    const refuse = (reason: string | null) => void this.rejections.push({ id, command: "amend", reason });
    if (order === undefined || !isLive(order)) return refuse(null);
    if (validUntil > 0 && at > validUntil) return refuse("too_late");
    const { price, quantity: total } = { price: newPrice ?? order.price, quantity: newTotal ?? order.quantity };
    const keepsPriority = price === order.price && total <= order.quantity;
    if (!keepsPriority && this.status !== "open") return refuse("market_halted");
    const filled = order.quantity - order.remaining;
    const wouldCross = order.terms.postOnly && this.bestStep({ ...order, price }) !== null;
    if (!keepsPriority && total > filled && wouldCross) return refuse("post_only_would_cross");
    order.quantity = Math.max(total, filled);
    order.remaining = order.quantity - filled;
    if (order.remaining === 0) return this.endResting(order, "filled", null);
    order.price = price;
    if (keepsPriority) return;
    this.remove(order);
    this.enter(order);
  }

  halt(): void {
    if (this.status === "open") this.status = "halted";
  }

  resume(): void {
    if (this.status === "halted") this.status = "open";
  }

  close(): void {
    for (const order of this.orders.values()) if (isLive(order)) this.endResting(order, "canceled", "market_closed");
    this.status = "closed";
  }

  /** The kinds in which the resting orders alone would match: always none. */
  crossed(): string[] {
    const found: string[] = [];
    const best = (side: SideNumber) => this.outcomes.map((outcome) => this.resting(outcome, side)[0]?.price);
    const [bids, asks] = [best(1), best(2)];
    bids.forEach((bid, i) => {
      const ask = asks[i];
      if (bid !== undefined && ask !== undefined && bid >= ask) found.push(`direct ${this.outcomes[i]}`);
    });
    const sum = (prices: (number | undefined)[]) => prices.reduce<number>((total, p) => total + (p ?? Number.NaN), 0);
    if (sum(bids) >= 10_000) found.push("mint");
    if (sum(asks) <= 10_000) found.push("merge");
    return found;
  }

  /** The next match of an order: the better of the direct and the implied price; at equal price direct. */
  private bestStep(taker: ReferenceOrder): Step | null {
    const { outcome, side } = taker.terms;
    const better = (a: number, b: number) => (side === BUY ? a < b : a > b);
    const steps: Step[] = [];
    const opposite = this.resting(outcome, side === BUY ? 2 : 1)[0];
    if (opposite !== undefined) steps.push({ type: "direct", price: opposite.price, makers: [opposite] });
    const others = this.outcomes.filter((other) => other !== outcome).map((other) => this.resting(other, side)[0]);
    const makers = others.filter((order) => order !== undefined);
    if (makers.length === others.length) {
      const rest = 10_000 - makers.reduce((sum, maker) => sum + maker.price, 0);
      steps.push({ type: side === BUY ? "mint" : "merge", price: side === BUY ? Math.max(1, rest) : rest, makers });
    }
    const reached = steps.filter((step) => !better(taker.price, step.price));
    if (reached.length < 2) return reached[0] ?? null;
    return better(reached[1]!.price, reached[0]!.price) ? reached[1]! : reached[0]!;
  }

  private enter(order: ReferenceOrder): void {
    const stopped = this.match(order);
    order.status = order.remaining < order.quantity ? "partially_filled" : "open";
    if (order.remaining === 0) end(order, "filled", null);
    else if (stopped) end(order, "canceled", "self_trade");
    else if (order.terms.type === "market" || order.terms.timeInForce === "ioc")
      end(order, "canceled", "ioc_remainder");
    else {
      const queue = this.resting(order.terms.outcome, order.terms.side);
      const before = (other: ReferenceOrder) =>
        order.terms.side === BUY ? other.price < order.price : other.price > order.price;
      const place = queue.findIndex(before);
      queue.splice(place < 0 ? queue.length : place, 0, order);
    }
  }

  /** Fills `taker` as far as possible; true if self-trade prevention stops it. */
  private match(taker: ReferenceOrder): boolean {
    while (taker.remaining > 0) {
      const step = this.bestStep(taker);
      if (step === null) return false;
      const own = step.makers.filter((maker) => maker.terms.user === taker.terms.user);
      if (own.length === 0) this.fill(taker, step);
      else if (this.preventSelfTrade(taker, own)) return true;
    }
    return false;
  }

  private fill(taker: ReferenceOrder, step: Step): void {
    const quantity = Math.min(taker.remaining, ...step.makers.map((maker) => maker.remaining));
    const makers = step.makers.map((maker) => ({ id: maker.terms.id, price: maker.price }));
    this.matches.push({ type: step.type, quantity, taker: taker.terms.id, price: step.price, makers });
    taker.remaining -= quantity;
    for (const maker of step.makers) {
      maker.remaining -= quantity;
      maker.status = "partially_filled";
      if (maker.remaining === 0) this.endResting(maker, "filled", null);
    }
  }

  private preventSelfTrade(taker: ReferenceOrder, own: ReferenceOrder[]): boolean {
    const mode = taker.terms.prevention;
    if (mode === "cancel_taker") return true;
    if (mode !== "decrement") {
      for (const maker of own) this.endResting(maker, "canceled", "self_trade");
      return mode === "cancel_both";
    }
    const common = Math.min(taker.remaining, ...own.map((maker) => maker.remaining));
    for (const order of own) {
      if (order.remaining === common) this.endResting(order, "canceled", "self_trade");
      else reduce(order, common);
    }
    if (taker.remaining === common) return true;
    reduce(taker, common);
    return false;
  }

  /** True if a fill-or-kill fills: tried on a copy, where an own order ends it unless the order cancels makers. */
  private fillable(order: ReferenceOrder): boolean {
    const copy = new ReferenceBook(this.outcomes);
    for (const [key, queue] of this.books)
      copy.books.set(
        key,
        queue.map((resting) => ({ ...resting })),
      );
    const prevention = order.terms.prevention === "cancel_maker" ? "cancel_maker" : "cancel_taker";
    const trial = { ...order, terms: { ...order.terms, prevention } as const };
    return !copy.match(trial) && trial.remaining === 0;
  }

  private endResting(order: ReferenceOrder, status: StatusWord, reason: string | null): void {
    this.remove(order);
    end(order, status, reason);
  }

  private remove(order: ReferenceOrder): void {
    const queue = this.resting(order.terms.outcome, order.terms.side);
    queue.splice(queue.indexOf(order), 1);
  }
}

function end(order: ReferenceOrder, status: StatusWord, reason: string | null): void {
  order.status = status;
  order.reason = reason;
}

function reduce(order: ReferenceOrder, quantity: number): void {
  order.quantity -= quantity;
  order.remaining -= quantity;
}
