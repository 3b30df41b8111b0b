/**
 * The lifecycle of a market: proposed -> open <-> halted -> closed -> resolved | voided, or proposed -> rejected. A market
 * closes by itself at its end. Each step writes an audit log entry. Per-market mutual exclusion: a second change is
 * rejected while the first is on its way to the log. Owned by the gateway thread.
 */
import { MARKET_STATUSES, MarketStatus } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import type { ApprovalRow } from "../../engine/log/rows.ts";
import { equalPart } from "../../engine/money.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, withFirstApproval } from "../accounts/approvals.ts";
import { audit, type RequestContext } from "../accounts/audit.ts";
import type { Operator } from "../accounts/operator.ts";
import type { User } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { proposalDecidedMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import { textReply } from "../orders/json-reply.ts";
import type { Reply } from "../trading/types.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { TradingGate } from "../writes/trading-gate.ts";
import type { RequestedAudit, RequestedWrite } from "../writes/types.ts";
import { CloseSchedule } from "./close-schedule.ts";
import { PROPOSAL_WAIT_MS } from "./limits.ts";
import type { Pictures } from "./pictures.ts";
import { canTrade, isPastEnd, isProposed, type MarketRegistry, marketStatusName } from "./registry.ts";
import type { Market } from "./types.ts";

/** The approval action for both resolving and voiding, because a market settles once. */
const SETTLEMENT = "market.resolve";

const OVERDUE_NOTE = "no decision within 30 days";
const MAX_OVERDUE_PER_SWEEP = 100;

type Step = "halt" | "resume" | "close";

/** How a market ends. */
interface Decision {
  readonly status: typeof MarketStatus.resolved | typeof MarketStatus.voided;
  /** BPS per outcome. */
  readonly payouts: readonly number[];
  readonly note: string | null;
}

/** What the lifecycle needs of trading. */
export interface MarketTrading {
  readonly registry: MarketRegistry;
  readonly ledger: Ledger;
  readonly gate: TradingGate;
  readonly writer: {
    /** True while the ring of the market's engine has room for a command that cannot be rejected. */
    hasReservedRoom(marketId: number): boolean;
  };
  readonly markets: {
    /** @param begin called once nothing can reject the change any more, before the command is written @throws ApiError */
    change(market: Market, step: Step, now: number, reply: Reply, begin: () => void): void;
  };
  /** Resolves once every command sent so far has come back committed and was applied. */
  fence(): Promise<void>;
}

export interface MarketLifecycleOptions {
  readonly exchange: MarketTrading;
  readonly writer: LogWriter;
  readonly approvals: Approvals;
  readonly accounts: Accounts;
  readonly notifier: Notifier;
  readonly pictures: Pictures;
}

/** New texts, a new end, or a new picture (a file in base64); null clears a field, a missing one stays the same. */
export type MarketChanges = Partial<Pick<Market, "description" | "category" | "closesAt" | "picture">>;

/** The payout of each outcome in BPS, or the one outcome that pays everything. */
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
  private readonly writer: LogWriter;
  private readonly approvals: Approvals;
  private readonly accounts: Accounts;
  private readonly notifier: Notifier;
  private readonly pictures: Pictures;
  private readonly schedule: CloseSchedule;
  /** Markets with a change in progress. */
  private readonly changing = new KeyedMutex<Market>("another change to this market is in progress: try again");

  constructor(options: MarketLifecycleOptions) {
    this.exchange = options.exchange;
    this.writer = options.writer;
    this.approvals = options.approvals;
    this.accounts = options.accounts;
    this.notifier = options.notifier;
    this.pictures = options.pictures;
    this.schedule = new CloseSchedule(options.exchange.registry);
  }

  // ---------------------------------------------------------------- proposals and texts

  /** Opens a proposal for trading, or refuses it. @throws ApiError 40300 for the operator's own, 40900 unless it is pending */
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
    const entry = { ...auditEntryOf(market, action, { note }, operator.actor, context), userId: market.proposedBy };
    await this.changing.run(market, () =>
      isApproved ? this.approve(market, note, entry) : this.refuse(market, note, entry),
    );
    this.notifier.sendMail(proposalDecidedMail(this.proposerOf(market).email, market.question, isApproved, note));
  }

  private proposerOf({ proposedBy }: Market): User {
    const proposer = proposedBy === null ? undefined : this.accounts.user(proposedBy);
    assert(proposer !== undefined, "a proposal has a proposer, whose account is never deleted");
    return proposer;
  }

  private async approve({ id: marketId }: Market, note: string | null, entry: RequestedAudit): Promise<void> {
    await this.writer.write([{ kind: "openMarket", marketId, note, at: entry.at }], [entry]);
  }

  private async refuse({ id: marketId }: Market, note: string | null, entry: RequestedAudit): Promise<void> {
    await this.writer.write([{ kind: "refuseMarket", marketId, note, at: entry.at }], [entry]);
  }

  /** Refuses proposals that are pending for 30 days, a bounded number per call, so that they do not block new ones. */
  refuseOverdueProposals(now: number): void {
    if (this.exchange.gate.hasFailed) return;
    let count = 0;
    for (const market of this.exchange.registry.waitingProposals()) {
      if (count === MAX_OVERDUE_PER_SWEEP) return;
      if (market.createdAt > now - PROPOSAL_WAIT_MS || this.changing.has(market)) continue;
      count++;
      const details = { note: OVERDUE_NOTE };
      const rest = { userId: market.proposedBy, write: 0, subject: market.id, requestId: null, address: null };
      const entry = { at: now, action: "market.refuse", actor: "exchange", details, ...rest };
      const { email } = this.proposerOf(market);
      this.changing
        .run(market, () => this.refuse(market, OVERDUE_NOTE, entry))
        .then(
          () => this.notifier.sendMail(proposalDecidedMail(email, market.question, false, OVERDUE_NOTE)),
          // The log has failed, and reports that itself.
          () => {},
        );
    }
  }

  /**
   * Changes texts, end or picture.
   * @throws ApiError 40900 if the market is resolved, voided or refused; 40000, 50300 for a picture
   */
  async describe(market: Market, changes: MarketChanges, operator: Operator, context: RequestContext): Promise<void> {
    if (Object.keys(changes).length === 0)
      throw badRequest("description, category, closes_at, picture: at least one is required");
    if (market.status >= MarketStatus.resolved) throw wrongState(market);
    const { picture: file, ...texts } = changes;
    // Before the lock: a halt doesn't wait for a picture.
    const picture = typeof file === "string" ? await this.pictures.encode(file) : file;
    await this.changing.run(market, async () => {
      if (market.status >= MarketStatus.resolved) throw wrongState(market);
      const { id: marketId, description, category, closesAt } = market;
      const hash = picture === undefined ? {} : { picture: picture?.hash ?? null };
      const entry = auditEntryOf(market, "market.describe", { ...texts, ...hash }, operator.actor, context);
      const given = { ...texts, ...(picture === undefined ? {} : { picture }) };
      const write = { kind: "describeMarket", marketId, description, category, closesAt, ...given } as const;
      await this.writer.write([write], [entry]);
    });
  }

  // ---------------------------------------------------------------- trading begins and ends

  /** Opens a proposal, or resumes a halted market. @throws ApiError 40900 in any other state */
  async open(market: Market, note: string | null, operator: Operator, context: RequestContext): Promise<void> {
    if (isProposed(market)) await this.decide(market, true, note, operator, context);
    else await this.change(market, "resume", note, operator, context);
  }

  /** @throws ApiError 40900 if the market's state does not allow the step */
  async change(
    market: Market,
    step: Step,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<void> {
    if (!ALLOWED_FROM[step].includes(market.status)) throw wrongState(market);
    await this.execute(market, step, auditEntryOf(market, `market.${step}`, { note }, operator.actor, context));
  }

  /** Sends the step to the engine, behind all earlier commands of the market. */
  private execute(market: Market, step: Step, entry: RequestedAudit): Promise<void> {
    const { exchange, writer } = this;
    exchange.gate.checkRunning();
    // Sent before the command, so that the entry is durable no later than its step.
    const begin = (): void => void writer.write([], [entry]).catch(() => {});
    return this.changing.run(market, () => {
      return new Promise((resolve, reject) => {
        exchange.markets.change(
          market,
          step,
          entry.at,
          textReply(() => resolve(), reject),
          begin,
        );
      });
    });
  }

  /** Closes each market that is due while its ring has room; returns true once all are in progress. */
  closeDue(now: number): boolean {
    const { schedule, exchange } = this;
    // Trading has stopped; the next start closes them.
    if (exchange.gate.hasFailed) return true;
    for (let market = schedule.due(now); market !== undefined; market = schedule.due(now)) {
      if (this.changing.has(market)) return false;
      if (canTrade(market)) {
        if (!exchange.writer.hasReservedRoom(market.id)) return false;
        const details = { closes_at: market.closesAt };
        const entry = { at: now, action: "market.close", actor: "exchange", userId: null, write: 0, details };
        // On a timeout the close still happens, or the log has failed and reports that itself.
        this.execute(market, "close", { ...entry, subject: market.id, requestId: null, address: null }).catch(() => {});
      }
      schedule.pop();
    }
    return true;
  }

  // ---------------------------------------------------------------- settlement

  /** Pays the holders of a closed market by the payout of each outcome. @returns and @throws as `settle` */
  async resolve(
    market: Market,
    resolution: Resolution,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    const outcome = { status: MarketStatus.resolved, payouts: payoutsOf(market, resolution), note };
    return this.settle(market, outcome, operator, context);
  }

  /** Pays all outcomes of a closed market equally, the first ones 1 BPS more to sum to 10000. @returns and @throws as `settle` */
  async void(
    market: Market,
    note: string | null,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    const count = market.outcomes.length;
    const payouts = Array.from({ length: count }, (_, i) => equalPart(FULL_PRICE_BPS, i, count));
    return this.settle(market, { status: MarketStatus.voided, payouts, note }, operator, context);
  }

  /**
   * Returns null once all holders are paid; the first approval while a second one is required.
   * @throws ApiError 40300 if the operator proposed the market, or holds or traded shares of it, 40900 unless it is closed
   */
  private async settle(
    market: Market,
    { status, payouts, note }: Decision,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow | null> {
    if (market.status !== MarketStatus.closed) throw wrongState(market, canTrade(market) ? ": close it first" : "");
    this.checkImpartial(market, operator);
    const details = { status: MARKET_STATUSES[status], payouts, note };
    const request = { rule: "resolutions", action: SETTLEMENT, subject: market.id, details, userId: null } as const;
    const pay = async (ending: readonly RequestedWrite[], first: ApprovalRow | null): Promise<void> => {
      const action = status === MarketStatus.resolved ? "market.resolve" : "market.void";
      const entry = auditEntryOf(market, action, withFirstApproval({ payouts, note }, first), operator.actor, context);
      const write = { kind: "settleMarket", marketId: market.id, status, payouts, note, at: context.now } as const;
      // From here on no merge starts; those in progress finish first.
      market.isSettling = true;
      try {
        await this.exchange.fence();
        await this.writer.write([write, ...ending], [entry]);
      } catch (error) {
        market.isSettling = false;
        throw error;
      }
    };
    return this.changing.run(market, async () => {
      const { approval } = await this.approvals.request(request, operator, context, pay);
      return approval;
    });
  }

  /** Nobody decides the payout of shares that they hold or held, or of a market that they proposed. @throws ApiError 40300 */
  private checkImpartial(market: Market, { userId }: Operator): void {
    if (userId === null) return;
    const { ledger } = this.exchange;
    const refuse = (why: string): never => {
      throw new ApiError(ErrorKind.forbidden, `you ${why}: another operator must resolve it`);
    };
    if (market.proposedBy === userId) refuse("proposed this market");
    const positions = market.outcomes.map(({ id }) => ledger.findPosition(userId, id)).filter((found) => found !== 0);
    if (positions.some((position) => ledger.quantity(position) > 0)) refuse("hold shares of this market");
    // A position stays when its last share is sold.
    if (positions.length > 0) refuse("traded shares of this market");
  }

  /** The first approval of the market's settlement, if there is one. */
  approvalOf({ id }: Market): ApprovalRow | null {
    return this.approvals.find(SETTLEMENT, id);
  }
}

function auditEntryOf(
  market: Market,
  action: string,
  details: object,
  actor: string,
  context: RequestContext,
): RequestedAudit {
  return audit(context, actor, { action, userId: null, subject: market.id, details });
}

function wrongState(market: Market, advice = ""): ApiError {
  return new ApiError(ErrorKind.conflict, `the market is ${marketStatusName(market)}${advice}`);
}

/** @throws ApiError 40000 unless there is one payout per outcome and they sum to one set */
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
