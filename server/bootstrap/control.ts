/** Opens the control socket of the data folder, over which the command line reaches this server. */
import { Histogram } from "../../engine/util/histogram.ts";
import { createControlHandlers } from "../control/control-handlers.ts";
import { ControlSocket } from "../control/control-socket.ts";
import type { Logger } from "../logger.ts";
import { demote, keysCopied, standbyStatus } from "../replication/standby-status.ts";
import { controlPath } from "../util/data-folder.ts";
import type { AccountServices } from "./account-services.ts";
import type { Config } from "./config.ts";
import type { Gateway } from "./gateway.ts";
import type { HeldLog } from "./held-log.ts";
import type { Threads } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";

interface ControlOptions {
  readonly config: Config;
  readonly gateway: Gateway;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly threads: Threads;
  readonly heldLog: HeldLog | null;
  readonly logger: Logger;
}

/** The server runs on without it where it can't be opened. */
export function openControlSocket({ config, gateway, trading, identity, threads, heldLog, logger }: ControlOptions) {
  const { replication, progress } = threads;
  const commitTimes = new Histogram(threads.commitTimes);
  const { accounts, passwords, keys, factors, factorSettings } = identity;
  const { exchange, writer, clock } = trading;
  const handle = createControlHandlers({
    ...{ accounts, passwords, keys, factors, factorSettings, writer, clock, logger },
    routes: gateway.routes,
    admission: gateway.admission,
    reads: exchange.reads,
    keysCopied: () => keysCopied(replication),
    demote: () => demote(replication),
    standbyStatus: () => standbyStatus({ replication, progress, behind: heldLog, commitTimes }),
  });
  const control = new ControlSocket(controlPath(config.dataDir), handle);
  control.server.on("error", (error) =>
    logger.warn({ err: error }, "no control socket: commands of npm run admin can't reach this server"),
  );
  return control;
}
