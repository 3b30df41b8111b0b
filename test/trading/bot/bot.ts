/**
 * A market maker's bot, written only from the contract. In each step it sends what its strategy wishes, over REST or
 * the WebSocket, drops its connection on request, reconnects, and finds out whether its requests took effect. It then
 * compares the venue's REST state with its own books. Any breach of the contract throws.
 */
import { isDeepStrictEqual } from "node:util";
import type { BalanceJson, OrderJson, OwnFillJson, PositionJson, TransactionJson } from "../../support/client.ts";
import { Audit, type AuditOptions } from "./audit.ts";
import { Books, BUY, expectThat, isFinal, type OwnOrder, withoutTrades } from "./books.ts";
import { type Encoding, type Envelope, Link, Lost, type PushedEvent } from "./link.ts";
import { Placements } from "./placements.ts";
import { expectAsked, isQuote, placementsIn, type Quote, restForm, socketForm, type Wish } from "./requests.ts";
import { idsTouchedBy, mayBeRejected, QuoteRules, Ties } from "./rules.ts";
import { Strategy } from "./strategy.ts";

const SETTLE_DEADLINE_MS = 10_000;
const STEPS_BETWEEN_HISTORIES = 25;
const STEPS_BETWEEN_LIMITS = 10;
const LOG_LINES = 60;

export interface BotOptions extends AuditOptions {
  readonly name: string;
  readonly token: string;
  /** micro-USDC */
  readonly deposit: number;
  readonly encoding: Encoding;
  readonly cancelOnDisconnect: boolean;
  /** The port of the running venue; waits while it is down. */
  readonly port: () => Promise<number>;
}

/** When in a step the connection breaks, and which part of it. */
export interface Fault {
  readonly part: "socket" | "requests" | "both";
  /** Null: immediately after sending. */
  readonly afterMs: number | null;
}

interface Operation {
  readonly wish: Wish;
  readonly overSocket: boolean;
  /** The quotes that rested when these quotes were sent; empty for another wish. */
  readonly standing: readonly OwnOrder[];
}

export class Bot {
  readonly log: string[] = [];
  private readonly options: BotOptions;
  private readonly books: Books;
  private readonly strategy: Strategy;
  private readonly audit: Audit;
  private link: Link | null = null;
  /** Events were missed, and the bot has not read the REST state since. */
  private gap = false;
  private steps = 0;
  /** The last order.updated of the previous connection. */
  private lastSequence = 0;
  private underWay = 0;
  /** In this step the bot used REST or lost a request. */
  private isNoisyStep = false;
  private readonly placements = new Placements();
  private lost: Operation[] = [];
  private fences = 0;
  /** Orders whose end a response promised, and amended ones by the time in the response. */
  private readonly ending = new Set<number>();
  private readonly amended = new Map<number, number>();
  private readonly quoteRules = new QuoteRules();
  private readonly ties: Ties;
  /** As of the start of the step, when nothing was uncertain. */
  private floor = { orderId: 0, fillId: 0 };

  constructor(options: BotOptions) {
    this.options = options;
    this.books = new Books(options.deposit);
    this.strategy = new Strategy(options.random, options.market, this.books, options.name);
    this.audit = new Audit(this.books, options);
    this.ties = new Ties(options.cancelOnDisconnect);
  }

  async step(fair: readonly number[], fault: Fault | null): Promise<void> {
    this.floor = { orderId: this.books.lastOrderId, fillId: this.books.lastFillId };
    this.isNoisyStep = false;
    await this.recover();
    this.quoteRules.clear();
    await this.act(fair, fault);
    this.steps++;
    await this.finish();
  }

  /** Cancels everything, expects no holds and an equal history of the account, and disconnects. */
  async retire(): Promise<void> {
    await this.finish();
    await this.perform(this.operation({ kind: "cancelAll", filters: {} }));
    await this.finish();
    expectThat(this.books.live.size === 0 && this.books.held === 0, "no order rests after cancel all");
    await this.through(() => this.audit.compareWholeHistory(this.link!));
    this.link!.close();
  }

