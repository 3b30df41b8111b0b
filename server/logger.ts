/** JSON lines on stdout. No line ever holds a token, a password or a code. */
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
 * A response 500 leaves a line with the trace id that the client sees. So does an error of another server, whose cause
 * is text. A client's own mistake leaves none.
 */
export function logInternal(logger: Logger, error: ApiError, traceId: string): void {
  const { cause, message, kind } = error;
  if (kind.status === 500) logger.error({ traceId, err: cause }, message);
  else if (cause !== undefined) logger.warn({ traceId, cause }, message);
}
