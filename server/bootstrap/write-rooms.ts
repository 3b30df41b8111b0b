/** Constructs the admission of account writes from the database that was just loaded. */
import type Database from "better-sqlite3";
import type { Ledger } from "../../engine/ledger.ts";
import { loadLastIds } from "../../engine/projection/load/last-ids.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { PaymentAdmission } from "../accounts/payment-admission.ts";
import { RowIds } from "../accounts/row-ids.ts";
import type { WriteLookups } from "../accounts/types.ts";
import { WriteAdmission } from "../accounts/write-admission.ts";
import { MarketWriteAdmission } from "../markets/market-admission.ts";
import type { MarketRegistry } from "../markets/registry.ts";

export interface AdmissionOptions {
  readonly db: Database.Database;
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly lookups: WriteLookups;
  /** The largest id that an outcome can have. */
  readonly largestId?: number;
}

export function createAdmission({ db, accounts, ledger, registry, lookups, largestId }: AdmissionOptions) {
  const lastIds = loadLastIds(db);
  const ids = new RowIds(lastIds);
  const { revokedTokens } = lastIds;
  const payments = new PaymentAdmission({ ledger, accounts, lookups });
  const markets = new MarketWriteAdmission({ registry, ids, lookups, largestId });
  return new WriteAdmission({ accounts, ids, revokedTokens, payments, markets });
}
