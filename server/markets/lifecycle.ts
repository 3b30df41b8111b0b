/**
 * The life of a market: proposed -> open <-> halted -> closed -> resolved | voided, or rejected from proposed; when its
 * time is over it closes by itself. Each step leaves a line in the audit log. One change of a market at a time: whoever
 * asks for another while it is on its way to the database is refused. Owned by the gateway thread.
 */
import { MARKET_STATUSES, MarketStatus } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import { equalPart } from "../../engine/money.ts";
import type { ApprovalRow } from "../../engine/projection/load/wallet.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, withFirstApproval } from "../accounts/approvals.ts";
import { audit, type RequestContext } from "../accounts/audit.ts";
import { proposalDecidedMail } from "../accounts/mail-templates.ts";
import type { Notifier } from "../accounts/notifier.ts";
import type { Operator } from "../accounts/operator.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { Answer } from "../trading/types.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import { CloseSchedule } from "./close-schedule.ts";
import { PROPOSAL_WAIT_MS } from "./limits.ts";
import { canTrade, isPastEnd, isProposed, type MarketRegistry, marketStatusName } from "./registry.ts";
import type { Market } from "./types.ts";

/** As approvals name a resolution, and a voiding as well: a market has one end. */
const SETTLEMENT = "market.resolve";

const FORGOTTEN_NOTE = "no decision within 30 days";
const MAX_FORGOTTEN_AT_ONCE = 100;

type Step = "halt" | "resume" | "close";

/** What a market's life needs of trading. */
export interface MarketTrading {
  readonly registry: MarketRegistry;
  readonly ledger: Ledger;
  /** What trading refuses every request with; null while it runs. */
  readonly refusal: ApiError | null;
  readonly writer: {
    /** True while the ring of the market's engine has room for a command that cannot be refused. */
    hasReservedRoom(marketId: number): boolean;
  };
  readonly markets: {
    /** @param begin called once nothing can refuse the change any more, before the command is written @throws ApiError */
    change(market: Market, step: Step, now: number, answer: Answer, begin: () => void): void;
  };
  /** Resolves once every command sent so far has come back committed and was applied. */
  settled(): Promise<void>;
}

export interface MarketLifecycleOptions {
  readonly exchange: MarketTrading;
  readonly writer: AccountWriter;
  readonly approvals: Approvals;
  readonly accounts: Accounts;
  readonly notifier: Notifier;
}

/** Other texts, another end; null clears, what is missing stays. */
export type MarketChanges = Partial<Pick<Market, "description" | "category" | "closesAt">>;

/** BPS that each outcome pays, or the outcome that pays all. */
export interface Resolution {
  readonly payouts: readonly number[] | null;
  readonly outcomeId: number | null;
}

const ALLOWED_FROM: Record<Step, readonly number[]> = {
  halt: [MarketStatus.open],
  resume: [MarketStatus.halted],
  close: [MarketStatus.open, MarketStatus.halted],
};

export class MarketLifecycle {
  private readonly exchange: MarketTrading;
  private readonly writer: AccountWriter;
  private readonly approvals: Approvals;
  private readonly accounts: Accounts;
  private readonly notifier: Notifier;
  private readonly closings: CloseSchedule;
  /** Markets with a change on its way. */
  private readonly changing = new KeyedMutex<Market>("another change to this market is in progress: try again");

  constructor(options: MarketLifecycleOptions) {
    this.exchange = options.exchange;
    this.writer = options.writer;
    this.approvals = options.approvals;
    this.accounts = options.accounts;
    this.notifier = options.notifier;
    this.closings = new CloseSchedule(options.exchange.registry);
  }

  // ---------------------------------------------------------------- proposals and texts

