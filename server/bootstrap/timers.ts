/** Everything that a ready server does at intervals, in one list. The work of each timer is in another module. */

import type { Logger } from "../logger.ts";
import { CANCEL_TIMER_TICK_MS } from "../trading/limits.ts";
import type { SocketHub } from "../websocket/hub.ts";
import { SOCKET_TICK_MS } from "../websocket/limits.ts";
import type { AccountServices } from "./account-services.ts";
import { createClockWatch } from "./clock-watch.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { FailTrading } from "./failure.ts";
import { FileGuard } from "./file-guard.ts";
import type { NotificationServices } from "./notification-services.ts";
import type { OperatorServices } from "./operator-services.ts";
import type { OverdueDeletion } from "./overdue.ts";
import { type Threads, threadProgress } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";
import { Watchdog } from "./watchdog.ts";

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
  readonly logger: Logger;
}

/** Returns the timers, for `clearInterval`. */
export function startTimers(options: TimerOptions): readonly NodeJS.Timeout[] {
  const { database, trading, operators, notifying, hub, fail } = options;
  const { clock } = trading;
  const files = new FileGuard([database.path, database.journalPath].flatMap((path) => [path, `${path}-wal`]));
  const watchdog = new Watchdog(threadProgress(options.threads, trading.writer), MAX_STALL_MS / TICK_MS);
  notifying.priceAlerts.start(clock.now());
  const watchClock = createClockWatch(trading.timeline, options.logger);
  return [
    setInterval(() => {
      const stalled = watchdog.tick();
      if (stalled !== null) fail(stalled, `has done nothing for ${MAX_STALL_MS / 1_000} s while work waits`);
      const now = clock.now();
      trading.exchange.tick(now);
      trading.projected.expire();
      trading.lag.check();
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
    setInterval(() => operators.upkeep.check(), UPKEEP_TICK_MS),
    setInterval(() => notifying.notificationMails.check(clock.now()), MAILS_TICK_MS),
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
  overdue.begin();
  operators.life.refuseOverdueProposals(now);
}
