/** Constructs what operators decide on: approvals by two persons, withdrawals, the life of markets, suspensions. */
import { Reason } from "../../engine/constants.ts";
import { loadApprovals, loadPendingWithdrawals } from "../../engine/projection/load/wallet.ts";
import { Approvals } from "../accounts/approvals.ts";
import { Suspensions } from "../accounts/suspensions.ts";
import { historyFolder } from "../book-history/history-folder.ts";
import type { Logger } from "../logger.ts";
import { MarketLifecycle } from "../markets/lifecycle.ts";
import { Pictures } from "../markets/pictures.ts";
import { textReply } from "../orders/json-reply.ts";
import { LogUpkeep } from "../service/log-upkeep.ts";
import { Withdrawals } from "../wallet/withdrawals.ts";
import type { AccountServices } from "./account-services.ts";
import { createBookHistory } from "./book-history.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { TradingServices } from "./trading-services.ts";

interface OperatorOptions {
  readonly config: Config;
  readonly database: ExchangeDatabase;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly logger: Logger;
  /** Gets the error that a thread of a pool died of, by the pool's name. */
  readonly onThreadLost: (name: string) => (error: Error) => void;
  /** Ends the sockets of a suspended user. */
  readonly endSockets: ConstructorParameters<typeof Suspensions>[0]["endSockets"];
}

export type OperatorServices = ReturnType<typeof createOperatorServices>;

/** Loads open approvals and pending withdrawals from the database. */
export function createOperatorServices(options: OperatorOptions) {
  const { config, database, trading, identity, endSockets } = options;
  const { exchange, entry, history, writer } = trading;
  const { accounts, notifier, revokeAccess } = identity;
  const { db } = database;
  const approvals = new Approvals(writer, accounts, config.twoPersonRule, loadApprovals(db));
  const payers = { exchange, accounts, history, writer, approvals, notifier };
  const withdrawals = new Withdrawals(payers, loadPendingWithdrawals(db));
  const pictures = new Pictures(options.onThreadLost("picture"));
  const life = new MarketLifecycle({ exchange, writer, approvals, accounts, notifier, pictures });
  const suspensions = new Suspensions({
    accounts,
    writer,
    revokeAccess,
    endSockets,
    cancelOrders: (userId) =>
      new Promise((resolve) => {
        const done = (): void => resolve();
        entry.cancelAll(userId, {}, exchange.clock.now(), textReply(done, done), Reason.operator);
      }),
  });
  return {
    approvals,
    withdrawals,
    life,
    pictures,
    suspensions,
    upkeep: createUpkeep(options),
    bookHistory: createBookHistory({ ...options, isFollower: false }),
  };
}

function createUpkeep({ config, database, trading, logger }: OperatorOptions): LogUpkeep {
  const { path: tables, journalPath: journal, archives, logSince: since } = database;
  const { dataDir, logDays, historyDays: days } = config;
  const history = config.history ? { folder: historyFolder(dataDir), days } : null;
  const job = { journal, tables, archives, logDays, history };
  return new LogUpkeep({ job, since, logger, progress: trading.progress, writer: trading.writer });
}
