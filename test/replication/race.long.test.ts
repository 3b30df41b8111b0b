/** Two processes that both want to lead: nothing of the older epoch is stored behind the younger one's first message. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { LogAppender, NO_HASH } from "../../engine/log/append.ts";
import { hashOf, readHeader } from "../../engine/log/batch-format.ts";
import { openJournal } from "../../engine/log/database.ts";
import { LogFiles } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { MessageKind } from "../../engine/replication/message-format.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { readConfig } from "../../server/bootstrap/config.ts";
import { NatsLink } from "../../server/replication/connection.ts";
import { Fenced, Overtaken } from "../../server/replication/errors.ts";
import { Publisher } from "../../server/replication/publisher.ts";
import { ReplicationStatus } from "../../server/replication/replication-status.ts";
import { Shipper } from "../../server/replication/shipper.ts";
import { LogStream } from "../../server/replication/stream.ts";
import { archiveFolder, journalPath } from "../../server/util/data-folder.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { temporaryFolder } from "../support/server.ts";
import { TestNodes } from "./cluster.ts";
import { NO_NATS, Nodes } from "./streamed-log.ts";

/** 1,000 in the long project. */
const RACES = 200 * EFFORT;
/** Enough for every race. */
const BATCHES = 40 * RACES;
/** How long the rival waits before it reads where the stream ends, and the older one between two batches, at most. */
const MAX_DELAY_MS = 8;
const MAX_PAUSE_MS = 4;
/** The older one ships so many at most before it waits for the rival. */
const MAX_SHIPPED = 8;

describe.skipIf(NO_NATS)("a race for an epoch", () => {
  const nodes = TestNodes.use();

  /** A log of many small batches, and what makes a shipper of it with a connection of its own. */
  async function prepare(name: string) {
    const dataDir = temporaryFolder();
    const db = openJournal(journalPath(dataDir), "off");
    const appender = new LogAppender(db, { exchange: 5, batch: 0, records: 0, at: 0, hash: NO_HASH });
    db.exec("BEGIN");
    for (let i = 1; i <= BATCHES; i++) {
      appender.begin();
      appender.addRequest(Buffer.from(`batch ${i}`));
      appender.commit(i, 0);
    }
    db.exec("COMMIT");
    const select = db.prepare("SELECT body FROM batches WHERE number = ?").pluck();
    onTestFinished(() => void db.close());
    const bodyOf = (batch: number): Buffer => select.get(batch) as Buffer;
    const settings = readConfig(nodes.settings(name)).standby!;
    const say = (): void => {};
    const links = [await NatsLink.open(settings, say), await NatsLink.open(settings, say)];
    onTestFinished(async () => {
      for (const link of links) await link.nc.close();
    });
    const boxes = links.map((link) => {
      const stream = new LogStream(link, name, 3, say);
      return { stream, publisher: new Publisher({ link, stream, onUnknown: () => {}, say }) };
    });
    const position = (batch: number) => {
      const body = bodyOf(batch);
      return { exchange: readHeader(body).exchange, batch, hash: hashOf(body) };
    };
    /** A shipper of a box in a new epoch, once it leads; the box reads the stream again where the other one was faster. */
    const lead = async (box: number, epoch: number, hasAll: boolean) => {
      const { stream, publisher } = boxes[box]!;
      const acknowledged: number[] = [];
      for (;;) {
        const end = await stream.end(await stream.open());
        const batch = end.position?.batch ?? 1;
        const progress = new LogProgress();
        progress.append(hasAll ? BATCHES : batch);
        const shipper = new Shipper({
          log: new LogFiles({ journal: journalPath(dataDir), archives: archiveFolder(dataDir) }),
          ...{ progress, waker: new Waker(), publisher, status: new ReplicationStatus() },
          onSend: () => {},
          onShipped: (batch) => acknowledged.push(batch),
          allowed: async () => {},
        });
        try {
          await shipper.begin(end, epoch, position(batch));
          progress.append(BATCHES);
          return { shipper, acknowledged };
        } catch (error) {
          if (!(error instanceof Overtaken)) throw error;
        }
      }
    };
    return { lead, bodyOf };
  }

  test(`is decided by one message, ${RACES} times`, { timeout: 120_000 * EFFORT }, async () => {
    const random = Random.printed("races for an epoch");
    const { lead, bodyOf } = await prepare("race");
    let active = await lead(0, 1, true);
    let fencedEarly = 0;
    const acknowledged = new Set<number>();
    for (let round = 1; round <= RACES; round++) {
      const old = active;
      const beginning = delay(random.next() * MAX_DELAY_MS).then(() => lead(round % 2, round + 1, random.chance(0.5)));
      const most = random.integer(1, MAX_SHIPPED);
      const fenced = (async () => {
        for (let i = 0; i < most; i++) {
          await old.shipper.shipThrough(old.shipper.position.batch + 1).catch((error: unknown) => {
            fencedEarly++;
            throw error;
          });
          await delay(random.next() * MAX_PAUSE_MS);
        }
        await beginning;
        await old.shipper.shipThrough(old.shipper.position.batch + 1);
      })();
      const [rival] = await Promise.all([beginning, expect(fenced).rejects.toThrow(Fenced)]);
      for (const batch of old.acknowledged) acknowledged.add(batch);
      active = rival;
    }
    const stream = await Nodes.connect(nodes.cluster, "race");
    const messages = await stream.messages();
    const epochs = messages.map(({ epoch }) => epoch);
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
    expect(messages.filter(({ kind }) => kind === MessageKind.base).length).toBe(RACES + 1);
    const bodies = await stream.bodies();
    const first = readHeader(bodies[0]!).batch;
    for (const [i, body] of bodies.entries()) expect(body.equals(bodyOf(first + i))).toBe(true);
    const stored = new Set(bodies.map((body) => readHeader(body).batch));
    for (const batch of acknowledged) expect(stored.has(batch)).toBe(true);
    expect(fencedEarly).toBeGreaterThan(RACES / 10);
    console.log(
      `${RACES} races, ${fencedEarly} while messages were on their way, ${stored.size} batches stored, ${acknowledged.size} acknowledged by the one that lost`,
    );
  });
});