  /** Opens a proposal for trading, or refuses it. @throws ApiError 40300 for one's own, 40900 unless it waits */
  async decide(
    market: Market,
    isApproved: boolean,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<void> {
    if (!isProposed(market)) throw wrongState(market);
    if (market.proposedBy !== null && market.proposedBy === operator.userId) {
      throw new ApiError(ErrorKind.forbidden, "the proposal is your own: another operator must decide on it");
    }
    if (isApproved && isPastEnd(market, context.now)) {
      throw new ApiError(ErrorKind.conflict, "its closes_at has passed: change it first");
    }
    const action = isApproved ? "market.approve" : "market.refuse";
    const line = { ...lineOf(market, action, { note }, operator.actor, context), userId: market.proposedBy };
    await this.changing.run(market, () =>
      isApproved ? this.approve(market, note, line) : this.refuse(market, note, line),
    );
    const { email } = this.accounts.user(market.proposedBy!)!;
    this.notifier.sendMail(proposalDecidedMail(email, market.question, isApproved, note));
  }

  private async approve({ id: marketId }: Market, note: string | null, line: AuditEntry): Promise<void> {
    await this.writer.write([{ kind: "openMarket", marketId, note, at: line.at }], [line]);
  }

  private async refuse({ id: marketId }: Market, note: string | null, line: AuditEntry): Promise<void> {
    await this.writer.write([{ kind: "refuseMarket", marketId, note, at: line.at }], [line]);
  }

  /** Refuses proposals that nobody decided for 30 days, some at a time: they must not keep others from proposing. */
  refuseOverdueProposals(now: number): void {
    if (this.exchange.refusal !== null) return;
    let count = 0;
    for (const market of this.exchange.registry.waitingProposals()) {
      if (count === MAX_FORGOTTEN_AT_ONCE) return;
      if (market.createdAt > now - PROPOSAL_WAIT_MS || this.changing.has(market)) continue;
      count++;
      const details = { note: FORGOTTEN_NOTE };
      const rest = { userId: market.proposedBy, write: 0, subject: market.id, requestId: null, address: null };
      const line = { at: now, action: "market.refuse", actor: "exchange", details, ...rest };
      const { email } = this.accounts.user(market.proposedBy!)!;
      this.changing
        .run(market, () => this.refuse(market, FORGOTTEN_NOTE, line))
        .then(
          () => this.notifier.sendMail(proposalDecidedMail(email, market.question, false, FORGOTTEN_NOTE)),
          // The journal has failed, and says so itself.
          () => {},
        );
    }
  }

  /** @throws ApiError 40900 where it is resolved, voided or refused */
  async describe(market: Market, changes: MarketChanges, operator: Operator, context: RequestContext): Promise<void> {
    if (Object.keys(changes).length === 0)
      throw badRequest("description, category, closes_at: at least one is required");
    if (market.status >= MarketStatus.resolved) throw wrongState(market);
    const { id: marketId, description, category, closesAt } = market;
    const line = lineOf(market, "market.describe", changes, operator.actor, context);
    const write = { kind: "describeMarket", marketId, description, category, closesAt, ...changes } as const;
    await this.changing.run(market, () => this.writer.write([write], [line]));
  }

  // ---------------------------------------------------------------- trading begins and ends

  /** A proposal's trading begins, or a halted market's goes on. @throws ApiError 40900 for any other */
  async open(market: Market, note: string | null, operator: Operator, context: RequestContext): Promise<void> {
    if (isProposed(market)) await this.decide(market, true, note, operator, context);
    else await this.change(market, "resume", note, operator, context);
  }

  /** @throws ApiError 40900 where its state doesn't allow it */
  async change(
    market: Market,
    step: Step,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<void> {
    if (!ALLOWED_FROM[step].includes(market.status)) throw wrongState(market);
    await this.execute(market, step, lineOf(market, `market.${step}`, { note }, operator.actor, context));
  }

  /** Through the engine, behind all that the market was asked for before. */
  private execute(market: Market, step: Step, line: AuditEntry): Promise<void> {
    const { exchange, writer } = this;
    if (exchange.refusal !== null) throw exchange.refusal;
    // On its way before the command: it is durable no later than what it tells of.
    const begin = (): void => void writer.write([], [line]).catch(() => {});
    return this.changing.run(market, () => {
      return new Promise((resolve, reject) => {
        exchange.markets.change(market, step, line.at, { data: () => resolve(), error: reject }, begin);
      });
    });
  }

  /** Closes each market whose time is over, so far as there is room to say so; true when all are on their way. */
  closeDue(now: number): boolean {
    const { closings, exchange } = this;
    // Nothing can be done any more; the next start will.
    if (exchange.refusal !== null) return true;
    for (let market = closings.due(now); market !== undefined; market = closings.due(now)) {
      if (this.changing.has(market)) return false;
      if (canTrade(market)) {
        if (!exchange.writer.hasReservedRoom(market.id)) return false;
        const details = { closes_at: market.closesAt };
        const line = { at: now, action: "market.close", actor: "exchange", userId: null, write: 0, details };
        // Where no answer comes in time it is still done, or the journal has failed and says so itself.
        this.execute(market, "close", { ...line, subject: market.id, requestId: null, address: null }).catch(() => {});
      }
      closings.pop();
    }
    return true;
  }

  // ---------------------------------------------------------------- the end

  /** Pays the holders of a closed market out by what its outcomes are worth. @returns as `settle` @throws ApiError */
  async resolve(
    market: Market,
    resolution: Resolution,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    return this.settle(market, MarketStatus.resolved, payoutsOf(market, resolution), note, operator, context);
  }

  /** Pays all outcomes of a closed market alike, the first ones a BPS more where 10000 doesn't divide. @returns as `settle` @throws ApiError */
  async void(
    market: Market,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    const count = market.outcomes.length;
    const payouts = Array.from({ length: count }, (_, i) => equalPart(FULL_PRICE_BPS, i, count));
    return this.settle(market, MarketStatus.voided, payouts, note, operator, context);
  }

  /**
   * Null once everybody is paid; the first approval where a second one is awaited.
   * @throws ApiError 40300 where the operator proposed the market or holds shares of it, 40900 unless it is closed
   */
  private async settle(
    market: Market,
    status: typeof MarketStatus.resolved | typeof MarketStatus.voided,
    payouts: readonly number[],
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    if (market.status !== MarketStatus.closed) throw wrongState(market, canTrade(market) ? ": close it first" : "");
    this.checkImpartial(market, operator);
    const details = { status: MARKET_STATUSES[status], payouts, note };
    const wish = { rule: "resolutions", action: SETTLEMENT, subject: market.id, details, userId: null } as const;
    const pay = async (ending: readonly AccountWrite[], first: ApprovalRow | null): Promise<void> => {
      const action = status === MarketStatus.resolved ? "market.resolve" : "market.void";
      const line = lineOf(market, action, withFirstApproval({ payouts, note }, first), operator.actor, context);
      const write = { kind: "settleMarket", marketId: market.id, status, payouts, note, at: context.now } as const;
      // No merge begins from here on; those under way end first.
      market.isSettling = true;
      try {
        await this.exchange.settled();
        await this.writer.write([write, ...ending], [line]);
      } catch (error) {
        market.isSettling = false;
        throw error;
      }
    };
    return this.changing.run(market, async () => {
      const { approval } = await this.approvals.request(wish, operator, context, pay);
      return approval;
    });
  }

  /** Nobody decides what their own shares, or the market that they proposed, pay. @throws ApiError 40300 */
  private checkImpartial(market: Market, { userId }: Operator): void {
    if (userId === null) return;
    const { ledger } = this.exchange;
    const refuse = (why: string): never => {
      throw new ApiError(ErrorKind.forbidden, `you ${why}: another operator must resolve it`);
    };
    if (market.proposedBy === userId) refuse("proposed this market");
    if (market.outcomes.some(({ id }) => ledger.quantity(ledger.findPosition(userId, id)) > 0)) {
      refuse("hold shares of this market");
    }
  }

  /** The first of two approvals of the market's end, if there is one. */
  approvalOf({ id }: Market): ApprovalRow | null {
    return this.approvals.find(SETTLEMENT, id);
  }
}

function lineOf(market: Market, action: string, details: object, actor: string, context: RequestContext): AuditEntry {
  return audit(context, actor, { action, userId: null, subject: market.id, details });
}

function wrongState(market: Market, advice = ""): ApiError {
  return new ApiError(ErrorKind.conflict, `the market is ${marketStatusName(market)}${advice}`);
}

/** @throws ApiError 40000 unless they come to one set, one for each outcome */
function payoutsOf({ outcomes }: Market, { payouts, outcomeId }: Resolution): readonly number[] {
  if ((payouts === null) === (outcomeId === null)) throw badRequest("payouts, outcome_id: exactly one is required");
  if (payouts === null) {
    if (!outcomes.some(({ id }) => id === outcomeId)) throw badRequest("outcome_id: not an outcome of this market");
    return outcomes.map(({ id }) => (id === outcomeId ? FULL_PRICE_BPS : 0));
  }
  if (payouts.length !== outcomes.length) {
    throw badRequest(`payouts: one for each of the ${outcomes.length} outcomes, not ${payouts.length}`);
  }
  const sum = payouts.reduce((total, bps) => total + bps, 0);
  if (sum !== FULL_PRICE_BPS) throw badRequest(`payouts: must sum to ${FULL_PRICE_BPS}, not ${sum}`);
  return payouts;
}
