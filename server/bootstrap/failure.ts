/**
 * What happens when a thread or the disk fails: trading stops, every caller learns that the outcome is unknown, and the
 * process exits so that its supervisor restarts it. Nothing is retried within the process.
 */
import type { AccountWriter } from "../accounts/account-writer.ts";
import { FAILED, outcomeUnknown, overloaded } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { Lifecycle } from "./lifecycle.ts";

/** How long a server whose journal failed keeps responding 50300 before it exits. */
const FAILED_GRACE_MS = 10_000;

/** Stops trading for good. @param error for the log */
export type FailTrading = (thread: string, error: string) => void;

interface FailureOptions {
  readonly lifecycle: Lifecycle;
  readonly exchange: Exchange;
  readonly writer: AccountWriter;
  readonly logger: Logger;
}

/** Only the first failure counts, and none while the server stops. */
export function createFailureHandler({ lifecycle, exchange, writer, logger }: FailureOptions): FailTrading {
  return (thread, error) => {
    if (lifecycle.phase === "failed" || lifecycle.phase === "stopping") return;
    lifecycle.phase = "failed";
    logger.fatal({ thread, error }, "trading has stopped: nothing more can be made durable");
    const refusal = overloaded(FAILED);
    exchange.refusal = refusal;
    exchange.failPending(outcomeUnknown(FAILED));
    writer.refuse(refusal, outcomeUnknown(FAILED));
    setTimeout(() => process.exit(1), FAILED_GRACE_MS);
  };
}
