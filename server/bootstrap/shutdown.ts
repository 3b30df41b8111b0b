/**
 * How the server stops: it accepts nothing new, finishes what it accepted, stops the engines, and exits within
 * SHUTDOWN_DEADLINE_MS. The order of the steps is the contract: a later step relies on every earlier one.
 */
import { constants } from "node:os";
import type Database from "better-sqlite3";
import type { ControlSocket } from "../control/control-socket.ts";
import type { Logger } from "../logger.ts";
import type { LogOutput } from "../util/log-output.ts";
import type { AccountServices } from "./account-services.ts";
import type { Gateway } from "./gateway.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { LOG_FLUSH_MS, SHUTDOWN_DEADLINE_MS } from "./limits.ts";
import type { NotificationServices } from "./notification-services.ts";
import type { OperatorServices } from "./operator-services.ts";
import type { Port } from "./port.ts";
import type { Threads } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";

/** A supervisor, Ctrl-C, a closed terminal, Ctrl-\\, a failing power supply, a limit of CPU time. */
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGPWR", "SIGXCPU"] as const;
/**
 * Habits of log rotation and of other programs. Without a listener Node would open its debugger on SIGUSR1, through which any
 * user of the machine could run code as the exchange, and the others would end the process at once.
 */
const IGNORED_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO"] as const;
const PENDING_POLL_MS = 5;

const exitAtOnce = (): void => process.exit(0);
/** What the signals do now. */
let onStop: ((signal?: NodeJS.Signals) => void) | null = null;

/**
 * Before the server is ready nothing was accepted, so a signal ends the process at once. So does the end of a parent
 * process that started it with a channel between the two (admin-client.ts, the demo).
 */
export function exitOnSignals(): void {
  if (onStop === null) for (const signal of IGNORED_SIGNALS) listen(signal, () => {});
  replaceStop(exitAtOnce);
  // The channel may have closed before this listener was there; without a channel this is undefined.
  if (process.connected === false) exitAtOnce();
}

function listen(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void {
  // Not every system has them all.
  if (signal in constants.signals) process.on(signal, listener);
}

/** From now on the same signals stop the server in order. */
export function stopOnSignals(stop: (signal: string) => Promise<void>): void {
  replaceStop((signal) => void stop(signal ?? "disconnect"));
}

function replaceStop(next: NonNullable<typeof onStop>): void {
  for (const signal of STOP_SIGNALS) {
    if (onStop !== null) process.off(signal, onStop);
    listen(signal, next);
  }
  if (onStop !== null) process.off("disconnect", onStop);
  process.on("disconnect", next);
  onStop = next;
}

interface ShutdownOptions {
  readonly port: Port;
  readonly timers: readonly NodeJS.Timeout[];
  readonly operators: OperatorServices;
  readonly notifying: NotificationServices;
  readonly control: ControlSocket;
  readonly gateway: Gateway;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly threads: Threads;
  /** Tells the sockets, and closes them. */
  readonly farewell: () => void;
  /** A standby may go on. */
  readonly mayHandOver: boolean;
  /** The lock of the data folder. */
  readonly lock: Database.Database;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly output: LogOutput;
}

/** Returns the function that stops the server and exits; after the first call it does nothing. */
export function createShutdown(options: ShutdownOptions): (signal: string) => Promise<void> {
  const { lifecycle, logger, trading, identity } = options;
  return async (signal) => {
    if (lifecycle.phase === "stopping") return;
    const hasFailed = lifecycle.phase === "failed";
    lifecycle.phase = "stopping";
    logger.info({ signal }, "shutting down");
    setTimeout(() => process.exit(1), SHUTDOWN_DEADLINE_MS).unref();
    await rejectNewWork(options);
    if (!hasFailed) await finishTrading(options);
    options.farewell();
    const { upkeep, bookHistory } = options.operators;
    await Promise.all([trading.history.close(), identity.notifier.close(), upkeep.close(), bookHistory.close()]);
    options.port.close();
    options.lock.close();
    logger.info("stopped");
    await options.output.flush(LOG_FLUSH_MS);
    process.exit(0);
  };
}

/** The projector ends once the tables include the whole log. */
export async function stopProjector({
  projector,
  projectorWaker,
  progress,
}: Pick<Threads, "projector" | "projectorWaker" | "progress">): Promise<void> {
  const exited = new Promise((resolve) => projector.once("exit", resolve));
  progress.requestStop();
  projectorWaker.wake();
  await exited;
}

/** Closes every entrance; resolves when requests of the command line, and passwords and pictures in work, are done. */
async function rejectNewWork({
  port,
  timers,
  control,
  gateway,
  identity,
  operators,
  notifying,
}: ShutdownOptions): Promise<void> {
  port.stopListening();
  for (const timer of timers) clearInterval(timer);
  const controlClosed = control.close();
  gateway.throttle.close();
  await notifying.notificationMails.stop();
  // A password that waits for its turn is rejected; one that is being hashed is finished.
  await identity.passwords.close();
  await operators.pictures.close();
  await controlClosed;
}

/** Waits for every accepted order and write, cancels orders with cancel on disconnect, then stops the engines, the log and the projector. */
async function finishTrading({ gateway, trading, identity, threads, mayHandOver }: ShutdownOptions): Promise<void> {
  const { exchange, writer } = trading;
  while (exchange.pending.size + writer.pendingCount > 0) {
    await new Promise((resolve) => setTimeout(resolve, PENDING_POLL_MS));
  }
  gateway.hub.cancelOnDisconnect();
  await exchange.turn.cancelsWritten();
  const exited = Promise.all(
    threads.workers.map(({ worker }) => new Promise((resolve) => worker.once("exit", resolve))),
  );
  await identity.lastUse.write();
  exchange.stopEngines();
  await exited;
  await Promise.all([stopProjector(threads), threads.replication?.stop(mayHandOver)]);
}
