/**
 * The entry of the history pool's threads: each export is a job that history.ts names. A job reads what is finished, in
 * one read transaction on a read-only connection. The readers of each subject are beside this file.
 */
import { workerData } from "node:worker_threads";
import { archivesBeside, LogFiles } from "../../engine/log/log-files.ts";
import { prepareObsoleteRows } from "../../engine/projection/writes/sweep.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { copyReport, reportJson } from "../orders/order-json.ts";
import { prepareBookFiles } from "./book-files.ts";
import { prepareCandles, prepareHourlyPrices } from "./candle-reader.ts";
import { prepareExports } from "./export-reader.ts";
import { prepareFills } from "./fill-reader.ts";
import type { HistoryFiles } from "./history.ts";
import { prepareHolders } from "./holder-reader.ts";
import { prepareKeyLookup } from "./idempotency-reader.ts";
import { prepareNotifications, prepareUsersWithNews } from "./notification-reader.ts";
import { prepareOperatorReads } from "./operator-reader.ts";
import { prepareOrders } from "./order-reader.ts";
import { prepareUpdates } from "./order-update-reader.ts";
import { preparePayments } from "./payment-reader.ts";
import { preparePictures } from "./picture-reader.ts";
import { preparePortfolio } from "./portfolio-reader.ts";
import { prepareSearch } from "./search-reader.ts";
import { prepareTrail } from "./trail-reader.ts";
import { prepareTransactions } from "./transaction-reader.ts";

const files = workerData as HistoryFiles;
const db = openReadOnly(files.tables);
const log = new LogFiles({ journal: files.journal, archives: archivesBeside(files.journal) });

/** Runs `read` in one read transaction, so that all rows that it reads are of one moment. */
function snapshot<A extends unknown[], R>(read: (...args: A) => R): (...args: A) => R {
  return db.transaction(read);
}

const fillReader = prepareFills(db);
export const fills = snapshot(fillReader.fills);
export const trades = snapshot(fillReader.trades);
export const hourlyVolumes = snapshot(fillReader.hourlyVolumes);

const orderReader = prepareOrders(db, fillReader);
export const order = snapshot(orderReader.order);
export const orders = snapshot(orderReader.orders);
export const endedOrders = snapshot(orderReader.endedOrders);
export const builder = snapshot(orderReader.builder);
export const updates = snapshot(prepareUpdates(db, log, fillReader, reportJson));
export const updateReports = snapshot(prepareUpdates(db, log, fillReader, (report) => copyReport(report)));

const transactionReader = prepareTransactions(db, fillReader);
export const transactions = snapshot(transactionReader.transactions);

const paymentReader = preparePayments(db);
export const deposits = snapshot(paymentReader.deposits);
export const payments = snapshot(paymentReader.payments);
export const withdrawals = snapshot(paymentReader.withdrawals);
export const withdrawal = snapshot(paymentReader.withdrawal);
export const settlements = snapshot(paymentReader.settlements);
export const withdrawalPaidWith = snapshot(paymentReader.withdrawalPaidWith);
export const reversibleDeposit = snapshot(paymentReader.reversibleDeposit);
export const lines = snapshot(
  prepareExports(db, {
    orders: orderReader,
    fills: fillReader,
    payments: paymentReader,
    transactions: transactionReader,
  }),
);
export const notifications = snapshot(prepareNotifications(fillReader, paymentReader));
export const usersWithNews = snapshot(prepareUsersWithNews(db));
export const portfolio = snapshot(preparePortfolio(db));
export const holders = snapshot(prepareHolders(db));
export const hasObsoleteRows = snapshot(prepareObsoleteRows(db));

const operatorReads = prepareOperatorReads(db);
export const applications = snapshot(operatorReads.applications);
export const application = snapshot(operatorReads.application);
export const audits = snapshot(operatorReads.audits);
export const trail = snapshot(prepareTrail(db));

const bookFiles = prepareBookFiles(files.bookHistory);
export const { days: bookDays, file: bookFile, piece: bookPiece } = bookFiles;

export const candles = snapshot(prepareCandles(db));
export const hourlyPrices = snapshot(prepareHourlyPrices(db));
export const picture = snapshot(preparePictures(db));
export const search = snapshot(prepareSearch(db));
export const idempotencyKey = snapshot(prepareKeyLookup(db));