  leave(): void {
    this.link?.close();
  }

  // Requests.

  private async act(fair: readonly number[], fault: Fault | null): Promise<void> {
    const plan = this.strategy.plan(fair);
    if (fault !== null && fault.afterMs !== null) setTimeout(() => this.break(fault), fault.afterMs);
    if (this.options.random.chance(0.5)) {
      // Send all concurrently: the requests may overtake one another.
      const underWay = plan.map((make) => this.fulfil(make));
      if (fault?.afterMs === null) this.break(fault);
      await Promise.all(underWay);
      return;
    }
    for (const [i, make] of plan.entries()) {
      const underWay = this.fulfil(make);
      if (i === plan.length - 1 && fault?.afterMs === null) this.break(fault);
      await underWay;
    }
  }

  private async fulfil(make: () => Wish | null): Promise<void> {
    const wish = make();
    if (wish !== null) await this.perform(this.operation(wish));
  }

  private operation(wish: Wish): Operation {
    const overSocket = wish.kind !== "sets" && this.options.random.chance(0.7);
    return { wish, overSocket, standing: wish.kind === "quotes" ? this.strategy.liveQuotes() : [] };
  }

  private break({ part }: Fault): void {
    this.say(`the line breaks: ${part}`);
    this.options.count(`fault: ${part}`);
    if (part !== "requests") this.link?.dropSocket();
    if (part !== "socket") this.link?.dropRequests();
  }

  private async perform(operation: Operation): Promise<void> {
    const { wish, overSocket } = operation;
    const { market, count } = this.options;
    const link = this.link!;
    this.say(`${overSocket ? "socket" : "rest"}: ${JSON.stringify(wish)}`);
    count(`asked: ${wish.kind}`);
    this.expect(operation);
    this.underWay++;
    this.isNoisyStep ||= !overSocket;
    const taken = (answer: Envelope): void => {
      if (answer.code === 50300) return;
      this.underWay--;
      this.take(operation, answer);
    };
    try {
      const answer = await (overSocket
        ? link.ask(...socketForm(wish, market), taken)
        : link.rest(...restForm(wish, market)));
      // Nothing took effect: retry it, like a request whose response was lost.
      if (answer.code === 50300) throw new Lost(answer.msg);
      if (!overSocket) taken(answer);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      this.lose(operation);
    }
    if (link.fault !== null) throw link.fault;
  }

  /** Records a request before the bot sends it, as events may overtake a REST response. */
  private expect({ wish, overSocket, standing }: Operation): void {
    if (wish.kind === "quotes") this.quoteRules.sent(wish.quotes, standing, overSocket);
    if (wish.kind === "sets") this.books.changeSets(wish.name === "split" ? wish.quantity : -wish.quantity);
    for (const body of placementsIn(wish)) this.placements.sent(body, overSocket);
    this.quoteRules.touch(idsTouchedBy(wish, this.books.live));
  }

  private lose(operation: Operation): void {
    const { wish, standing } = operation;
    this.say(`no answer: ${JSON.stringify(wish)}`);
    this.options.count(`lost: ${wish.kind}`);
    this.underWay--;
    this.isNoisyStep = true;
    if (wish.kind === "quotes") this.quoteRules.lost();
    // If the quotes took effect, those that they left unchanged belong to this connection now, or to none.
    this.ties.unsure(standing.map(({ id }) => id));
    for (const body of placementsIn(wish)) this.placements.lost(body);
    this.lost.push(operation);
  }

  // Responses and events.

