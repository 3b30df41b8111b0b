/** Prepares the statements of all writes and dispatches each write to its kind. */
import type Database from "better-sqlite3";
import type { ApplyWrite, WriteContext } from "./context.ts";
import { Entries } from "./entries.ts";
import { prepareForgetLog } from "./forget-log.ts";
import { prepareMarketWrites } from "./markets.ts";
import { prepareMoneyWrites } from "./money.ts";
import { preparePlainRows } from "./plain-rows.ts";
import { prepareSettlement } from "./settlement.ts";
import { prepareSweep } from "./sweep.ts";
import { prepareUserWrites } from "./users.ts";

/** Returns a function that applies one write inside the caller's transaction. */
export function prepareWrites(db: Database.Database, context: WriteContext): ApplyWrite {
  const entries = new Entries(db, context);
  const applyRow = preparePlainRows(db);
  const users = prepareUserWrites(db, context);
  const sweep = prepareSweep(db);
  const forgetLog = prepareForgetLog(db, context);
  const money = prepareMoneyWrites(db, context, entries);
  const markets = prepareMarketWrites(db, context);
  const settle = prepareSettlement(db, context, entries);
  return (write) => {
    switch (write.kind) {
      case "insert":
      case "update":
        return applyRow(write);
      case "createUser":
        return users.createUser(write);
      case "deleteUser":
        return users.deleteUser(write);
      case "createToken":
        return users.createToken(write);
      case "setTerms":
        return users.setTerms(write);
      case "sweep":
        return sweep(write);
      case "forgetLog":
        return forgetLog(write);
      case "deposit":
        return money.deposit(write);
      case "reverseDeposit":
        return money.reverseDeposit(write);
      case "withdrawFromHouse":
        return money.withdrawFromHouse(write);
      case "payWithdrawal":
        return money.payWithdrawal(write);
      case "createEvent":
        return markets.createEvent(write);
      case "createMarket":
        return markets.createMarket(write);
      case "openMarket":
        return markets.openMarket(write);
      case "refuseMarket":
        return markets.refuseMarket(write);
      case "describeMarket":
        return markets.describeMarket(write);
      case "settleMarket":
        return settle(write);
    }
  };
}
