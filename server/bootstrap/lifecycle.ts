/**
 * The server's phase, and what happens when a thread or the disk fails: trading stops, every caller learns that the outcome
 * is unknown, and the process exits so that its supervisor restarts it. Nothing is retried within the process.
 */
import { type ApiError, FAILED, FENCED_EXIT, outcomeUnknown, overloaded, STARTING, STOPPING } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { ProjectedReads } from "../queries/projected-reads.ts";
import type { Replication } from "../replication/replication.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { LogWriter } from "../writes/log-writer.ts";

type Phase = "starting" | "ready" | "failed" | "stopping";

/** By phase: the error for every request outside health checks; null where the server accepts requests. */
const REJECTIONS: Readonly<Record<Phase, ApiError | null>> = {
  starting: overloaded(STARTING),
  ready: null,
  failed: null,
  stopping: overloaded(STOPPING),
};

export class Lifecycle {
  private current: Phase = "starting";
  private hasBeenReady = false;
  /** The error for requests that change something; null while they are accepted. */
  writeRejection: ApiError | null = null;

  /** The error for every request outside health checks; null while the server accepts requests. */
  get rejection(): ApiError | null {
    // A start that fails hasn't checked what it would show.
    return this.current === "failed" && !this.hasBeenReady ? REJECTIONS.starting : REJECTIONS[this.current];
  }

  get phase(): Phase {
    return this.current;
  }

  set phase(phase: Phase) {
    this.current = phase;
    if (phase === "ready") this.hasBeenReady = true;
  }

  /** Why the exchange does not trade; null while it does. */
  readonly unready = (): string | null => {
    if (this.phase !== "ready") return this.phase;
    return this.writeRejection === null ? null : "held";
  };
}

/** The tables follow no more: what they include can still be read. */
const PROJECTOR = "projector";
/** How long a server that has failed keeps responding 50300 before it exits. */
const FAILED_GRACE_MS = 10_000;
/** How long requests in flight have to get their response, where another box is active. */
const FENCED_GRACE_MS = 250;

/** What an operator does about it, by the error's text. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /SQLITE_BUSY|database is locked/,
    "another program holds a lock on journal.db: end its transaction (fuser -v journal.db); the exchange starts again by itself",
  ],
  [/SQLITE_FULL|ENOSPC|database or disk is full/, "the disk is full: free space; the exchange starts again by itself"],
];

/** Stops trading for good. @param error for the log @param isFenced true where another box is active, and trades */
export type FailTrading = (thread: string, error: string, isFenced?: boolean) => void;

const FENCED = "fenced: another box is active, and this one follows from its next start on";

interface FailureOptions {
  readonly lifecycle: Lifecycle;
  readonly exchange: Exchange;
  readonly writer: LogWriter;
  readonly projected: ProjectedReads;
  /** Null on a single box. */
  readonly replication: Pick<Replication, "stop" | "successor"> | null;
  /** Tells the sockets where to go on, and closes them. */
  readonly farewell: () => void;
  readonly logger: Logger;
}

/** Only the first failure stops trading, and none while the server stops. Reads end once the projector fails, first or not. */
export function createFailureHandler(options: FailureOptions): FailTrading {
  const { lifecycle, exchange, writer, projected, replication, farewell, logger } = options;
  /** Another box goes on: clients that hear of it needn't wait. */
  const leave = (wasReady: boolean, code: number): void => {
    if (wasReady) farewell();
    setTimeout(() => process.exit(code), FENCED_GRACE_MS);
  };
  return (thread, error, isFenced = false) => {
    if (lifecycle.phase === "stopping") return;
    if (thread === PROJECTOR) projected.end();
    if (lifecycle.phase === "failed") return;
    const wasReady = lifecycle.phase === "ready";
    lifecycle.phase = "failed";
    const remedy = REMEDIES.find(([pattern]) => pattern.test(error))?.[1];
    const line = remedy === undefined ? { thread, error } : { thread, error, remedy };
    logger.fatal(line, isFenced ? FENCED : "trading has stopped: nothing more can be made durable");
    exchange.gate.fail(overloaded(FAILED));
    exchange.failPending(outcomeUnknown(FAILED));
    writer.failPending(outcomeUnknown(FAILED));
    if (isFenced) return leave(wasReady, FENCED_EXIT);
    setTimeout(() => process.exit(1), FAILED_GRACE_MS);
    // What the log has is durable: a standby goes on at once.
    void replication?.stop(true).then(() => {
      if (replication.successor !== null) leave(wasReady, 1);
    });
  };
}
