/** JSON lines on stdout. Nothing here ever gets a token, a password or a code to write. */
import { type Logger as PinoLogger, pino } from "pino";

export type Logger = PinoLogger;

export function createLogger(level: string): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 1, sync: true }),
  );
}
