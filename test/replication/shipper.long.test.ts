/** What the shipper makes of a message that another process put in the place of its own. */
import { describe, expect, onTestFinished, test } from "vitest";
import { hashOf, readHeader } from "../../engine/log/batch-format.ts";
import { LogFiles } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import {
  type LogPosition,
  MAX_MESSAGE_BYTES,
  packBatches,
  packParts,
} from "../../engine/replication/message-format.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { readConfig } from "../../server/bootstrap/config.ts";
import { NatsLink } from "../../server/replication/connection.ts";
import { Fenced, Overtaken } from "../../server/replication/errors.ts";
import { Publisher } from "../../server/replication/publisher.ts";
import { ReplicationStatus } from "../../server/replication/replication-status.ts";
import { Shipper } from "../../server/replication/shipper.ts";
import { LogStream } from "../../server/replication/stream.ts";
import { archiveFolder, journalPath } from "../../server/util/data-folder.ts";
import { writeInto } from "../support/journal.ts";
import { TestServer } from "../support/server.ts";
import { TestNodes } from "./cluster.ts";
import { hashesOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

/** The batches before it are in the stream already. */
const BASE = 2;

describe.skipIf(NO_NATS)("a message in the place of ours", () => {
  const nodes = TestNodes.use();

  /** The shipper of a log of some batches, the fourth of which is larger than a message; it has read the stream's end. */
  async function begin(name: string) {
    const server = await TestServer.start();
    await server.stop();
    const { dataDir } = server;
    while (journalBodies(dataDir).length < BASE + 1) write(dataDir, 1);
    write(dataDir, 40);
    write(dataDir, 1);
    const bodies = journalBodies(dataDir);
    const { standby } = readConfig(nodes.settings(name));
    const say = (): void => {};
    const link = await NatsLink.open(standby!, say);
    onTestFinished(() => link.nc.close());
    const stream = new LogStream(link, standby!.name, 3, say);
    const progress = new LogProgress();
    progress.append(bodies.length);
    progress.release(BASE);
    const create = (known = progress): Shipper =>
      new Shipper({
        log: new LogFiles({ journal: journalPath(dataDir), archives: archiveFolder(dataDir) }),
        progress: known,
        waker: new Waker(),
        onSend: () => {},
        onShipped: (batch) => progress.release(batch),
        publisher: new Publisher({ link, stream, onUnknown: () => {}, say }),
        status: new ReplicationStatus(),
        allowed: async () => {},
      });
    const positionAt = (batch: number): LogPosition => {
      const body = bodies[batch - 1]!;
      return { exchange: readHeader(body).exchange, batch, hash: hashOf(body) };
    };
    const shipper = create();
    await shipper.begin(await stream.end(await stream.open()), 2, positionAt(BASE));
    /** Another process that reads now where the stream ends. */
    const another = async () => {
      const end = await stream.end(await stream.open());
      const own = new LogProgress();
      const begin = (epoch: number, batch: number): Promise<void> => {
        own.append(batch);
        return create(own).begin(end, epoch, positionAt(batch));
      };
      return { begin };
    };
    return { bodies, shipper, progress, another, test: await Nodes.connect(nodes.cluster, name) };
  }

  function write(dataDir: string, count: number): void {
    const set = { passwordHash: "x".repeat(20_000) };
    writeInto(
      dataDir,
      ...Array.from({ length: count }, () => ({ kind: "update", table: "users", id: 1, set }) as const),
    );
  }

  test("batches that a killed process of this box sent late are taken as sent", async () => {
    const { bodies, shipper, progress, test: own } = await begin("late");
    const next = bodies[BASE]!;
    await own.publish(packBatches(1, BASE + 1, [next]), 1);
    await shipper.shipThrough(BASE + 1);
    expect(progress.releasedBatch).toBe(BASE + 1);
    // The next one is large: a part of it that nothing follows is void.
    const large = bodies.findIndex((body) => body.length > MAX_MESSAGE_BYTES);
    await shipper.shipThrough(large);
    const { state } = await own.manager.streams.info(own.stream);
    await own.publish(packParts(1, large + 1, bodies[large]!, MAX_MESSAGE_BYTES)[0]!, state.last_seq);
    await shipper.shipThrough(bodies.length);
    expect(hashesOf(await own.bodies())).toEqual(hashesOf(bodies.slice(BASE)));
    expect(progress.releasedBatch).toBe(bodies.length);
  });

  test("anything else ends shipping, and nothing of this box is stored behind it", async () => {
    const { bodies, shipper, progress, test: own } = await begin("other");
    const changed = Buffer.from(bodies[BASE]!);
    changed[changed.length - 1]! ^= 1;
    await own.publish(packBatches(1, BASE + 1, [changed]), 1);
    await expect(shipper.shipThrough(bodies.length)).rejects.toThrow(Fenced);
    expect(progress.releasedBatch).toBe(BASE);
    expect((await own.messages()).length).toBe(2);
  });

  test("a stream that goes on past the log refuses the epoch, and so does one that grows meanwhile", async () => {
    const { bodies, shipper, another, test: own } = await begin("ahead");
    await shipper.shipThrough(BASE + 1);
    const stale = await another();
    await shipper.shipThrough(BASE + 2);
    await expect(stale.begin(3, BASE + 1)).rejects.toThrow(Overtaken);
    await expect((await another()).begin(3, BASE + 1)).rejects.toThrow(Overtaken);
    expect((await own.messages()).every(({ epoch }) => epoch === 2)).toBe(true);
    await shipper.shipThrough(bodies.length);
    expect(hashesOf(await own.bodies())).toEqual(hashesOf(bodies.slice(BASE)));
  });

  test("our own epoch, one after it, and bytes that are no message, are named", async () => {
    const later = await begin("later");
    await later.test.publish(packBatches(3, BASE + 1, [later.bodies[BASE]!]), 1);
    const text = `another box wrote message 2 of the stream: batch ${BASE + 1} of epoch 3`;
    await expect(later.shipper.shipThrough(BASE + 1)).rejects.toThrow(text);
    const same = await begin("same");
    await same.test.publish(packBatches(2, BASE + 1, same.bodies.slice(BASE, BASE + 2)), 1);
    await expect(same.shipper.shipThrough(BASE + 1)).rejects.toThrow("of epoch 2");
    const garbage = await begin("garbage");
    await garbage.test.publish(Buffer.from("hello"), 1);
    const words = "something else wrote message 2 of the stream: not a message of an exchange's log";
    await expect(garbage.shipper.shipThrough(BASE + 1)).rejects.toThrow(words);
  });
});
