/** An answer that several events make together, and that was given up before the last of them came. */
import { expect, test } from "vitest";
import { ApiError, ErrorKind } from "../../server/errors.ts";
import { CompositeReply } from "../../server/trading/composite-reply.ts";
import { PendingReplies } from "../../server/trading/pending-replies.ts";

test("events that come after an answer was given up hold back nobody's messages", () => {
  const pending = new PendingReplies(1);
  let held = 0;
  const hold = () => {
    held++;
    return { release: () => void held-- };
  };
  const heard: string[] = [];
  const answer = { data: (json: string) => heard.push(json), error: ({ message }: ApiError) => heard.push(message) };
  const gathered = new CompositeReply({ pending, users: { hold } }, 1, answer, 1_000);
  gathered.arrived();
  expect(held).toBe(1);
  // No commit for ten seconds: one of the placements is overdue. Its events, and the cancels', come all the same.
  gathered.fail(new ApiError(ErrorKind.internal, "no answer in time"));
  gathered.arrived();
  expect(held).toBe(0);
  gathered.finish("{}");
  gathered.fail(new ApiError(ErrorKind.internal, "another one"));
  expect([held, heard, pending.size]).toEqual([0, ["no answer in time"], 0]);
  // Its place is free again.
  expect(pending.expect(answer, 2_000)).toBe(1);
});
