/**
 * Counts the connections of clients and bounds them: plain HTTP connections, and all of them by the files that the process
 * may open. Without a file to spare the system accepts nothing, and uWebSockets.js asks again without a pause: a core would
 * spin, and nothing else could open a file. A connection beyond the bound is accepted and closed at once.
 */
import type { HttpResponse, TemplatedApp } from "uWebSockets.js";
import { readdirSync } from "node:fs";
import { systemClock } from "../../engine/util/clock.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { MAX_HTTP_CONNECTIONS, MIN_CONNECTIONS, REPORT_REFUSED_MS, SPARE_FILES } from "./limits.ts";

/** The process's open files: on Linux and macOS each has a number in this folder. */
const OPEN_FILES = "/dev/fd";

/** The limit of open files; infinite where there is none. */
function fileLimit(): number {
  const { report } = process;
  // Otherwise it asks for the names of all addresses.
  Object.assign(report, { excludeNetwork: true });
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | "unlimited" } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}

/**
 * How many connections the limit of open files has room for, beside the files that are open already and some to spare.
 * @param most as many as the exchange takes
 * @throws ConfigError where it has room for hardly any
 */
export function roomForConnections(most: number, logger: Logger): number {
  const limit = fileLimit();
  const own = readdirSync(OPEN_FILES).length + SPARE_FILES;
  const room = limit - own;
  if (room < MIN_CONNECTIONS) {
    const least = own + MIN_CONNECTIONS;
    throw new ConfigError(`the limit of open files is ${limit}, the exchange needs ${least}: ulimit -n, LimitNOFILE`);
  }
  if (room < most) {
    const text =
      "the limit of open files has room for fewer connections than the exchange would take: ulimit -n, LimitNOFILE";
    logger.info({ limit, room, most }, text);
  }
  return Math.min(room, most);
}

export class Connections {
  /** Open HTTP connections that are no WebSockets. */
  plain = 0;
  /** Connections that were closed at once. */
  refused = 0;
  private readonly room: number;
  private readonly countSockets: () => number;
  private readonly logger: Logger;
  private reportedAt = Number.NEGATIVE_INFINITY;

  /** @param room for all connections @param countSockets open WebSockets */
  constructor(room: number, countSockets: () => number, logger: Logger) {
    this.room = room;
    this.countSockets = countSockets;
    this.logger = logger;
  }

  register(app: TemplatedApp): void {
    const count = (res: HttpResponse, change: number): void => {
      this.plain += change;
      if (change < 0 || (this.plain <= MAX_HTTP_CONNECTIONS && this.plain + this.countSockets() <= this.room)) return;
      this.refused++;
      this.report();
      // Calls this function again, with -1.
      res.close();
    };
    app.filter(count);
  }

  /** A connection became a WebSocket: uWebSockets.js doesn't say when it ends. */
  upgraded(): void {
    this.plain--;
  }

  private report(): void {
    const now = systemClock.elapsed();
    if (now < this.reportedAt + REPORT_REFUSED_MS) return;
    this.reportedAt = now;
    const counts = { plain: this.plain - 1, sockets: this.countSockets(), room: this.room, refused: this.refused };
    this.logger.warn(counts, "too many connections: new ones are closed at once");
  }
}