  private take({ wish, overSocket, standing }: Operation, { code, msg, data }: Envelope): void {
    this.say(`answer ${code} ${msg} to ${wish.kind}`);
    if (wish.kind === "quotes") this.quoteRules.answered();
    if (code !== 0) {
      this.options.count(`refused: ${wish.kind} ${code}`);
      expectThat(mayBeRejected(wish, code, this.books.orders), "a rejection that the contract allows", wish, code, msg);
      if (wish.kind === "sets") this.books.changedSets(false);
      return;
    }
    switch (wish.kind) {
      case "place":
        this.takePlacement(data as OrderJson, overSocket);
        break;
      case "cancel":
        expectThat((data as OrderJson).id === wish.id, "the canceled order", wish, data);
        this.ending.add(wish.id);
        break;
      case "cancelByClientId":
      case "cancelAll":
        this.takeCancels(data as OrderJson | { order_ids: number[] });
        break;
      case "amend":
        expectThat((data as OrderJson).id === wish.id, "the amended order", wish, data);
        this.amended.set(wish.id, (data as OrderJson).updated_at);
        break;
      case "batch":
        this.takeBatch(wish.wishes, data as { results: Envelope[] }, overSocket);
        break;
      case "quotes":
        this.takeQuotes(wish.quotes, standing, data as { results: Envelope<OrderJson>[] }, overSocket);
        break;
      case "sets":
        this.books.changedSets(true);
    }
  }

  private takePlacement(order: OrderJson, overSocket: boolean): void {
    const { sends, body } = this.placements.meet(order);
    // The response repeats the first one, even after an amend.
    expectAsked(order, body, ["price", "quantity", "self_trade_prevention", "expires_at"]);
    this.books.answered(order);
    // A repeated request: the bot can't know whether the connection that placed the order is still open.
    if (sends === 1) this.ties.placed(order.id, overSocket);
    else this.ties.unsure([order.id]);
  }

  private takeCancels(data: OrderJson | { readonly order_ids: readonly number[] }): void {
    for (const id of "order_ids" in data ? data.order_ids : [data.id]) this.ending.add(id);
  }

  private takeBatch(wishes: readonly Wish[], { results }: { readonly results: Envelope[] }, overSocket: boolean): void {
    expectThat(results.length === wishes.length, "a result for each operation", wishes, results);
    for (const [i, wish] of wishes.entries()) this.take({ wish, overSocket, standing: [] }, results[i]!);
  }

  private takeQuotes(
    quotes: readonly Quote[],
    standing: readonly OwnOrder[],
    { results }: { readonly results: readonly Envelope<OrderJson>[] },
    overSocket: boolean,
  ): void {
    expectThat(results.length === quotes.length, "a result for each quote", quotes, results);
    const named = new Set<number>();
    const entered: Quote[] = [];
    results.forEach(({ code, data: order }, i) => {
      const asked = quotes[i]!;
      expectThat(code === 0 && isQuote(order, asked) && order.post_only, "the requested quote", asked, order);
      expectThat(!named.has(order.id), "each quote is an order of its own", results);
      named.add(order.id);
      const isKept = standing.some(({ id }) => id === order.id);
      this.options.count(isKept ? "quote kept" : "quote entered");
      if (isKept)
        expectThat(order.remaining === asked.quantity && !isFinal(order), "it rests as requested", asked, order);
      else {
        expectThat(order.quantity <= asked.quantity, "not more than requested", asked, order);
        this.strategy.quoteIds.add(order.id);
        this.books.answered(order);
        entered.push(asked);
      }
      // The contract leaves open whether a connection still owns a quote that a REST request left unchanged.
      if (isKept && !overSocket) this.ties.unsure([order.id]);
      else this.ties.placed(order.id, overSocket);
    });
    for (const order of standing) {
      if (named.has(order.id)) continue;
      this.ending.add(order.id);
      this.quoteRules.replaced(order, entered);
    }
  }

  private hear({ event, sequence, data }: PushedEvent): void {
    if (event === "order.updated") expectThat(sequence > this.lastSequence, "the sequence rises", sequence);
    if (this.gap) return;
    const quiet = this.isQuiet();
    if (event === "balance.updated") this.books.checkBalance(data as BalanceJson, sequence, quiet);
    if (event === "position.updated") this.books.checkPosition(data as PositionJson, sequence, quiet);
    if (event !== "order.updated") return;
    const order = data as OrderJson;
    if (!this.books.orders.has(order.id)) {
      this.discover(order);
      const { client_order_id: clientId } = order;
      const isEarly = clientId !== null && !this.placements.mayBeOvertaken(clientId);
      expectThat(!isEarly, "the 202 leaves before the first order.updated", order);
    }
    this.books.apply(order, sequence);
    for (const { match_type, role } of order.trades) this.options.count(`fill: ${match_type} as ${role}`);
    if (isFinal(order)) this.ended(order);
  }

