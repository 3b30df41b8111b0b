/** Batches put together from messages: what is void, what was cut off before the first message. */
import { expect, test } from "vitest";
import { BatchAssembler } from "../../engine/replication/batch-assembler.ts";
import { packBase, packBatches, packParts, readMessage } from "../../engine/replication/message-format.ts";

const [small, large, other] = [Buffer.alloc(10, 1), Buffer.alloc(250, 2), Buffer.alloc(260, 3)];
const parts = packParts(1, 5, large, 144);
const others = packParts(1, 6, other, 144);

function assembled(messages: readonly Buffer[]): Buffer[] {
  const assembler = new BatchAssembler();
  return messages.flatMap((message) => assembler.add(readMessage(message)));
}

test("whole batches and parts come in the order of the stream", () => {
  expect(parts).toHaveLength(3);
  const base = packBase(1, { exchange: 1, batch: 3, hash: Buffer.alloc(32) }, Buffer.alloc(16));
  const messages = [base, packBatches(1, 4, [small]), ...parts, ...others, packBatches(1, 7, [small, small])];
  expect(assembled(messages)).toEqual([small, large, other, small, small]);
});

test("parts that their rest doesn't follow are dropped", () => {
  expect(assembled([parts[0]!, parts[1]!, packBatches(1, 5, [small])])).toEqual([small]);
  expect(assembled([parts[0]!, parts[1]!, ...parts])).toEqual([large]);
  expect(assembled([parts[0]!, ...parts, ...others])).toEqual([large, other]);
  expect(assembled([parts[0]!, parts[2]!])).toEqual([]);
  expect(assembled([parts[0]!, others[1]!, others[2]!])).toEqual([]);
});

test("a batch that began before the first message is left out", () => {
  expect(assembled([parts[1]!, parts[2]!, packBatches(1, 6, [small])])).toEqual([small]);
});
