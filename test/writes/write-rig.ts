/**
 * The gateway's admission of writes in front of the real log and projector, on files of their own. The test
 * commits by hand, and so decides what is in flight together. Nothing trades: the commands of the only engine stay in their ring.
 */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openJournal } from "../../engine/log/database.ts";
import { Log } from "../../engine/log/log.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import type { LogMessage, LogReply, LogRequest } from "../../engine/log/messages.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { type LoggedRequest, unpackRequest } from "../../engine/log/request.ts";
import { migrate } from "../../engine/projection/database.ts";
import { projectAll } from "../../engine/projection/follow.ts";
import { loadAccounts } from "../../engine/projection/load/accounts.ts";
import { Projector } from "../../engine/projection/projector.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import { OrderTexts } from "../../engine/ring/order-texts.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { openDatabase } from "../../engine/util/wal-database.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import { loadExchange } from "../../server/bootstrap/recovery.ts";
import { createWriteRooms } from "../../server/bootstrap/write-rooms.ts";
import type { MarketLookups } from "../../server/markets/market-writes.ts";
import { prepareHolders } from "../../server/queries/holder-reader.ts";
import { preparePayments } from "../../server/queries/payment-reader.ts";
import { ClientOrderIds } from "../../server/trading/client-order-ids.ts";
import { Exchange } from "../../server/trading/exchange.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { OrderTimes } from "../../server/trading/order-times.ts";
import { nodeLoop } from "../../server/trading/turn-loop.ts";
import { Counters } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import type { PaymentLookups } from "../../server/wallet/payment-writes.ts";
import { LogWriter } from "../../server/writes/log-writer.ts";
import type { Mailbox } from "../../server/writes/mailbox.ts";
import { temporaryFolder } from "../support/server.ts";

const RECORDS = 2_048;
const LIVE_ORDERS = 16;
const LARGEST_ID = 1_000;
export const RIG_NOW = 1_800_000_000_000;

class HandMailbox implements Mailbox {
  readonly posted: LogRequest[] = [];
  receive: (reply: LogReply) => void = () => {};

  post(message: LogMessage): void {
    if ("payload" in message) this.posted.push(message);
  }

  listen(receive: (reply: LogReply) => void): void {
    this.receive = receive;
  }

  drain(): LogReply[] {
    return [];
  }
}

export class WriteRig {
  readonly folder: string;
  readonly db: ReturnType<typeof openDatabase>;
  readonly accounts = new Accounts(() => {});
  readonly exchange: Exchange;
  readonly writer: LogWriter;
  private readonly mailbox = new HandMailbox();
  private readonly log: Log;
  private readonly bodies: JournalReader;
  private readonly projector: Projector;

  /** @param folder of an earlier rig's files, for a restart */
  constructor(folder = temporaryFolder()) {
    this.folder = folder;
    const db = openDatabase(join(folder, "exchange.db"), "off");
    this.db = db;
    migrate(db);
    const journal = openJournal(join(folder, "journal.db"), "off");
    const end = recoverTables(db, journal, { largestId: LARGEST_ID });
    const { ledger, registry, state } = loadExchange(db, systemClock);
    this.accounts.load(loadAccounts(db, 0, 0, { since: 0, most: 0 }));
    this.exchange = openExchange(ledger, registry, state.lastOrderId);
    const lookups = this.openLookups();
    this.writer = new LogWriter({
      rooms: createWriteRooms({ db, accounts: this.accounts, exchange: this.exchange, lookups, largestId: LARGEST_ID }),
      mailbox: this.mailbox,
      gate: this.exchange.gate,
      time: () => RIG_NOW,
    });
    this.log = new Log({
      ...{ db: journal, end, rates: [], gates: [], texts: new OrderTexts(1), progress: new LogProgress() },
      last: { entry: state.lastEntryId, at: state.at, updates: [] },
      now: () => RIG_NOW,
      clock: () => 0,
      onCommit: () => {},
      requestCheckpoint: () => {},
      replication: null,
    });
    this.bodies = new JournalReader(journal);
    this.projector = new Projector(db, this.bodies, { largestId: LARGEST_ID });
    onTestFinished(() => this.close());
  }

  private openLookups(): PaymentLookups & MarketLookups {
    const { payments, reversibleDeposit, withdrawalPaidWith } = preparePayments(this.db);
    const holders = prepareHolders(this.db);
    return {
      payment: async (reference) => payments({ references: [reference] })[0] ?? null,
      reversibleDeposit: async (id) => reversibleDeposit({ id }),
      withdrawalPaidWith: async (reference) => withdrawalPaidWith({ reference }),
      holders: async (first, count) => holders({ first, count }),
    };
  }

  /** The requests that wait for a commit. */
  get posted(): readonly LoggedRequest[] {
    return this.mailbox.posted.map(({ payload }) => unpackRequest(Buffer.from(payload)));
  }

  /** Commits what was posted and delivers the replies, until nothing more comes of it. */
  async commit(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const requests = this.mailbox.posted.splice(0);
      if (requests.length === 0) return;
      const replies = this.log.commit(() => requests) ?? [];
      projectAll(this.projector, this.bodies);
      for (const reply of replies) this.mailbox.receive(reply);
    }
  }

  rows(sql: string): unknown[] {
    return this.db.prepare(sql).all();
  }

  /** Stops, and starts again on the same files. */
  restart(): WriteRig {
    this.close();
    return new WriteRig(this.folder);
  }

  private close(): void {
    if (!this.db.open) return;
    this.db.close();
    this.log.close();
  }
}

function openExchange(ledger: Exchange["ledger"], registry: Exchange["registry"], lastOrderId: number): Exchange {
  const link = {
    commands: new RingProducer(createRing(RECORDS)),
    events: new RingConsumer(createRing(RECORDS), true),
    waker: new Waker(),
  };
  return new Exchange({
    projected: { isDue: false, resolveDue() {} },
    ...{ links: [link], loop: nodeLoop(new Waker(), systemClock), ledger, registry, lastOrderId },
    store: new OrderStore(LIVE_ORDERS),
    clientOrderIds: new ClientOrderIds(RIG_NOW),
    userSequences: [],
    counters: new Counters(),
    times: new OrderTimes(() => 0, LIVE_ORDERS),
    timeline: new Timeline(RIG_NOW),
  });
}