  /** Nothing is in flight or unreported. A response over REST may arrive before the events. */
  private isQuiet(): boolean {
    if (this.underWay > 0 || this.isNoisyStep || this.ending.size > 0 || this.amended.size > 0) return false;
    for (const { status } of this.books.live.values()) if (status === "queued") return false;
    return true;
  }

  /** An order that no response has named: its response is in flight over REST, or was lost. */
  private discover(order: OrderJson): void {
    if (order.client_order_id !== null) {
      this.placements.meet(order);
      return;
    }
    if (this.quoteRules.meet(withoutTrades(order))) this.ties.orphan(order.id);
    this.strategy.quoteIds.add(order.id);
  }

  private ended(order: OwnOrder): void {
    this.options.count(`ended: ${order.status}${order.reason === null ? "" : ` ${order.reason}`}`);
    this.ties.ended(order);
    this.quoteRules.ended(order);
  }

  // Reconnecting.

  private async recover(): Promise<void> {
    for (;;) {
      try {
        if (this.link === null || !this.link.isOpen) await this.connect();
        if (this.gap || this.lost.length > 0) await this.fence();
        await this.repeatLost();
        if (this.gap) await this.resync();
        if (this.link!.isOpen) return;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
      }
    }
  }

  private async connect(): Promise<void> {
    const { token, encoding, cancelOnDisconnect, port, count } = this.options;
    if (this.link !== null && this.link.fault !== null) throw this.link.fault;
    this.link?.close();
    const lastSequence = this.link?.sequence ?? this.lastSequence;
    this.gap = true;
    let link: Link | null = null;
    while (link === null) link = await Link.open(await port(), token, encoding);
    count("connected");
    this.say(`connected, after sequence ${lastSequence}`);
    link.onEvent = (event) => this.hear(event);
    this.link = link;
    this.lastSequence = lastSequence;
    if (!cancelOnDisconnect) return;
    this.ties.disconnected();
    const { code } = await link.ask("cancel_on_disconnect", { enabled: true });
    expectThat(code === 0, "cancel_on_disconnect is granted", code);
  }

  /**
   * Places an order that can't trade and awaits the response. The venue executes requests in the order of their arrival,
   * so nothing sent earlier on a lost connection can take effect afterwards. The contract has no other way to know.
   */
  private async fence(): Promise<void> {
    const { market, name } = this.options;
    const terms = { market_id: market.id, outcome_id: market.outcomes[0]!, side: BUY, price: 1, quantity: 1 };
    const body = { ...terms, time_in_force: "ioc", client_order_id: `${name}:fence:${++this.fences}` };
    const lostBefore = this.lost.length;
    await this.perform({ wish: { kind: "place", body }, overSocket: true, standing: [] });
    if (this.lost.length > lostBefore) throw new Lost("the fence was lost");
  }

  /** Resends every lost request that is safe to repeat. Quotes show in the state, sets in the transactions. */
  private async repeatLost(): Promise<void> {
    const { lost } = this;
    this.lost = [];
    while (lost.length > 0) {
      const { wish } = lost[0]!;
      try {
        if (wish.kind === "sets") await this.lookForSets();
        else if (wish.kind !== "quotes") {
          this.options.count(`repeated: ${wish.kind}`);
          // If this response is lost too, the request is in the new list.
          await this.perform(this.operation(wish));
        }
        lost.shift();
      } catch (error) {
        this.lost.push(...lost);
        throw error;
      }
    }
    if (this.lost.length > 0) throw new Lost("once more");
  }

  private async lookForSets(): Promise<void> {
    const lists = await Promise.all(
      ["split", "merge"].map((type) => this.link!.list<TransactionJson>(`/wallet/transactions?type=${type}`)),
    );
    const cost = -lists.flat().reduce((sum, { amount }) => sum + amount, 0);
    this.books.changedSets(cost !== this.books.setsCost);
    expectThat(cost === this.books.setsCost, "sets were split once or not at all", cost, this.books.setsCost);
  }

