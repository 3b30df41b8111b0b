/**
 * Counts the connections of clients and bounds them: plain HTTP connections, and all of them by the files that the process
 * may open. Without a file to spare the system accepts nothing, and uWebSockets.js asks again without a pause: a core would
 * spin, and nothing else could open a file. A connection beyond the bound is accepted and closed at once. So is one of a client
 * that holds more than its share while the room is contested: nobody can shut others out alone.
 */
import type { HttpResponse, TemplatedApp } from "uWebSockets.js";
import { readdirSync, readFileSync } from "node:fs";
import { systemClock } from "../../engine/util/clock.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { countClients } from "./address-census.ts";
import { type AddressReader, addressListOf, createAddressReader, isListed } from "./client-address.ts";
import {
  CENSUS_MS,
  CLIENTS_SHARE,
  CONTESTED_ROOM,
  MAX_HTTP_CONNECTIONS,
  MIN_CONNECTIONS,
  REPORT_REFUSED_MS,
  SPARE_FILES,
} from "./limits.ts";

/** The process's open files: on Linux and macOS each has a number in this folder. */
const OPEN_FILES = "/dev/fd";

/** The limit of open files; infinite where there is none. */
function fileLimit(): number {
  try {
    // A report takes thirty milliseconds.
    const soft = /^Max open files +(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    if (soft !== undefined) return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    // Not Linux.
  }
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

export interface ConnectionsOptions {
  /** For all connections. */
  readonly room: number;
  /** Open WebSockets. */
  readonly countSockets: () => number;
  /** Open WebSockets of a client. */
  readonly countSocketsOf: (client: string) => number;
  /** Those of addresses and ranges that may hold any number. */
  readonly trustedProxies: readonly string[];
  readonly port: { readonly number: number };
  readonly logger: Logger;
}

export class Connections {
  /** Open HTTP connections that are no WebSockets. */
  plain = 0;
  /** Connections that were closed at once. */
  refused = 0;
  private readonly options: ConnectionsOptions;
  /** For connections that are no WebSockets. */
  private readonly plainRoom: number;
  private readonly addressOf: AddressReader;
  private readonly isProxy: (address: string) => boolean;
  /** Of clients that hold many: the last census. */
  private held = new Map<string, number>();
  /** Opened since the last census began. */
  private opened = new Map<string, number>();
  private censusAt = Number.NEGATIVE_INFINITY;
  private isCounting = false;
  private reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionsOptions) {
    this.options = options;
    this.plainRoom = Math.min(options.room, MAX_HTTP_CONNECTIONS);
    const proxies = addressListOf(options.trustedProxies);
    this.isProxy = (address) => isListed(proxies, address);
    this.addressOf = createAddressReader([]);
  }

  register(app: TemplatedApp): void {
    const count = (res: HttpResponse, change: number): void => {
      this.plain += change;
      if (change < 0 || (this.hasRoom() && !this.isBeyondShare(res))) return;
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

  private hasRoom(): boolean {
    return this.plain <= this.plainRoom && this.plain + this.options.countSockets() <= this.options.room;
  }

  /** True where the room is contested and the connection's client holds more than its share. */
  private isBeyondShare(res: HttpResponse): boolean {
    if (this.plain <= this.plainRoom * CONTESTED_ROOM) return false;
    void this.takeCensus();
    const peer = Buffer.from(res.getRemoteAddressAsText()).toString("latin1");
    const { address, client } = this.addressOf(peer, "");
    const opened = (this.opened.get(client) ?? 0) + 1;
    this.opened.set(client, opened);
    const held = (this.held.get(client) ?? 0) + opened - this.options.countSocketsOf(client);
    return held > this.plainRoom * CLIENTS_SHARE && !this.isProxy(address);
  }

  private async takeCensus(): Promise<void> {
    const now = systemClock.elapsed();
    if (this.isCounting || now < this.censusAt + CENSUS_MS) return;
    this.isCounting = true;
    this.censusAt = now;
    // Until it is done.
    for (const [client, count] of this.opened) this.held.set(client, (this.held.get(client) ?? 0) + count);
    this.opened = new Map();
    try {
      this.held = await countClients(this.options.port.number, (this.plainRoom * CLIENTS_SHARE) / 2);
    } catch (error) {
      // Not Linux.
      this.held = new Map();
      this.options.logger.debug({ err: error }, "connections can't be counted by client");
    }
    this.isCounting = false;
  }

  private report(): void {
    const now = systemClock.elapsed();
    if (now < this.reportedAt + REPORT_REFUSED_MS) return;
    this.reportedAt = now;
    const counts = {
      plain: this.plain - 1,
      sockets: this.options.countSockets(),
      room: this.options.room,
      refused: this.refused,
    };
    this.options.logger.warn(counts, "too many connections: new ones are closed at once");
  }
}
