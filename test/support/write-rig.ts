/**
 * The gateway's admission of account writes in front of the real journal, on a database of its own. The test commits by
 * hand, and so decides what is in flight together. Nothing trades: the commands of the only engine stay in their ring.
 */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Journal } from "../../engine/log/journal.ts";
import type { JournalMessage, JournalReply, WriteRequest } from "../../engine/log/journal-messages.ts";
import { CommittedTotals } from "../../engine/log/totals.ts";
import { migrate, openDatabase } from "../../engine/projection/database.ts";
import { loadAccounts } from "../../engine/projection/load/accounts.ts";
import { OrderTexts } from "../../engine/ring/order-texts.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { AccountWriter, type Mailbox } from "../../server/accounts/account-writer.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import type { WriteLookups } from "../../server/accounts/types.ts";
import { createAdmission } from "../../server/bootstrap/admission.ts";
import { loadExchange } from "../../server/bootstrap/recovery.ts";
import { prepareHolders } from "../../server/queries/holder-reader.ts";
import { preparePayments } from "../../server/queries/payment-reader.ts";
import { ClientOrderIds } from "../../server/trading/client-order-ids.ts";
import { Exchange } from "../../server/trading/exchange.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { OrderTimes } from "../../server/trading/order-times.ts";
import { nodeLoop } from "../../server/trading/turn-loop.ts";
import { TradingWriteProjection } from "../../server/trading/write-projection.ts";
import { Counters } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import { temporaryFolder } from "./server.ts";

const RECORDS = 2_048;
const LIVE_ORDERS = 16;
const LARGEST_ID = 1_000;
export const RIG_NOW = 1_800_000_000_000;

class HandMailbox implements Mailbox {
  readonly posted: WriteRequest[] = [];
  receive: (reply: JournalReply) => void = () => {};

  post(message: JournalMessage): void {
    if (message !== "checkpointed") this.posted.push(message);
  }

  listen(receive: (reply: JournalReply) => void): void {
    this.receive = receive;
  }

  drain(): JournalReply[] {
    return [];
  }
}

export class WriteRig {
  readonly path: string;
  readonly db: ReturnType<typeof openDatabase>;
  readonly accounts = new Accounts(() => {});
  readonly exchange: Exchange;
  readonly writer: AccountWriter;
  private readonly mailbox = new HandMailbox();
  private readonly journal: Journal;

  /** @param path of an earlier rig's database, for a restart */
  constructor(path = join(temporaryFolder(), "exchange.db")) {
    this.path = path;
    const db = openDatabase(path, "off");
    this.db = db;
    migrate(db);
    const { ledger, registry, state } = loadExchange(db);
    this.accounts.load(loadAccounts(db, 0, 0, { since: 0, most: 0 }));
    this.exchange = openExchange(ledger, registry, state.lastOrderId);
    const lookups = this.openLookups();
    this.writer = new AccountWriter({
      admission: createAdmission({ db, accounts: this.accounts, ledger, registry, lookups, largestId: LARGEST_ID }),
      mailbox: this.mailbox,
      trading: new TradingWriteProjection(this.exchange),
      accounts: this.accounts,
      time: () => RIG_NOW,
      checkpoint: () => Promise.resolve(),
    });
    this.journal = openJournal(path);
    onTestFinished(() => this.close());
  }

  private openLookups(): WriteLookups {
    const { payments, isWithdrawalReference } = preparePayments(this.db);
    const holders = prepareHolders(this.db);
    return {
      payment: async (reference) => payments({ references: [reference] })[0] ?? null,
      isWithdrawalReference: async (reference) => isWithdrawalReference({ reference }),
      holders: async (first, count) => holders({ first, count }),
    };
  }

  /** The requests that wait for a commit. */
  get posted(): readonly WriteRequest[] {
    return this.mailbox.posted;
  }

  /** Commits what was posted and delivers the replies, until nothing more comes of it. */
  async commit(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const requests = this.mailbox.posted.splice(0);
      if (requests.length === 0) return;
      for (const reply of this.journal.commit(() => requests) ?? []) this.mailbox.receive(reply);
    }
  }

  rows(sql: string): unknown[] {
    return this.db.prepare(sql).all();
  }

  /** Stops, and starts again on the same database. */
  restart(): WriteRig {
    this.close();
    return new WriteRig(this.path);
  }

  private close(): void {
    if (!this.db.open) return;
    this.db.close();
    this.journal.close();
  }
}

function openExchange(ledger: Exchange["ledger"], registry: Exchange["registry"], lastOrderId: number): Exchange {
  const link = {
    commands: new RingProducer(createRing(RECORDS)),
    events: new RingConsumer(createRing(RECORDS), true),
    waker: new Waker(),
  };
  return new Exchange({
    ...{ links: [link], loop: nodeLoop(new Waker()), ledger, registry, lastOrderId },
    store: new OrderStore(LIVE_ORDERS),
    clientOrderIds: new ClientOrderIds(RIG_NOW),
    userSequences: [],
    counters: new Counters(),
    times: new OrderTimes(() => 0, LIVE_ORDERS),
    timeline: new Timeline(RIG_NOW),
  });
}

function openJournal(path: string): Journal {
  return new Journal({
    db: openDatabase(path, "off"),
    gates: [],
    texts: new OrderTexts(1),
    totals: new CommittedTotals(),
    now: () => RIG_NOW,
    clock: () => 0,
    onCommit: () => {},
    requestCheckpoint: () => {},
    largestId: LARGEST_ID,
  });
}
