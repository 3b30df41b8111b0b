/** The entry of a thread that reads one list of orders at a start, as far ahead of the gateway as its chunks reach. */
import { parentPort, workerData } from "node:worker_threads";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { fillList, type OrderReaderMessage, type OrderReaderSetup } from "./order-lists.ts";

const { path, list, memories, naming, released } = workerData as OrderReaderSetup;
const send = (message: OrderReaderMessage): void => parentPort!.postMessage(message);

try {
  const done = new Int32Array(released);
  const db = openReadOnly(path);
  let sent = 0;
  for (const filled of fillList(db, list, memories, naming)) {
    send(filled);
    sent++;
    // The next chunk's memory may still be the gateway's.
    for (let now = Atomics.load(done, 0); sent - now >= memories.length; now = Atomics.load(done, 0)) {
      Atomics.wait(done, 0, now);
    }
  }
  db.close();
  send({ end: true });
} catch (error) {
  const { message, code } = error as Error & { code?: string };
  send({ failed: message, code });
}
