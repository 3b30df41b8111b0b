/** The gateway's end of the journal's mailbox. The test plays the journal. */
import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { Waker } from "../../engine/ring/waker.ts";
import { AccountWriter, type AccountWriterOptions, PortMailbox } from "../../server/accounts/account-writer.ts";

test("a checkpoint that fails is reported as done: a full queue of reads must not end the process", async () => {
  const { port1: port, port2: journal } = new MessageChannel();
  const rejecting: (() => Promise<void>)[] = [
    () => Promise.reject(new Error("too many reads in flight")),
    () => Promise.resolve(),
  ];
  for (const checkpoint of rejecting) {
    const posted = new SharedArrayBuffer(4);
    const options = { mailbox: new PortMailbox(port, posted, new Waker()), checkpoint };
    new AccountWriter(options as unknown as AccountWriterOptions);
    journal.postMessage("checkpoint");
    expect(await once(journal, "message")).toEqual(["checkpointed"]);
    expect(Atomics.load(new Int32Array(posted), 0)).toBe(1);
    port.removeAllListeners("message");
  }
  journal.close();
});
