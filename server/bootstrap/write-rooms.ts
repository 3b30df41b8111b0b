/** Constructs the rooms' parts of the road into the log, from the database that was just loaded. */
import type Database from "better-sqlite3";
import { loadLastIds } from "../../engine/projection/load/last-ids.ts";
import { AccountWrites } from "../accounts/account-writes.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { UserIds } from "../accounts/user-ids.ts";
import { type MarketLookups, MarketWrites } from "../markets/market-writes.ts";
import type { Exchange } from "../trading/exchange.ts";
import { type PaymentLookups, PaymentWrites } from "../wallet/payment-writes.ts";
import { PlainWrites } from "../writes/plain-writes.ts";
import { RowIds } from "../writes/row-ids.ts";
import type { WriteKind, WriteRoom } from "../writes/types.ts";

export interface WriteRoomsOptions {
  readonly db: Database.Database;
  readonly accounts: Accounts;
  readonly exchange: Exchange;
  readonly lookups: PaymentLookups & MarketLookups;
  /** The largest id that an outcome can have. */
  readonly largestId?: number;
}

/** Doesn't compile where a kind of write belongs to none of the rooms. */
function coveringAll<Room extends WriteRoom>(
  rooms: readonly Room[] & ([Exclude<WriteKind, Room["kinds"][number]>] extends [never] ? unknown : never),
): readonly WriteRoom[] {
  return rooms;
}

export function createWriteRooms(options: WriteRoomsOptions): readonly WriteRoom[] {
  const { db, accounts, exchange, lookups, largestId } = options;
  const last = loadLastIds(db);
  const ids = new RowIds(last.rows);
  const { ledger, registry, cash } = exchange;
  const users = new AccountWrites({
    ...{ accounts, ids, userIds: new UserIds(last), revokedTokens: last.revokedTokens },
    opened: (userId) => ledger.openAccount(userId),
  });
  return coveringAll([
    new PlainWrites(ids, (write) => users.updated(write)),
    users,
    new PaymentWrites({ ledger, cash, accounts, lookups }),
    new MarketWrites({ registry, trading: exchange, ids, lookups, largestId }),
  ]);
}
