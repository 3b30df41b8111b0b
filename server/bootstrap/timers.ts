/**
 * Everything that a ready server does at intervals, in one list; the deletion of what is overdue; and what fell due before
 * the start.
 */
import { dayOf } from "../../engine/log/archive-format.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { KEEP_ENDED_SESSIONS_MS } from "../accounts/limits.ts";
import type { UnverifiedAccounts } from "../accounts/unverified-accounts.ts";
import type { ReplyDeadlines } from "../http/reply-deadlines.ts";
import type { Logger } from "../logger.ts";
import type { History } from "../queries/history.ts";
import { CANCEL_TIMER_TICK_MS } from "../trading/limits.ts";
import { ClockSteps } from "../util/clock-steps.ts";
import type { SocketHub } from "../websocket/hub.ts";
import { SOCKET_TICK_MS } from "../websocket/limits.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { AccountServices } from "./account-services.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { HeldLog } from "./held-log.ts";
import type { FailTrading, Lifecycle } from "./lifecycle.ts";
import type { NotificationServices } from "./notification-services.ts";
import type { OperatorServices } from "./operator-services.ts";
import { type Threads, threadProgress } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";
import { createClockWatch, FileGuard, Watchdog } from "./watches.ts";

const TICK_MS = 200;
/** Longer than the slowest settlement and the longest wait for a disk that recovers; no response waits as long. */
const MAX_STALL_MS = 60_000;
/** The longest time that a socket outlives its token. */
const EXPIRY_TICK_MS = 500;
/** How often expired entries are removed from memory and overdue rows from the tables. */
const SWEEP_TICK_MS = 30_000;
const FILES_TICK_MS = 1_000;
const UPKEEP_TICK_MS = 60_000;
const MAILS_TICK_MS = 1_000;

interface TimerOptions {
  readonly database: ExchangeDatabase;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly operators: OperatorServices;
  readonly notifying: NotificationServices;
  readonly hub: SocketHub;
  readonly threads: Threads;
  readonly overdue: OverdueDeletion;
  readonly fail: FailTrading;
  /** Null where no request waits for other boxes. */
  readonly deadlines: ReplyDeadlines | null;
  readonly heldLog: HeldLog | null;
  readonly logger: Logger;
}

/** Returns the timers, for `clearInterval`. */
export function startTimers(options: TimerOptions): readonly NodeJS.Timeout[] {
  const { database, trading, operators, notifying, hub, fail } = options;
  const { clock } = trading;
  const files = new FileGuard([database.path, database.journalPath].flatMap((path) => [path, `${path}-wal`]));
  const watchdog = new Watchdog(threadProgress(options.threads), MAX_STALL_MS / TICK_MS);
  notifying.priceAlerts.start(clock.now());
  const steps = new ClockSteps(clock);
  const watchClock = createClockWatch(trading.timeline, options.logger);
  return [
    setInterval(() => {
      const stalled = watchdog.tick();
      if (stalled !== null) fail(stalled, `no progress for ${MAX_STALL_MS / 1_000} s with work pending`);
      const now = clock.now();
      if (steps.measure() !== 0) {
        trading.exchange.clockStepped(now);
        options.deadlines?.clockStepped(now);
      }
      trading.exchange.tick(now);
      trading.projected.expire();
      trading.lag.check();
      options.heldLog?.check();
      options.deadlines?.check(now, options.heldLog?.isTooLong === true);
      operators.life.closeDue(now);
      watchClock(now);
    }, TICK_MS),
    setInterval(() => {
      void files.changed().then((changed) => {
        if (changed !== null) fail("log", `${changed} was moved or deleted: what is written to it now is lost`);
      });
    }, FILES_TICK_MS),
    setInterval(() => trading.cancelTimers.fireDue(clock.now()), CANCEL_TIMER_TICK_MS),
    setInterval(() => hub.tick(clock.now()), SOCKET_TICK_MS),
    setInterval(() => hub.endUnauthenticated(clock.now()), EXPIRY_TICK_MS),
    setInterval(() => sweep(options), SWEEP_TICK_MS),
    setInterval(() => {
      operators.upkeep.check();
      operators.bookHistory.check();
    }, UPKEEP_TICK_MS),
    setInterval(() => notifying.notificationMails.check(trading.exchange.time()), MAILS_TICK_MS),
  ];
}

