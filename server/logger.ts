/** JSON lines on stdout, which never wait for their reader. No line ever holds a token, a password or a code. */
import { type LogFn, type Logger as PinoLogger, pino } from "pino";
import { systemClock } from "../engine/util/clock.ts";
import type { ApiError } from "./errors.ts";
import { LineLimit } from "./util/line-limit.ts";
import { FATAL, LogOutput } from "./util/log-output.ts";

export type Logger = PinoLogger;

/** How often messages whose lines were left out are counted. */
const LEFT_OUT_TICK_MS = 10_000;

/** The log, and where its lines go. */
export interface Log {
  readonly logger: Logger;
  readonly output: LogOutput;
}

export function createLog(level: string): Log {
  const output = new LogOutput();
  const limit = new LineLimit();
  const logMethod = function (this: Logger, args: Parameters<LogFn>, method: LogFn, lineLevel: number): void {
    const message = args.find((argument) => typeof argument === "string") ?? "";
    if (lineLevel >= FATAL || limit.admits(message, systemClock.elapsed())) method.apply(this, args);
  };
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, hooks: { logMethod } }, output);
  output.onReadAgain((dropped) => logger.warn({ dropped }, "log lines were dropped: nobody read them"));
  const count = (): void => {
    for (const each of limit.leftOut(systemClock.elapsed()) ?? [])
      logger.warn(each, "lines of one message were left out");
  };
  setInterval(count, LEFT_OUT_TICK_MS).unref();
  return { logger, output };
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