  /** Refreshes the account, and retries if events arrive meanwhile, so that the data is consistent. */
  private async resync(): Promise<void> {
    const link = this.link!;
    for (;;) {
      await link.heard();
      const before = link.sequence;
      const fills = await link.list<OwnFillJson>("/me/fills", ({ id }) => id <= this.floor.fillId);
      const recent = await link.list<OrderJson>("/orders?status=all", ({ id }) => id <= this.floor.orderId);
      const orders = new Map(recent.map((order) => [order.id, order]));
      for (const order of await link.list<OrderJson>("/orders")) orders.set(order.id, order);
      for (const id of this.books.live.keys()) {
        if (!orders.has(id)) orders.set(id, await link.get<OrderJson>(`/orders/${id}`));
      }
      await link.heard();
      if (link.sequence === before) {
        this.adopt([...orders.values()], fills);
        this.say(`resynced at ${before}`);
        break;
      }
      this.options.count("resync: retried");
    }
    this.books.forgetSnapshots();
    this.gap = false;
    this.options.count("resync: done");
  }

  private adopt(orders: readonly OrderJson[], fills: readonly OwnFillJson[]): void {
    const { books, options } = this;
    const ids = new Set(orders.map(({ id }) => id));
    for (const fill of fills) {
      expectThat(ids.has(fill.order_id) || books.fills.has(fill.id), "a fill of a known order", fill);
    }
    for (const order of [...orders].sort((a, b) => a.id - b.id)) {
      const known = books.orders.get(order.id);
      if (known === undefined) {
        options.count("resync: met");
        this.discover(order);
      }
      const own = fills.filter(({ order_id }) => order_id === order.id);
      const wasFinal = known !== undefined && isFinal(known);
      options.count(
        known !== undefined && isDeepStrictEqual(known, withoutTrades(order)) ? "resync: as known" : "resync: changed",
      );
      for (const { match_type, role } of own) options.count(`fill: ${match_type} as ${role}`);
      books.adopt(order, own);
      if (isFinal(order) && !wasFinal) this.ended(order);
    }
  }

  // Checks.

  /** Ends a step: nothing is lost, every promised event has arrived, and REST equals the books. */
  private async finish(): Promise<void> {
    await this.through(async () => {
      await this.settle();
      await this.audit.compareState(this.link!, this.steps % STEPS_BETWEEN_LIMITS === 0);
      if (this.quoteRules.checkLost(this.books.live)) this.options.count("lost quotes were taken");
    });
    if (this.steps % STEPS_BETWEEN_HISTORIES === 0) {
      await this.through(() => this.audit.compareHistory(this.link!));
    }
  }

  /** Runs `work`, and retries it after each loss. */
  private async through(work: () => Promise<void>): Promise<void> {
    for (;;) {
      await this.recover();
      try {
        await work();
        return;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        this.options.count("lost while comparing");
      }
    }
  }

  /** Waits for the events of all responses, and for the end of all orders tied to a lost connection. @throws Lost */
  private async settle(): Promise<void> {
    const link = this.link!;
    const { orders, live } = this.books;
    const open = () => [
      [...live.values()].filter(({ status }) => status === "queued"),
      [...this.ending, ...this.ties.orphans].map((id) => orders.get(id)!).filter((order) => !isFinal(order)),
      [...this.amended].filter(([id, at]) => !isFinal(orders.get(id)!) && orders.get(id)!.updated_at < at),
    ];
    const isSettled = await link.until(() => open().every((list) => list.length === 0), SETTLE_DEADLINE_MS);
    if (!isSettled && !link.isOpen) throw new Lost("the socket closed");
    expectThat(isSettled, "queued, ending and amended orders are reported in time", ...open());
    this.ending.clear();
    this.ties.buried();
    this.amended.clear();
  }

  private say(line: string): void {
    this.log.push(line);
    if (this.log.length > LOG_LINES) this.log.shift();
  }
}