function sweep({ trading, identity, operators, overdue }: TimerOptions): void {
  const now = trading.clock.now();
  const { sessions, kyc, oauth, auth, secondStep, factorSettings, accounts, lastUse } = identity;
  const signIn = [sessions, kyc, oauth.codes, auth, secondStep, factorSettings];
  for (const part of [...signIn, operators.withdrawals, trading.idempotency, accounts.knownAddresses]) {
    part.forgetExpired(now);
  }
  // A write fails only where the log has failed, and it reports that itself.
  lastUse.write().catch(() => {});
  void overdue.begin();
  operators.life.refuseOverdueProposals(now);
}

/**
 * Deletes what is overdue: accounts whose email was never verified, and rows of ended sessions and the like. A backlog is
 * deleted slice by slice, so that no commit waits for all of it.
 */
export class OverdueDeletion {
  private readonly unverified: UnverifiedAccounts;
  private readonly writer: LogWriter;
  private readonly history: History;
  private readonly lifecycle: Lifecycle;
  private readonly clock: Clock;
  private readonly progress: LogProgress;

  constructor(unverified: UnverifiedAccounts, trading: TradingServices, lifecycle: Lifecycle) {
    const { writer, history, clock, progress } = trading;
    this.unverified = unverified;
    this.writer = writer;
    this.history = history;
    this.lifecycle = lifecycle;
    this.clock = clock;
    this.progress = progress;
  }

  /**
   * Deletes the first slice of each; goes on until the backlog is empty or the server is no longer ready. Resolves once the
   * log says that the day before this one is over.
   */
  begin(): Promise<void> {
    this.deleteAccounts();
    return this.deleteRows();
  }

  private deleteAccounts(): void {
    this.unverified.deleteOverdue(this.clock.now()).then(
      (deleted) => {
        if (deleted > 0 && this.lifecycle.phase === "ready") this.deleteAccounts();
      },
      // The log has failed, and reports that itself.
      () => {},
    );
  }

  /** Resolves once the first slice is durable. */
  private async deleteRows(): Promise<void> {
    try {
      const deleted = await this.sweep();
      if (deleted && this.lifecycle.phase === "ready") void this.deleteRows();
    } catch {
      // The log has failed, or too many reads wait: the next timer tries again.
    }
  }

  /**
   * Deletes a slice of obsolete rows; resolves with false if there are none. An idle exchange writes one a day, which deletes
   * nothing: the day before ends with the first commit of a later one, and then its archive and its book history are made.
   */
  private async sweep(): Promise<boolean> {
    const at = this.clock.now();
    const endedBefore = at - KEEP_ENDED_SESSIONS_MS;
    const hasRows = await this.history.hasObsoleteRows({ endedBefore, at });
    const { batch, at: lastAt } = this.progress.committed;
    const endsDay = batch > 0 && dayOf(at) > dayOf(lastAt);
    if (hasRows || endsDay) await this.writer.write([{ kind: "sweep", endedBefore, at }]);
    return hasRows;
  }
}

/**
 * The last step before the server is ready: what fell due while it was down happens before anyone can trade. Ends first
 * approvals that can't be fulfilled any more, cancels orders of lapsed cancel timers, closes markets past their
 * end, and builds the lists that are asked for most.
 */
export async function catchUp(trading: TradingServices, { approvals, life }: OperatorServices): Promise<void> {
  const { exchange, cancelTimers, history, lists, feed, startedAt, clock } = trading;
  const isMade = async (reference: string, isWithdrawal: boolean): Promise<boolean> =>
    (await (isWithdrawal ? history.withdrawalPaidWith(reference) : history.payment(reference))) !== null;
  await approvals.endFulfilled(isMade, clock.now());
  cancelTimers.fireDue(clock.now());
  await exchange.turn.cancelsWritten();
  while (!life.closeDue(clock.now())) await exchange.fence();
  await exchange.fence();
  lists.warmUp();
  feed.warmUp(startedAt);
}
