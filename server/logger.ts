/** JSON lines on stdout. Nothing here ever gets a token, a password or a code to write. */
import { type Logger as PinoLogger, pino } from "pino";
import type { ApiError } from "./errors.ts";

export type Logger = PinoLogger;

export function createLogger(level: string): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 1, sync: true }),
  );
}

/**
 * An answer's 500 leaves a line, by the trace id that the caller is told, and so does what another server did wrong (its
 * cause is given as text). What the caller did wrong leaves none.
 */
export function logInternal(logger: Logger, error: ApiError, traceId: string): void {
  const { cause, message, kind } = error;
  if (kind.status === 500) logger.error({ traceId, err: cause }, message);
  else if (cause !== undefined) logger.warn({ traceId, cause }, message);
}
