/** A reply composed of several events, abandoned before the last of them arrives. */
import { expect, test } from "vitest";
import { ApiError, ErrorKind } from "../../server/errors.ts";
import { textReply } from "../../server/orders/json-reply.ts";
import { CompositeReply } from "../../server/trading/composite-reply.ts";
import { PendingReplies } from "../../server/trading/pending-replies.ts";

test("events that arrive after a reply was abandoned defer no messages", () => {
  const pending = new PendingReplies(1);
  let deferrals = 0;
  const defer = () => {
    deferrals++;
    return { release: () => void deferrals-- };
  };
  const heard: string[] = [];
  const answer = textReply(
    (json) => heard.push(json),
    ({ message }) => heard.push(message),
  );
  const gathered = new CompositeReply({ pending, users: { defer } }, 1, answer, 1_000);
  gathered.arrived();
  expect(deferrals).toBe(1);
  // No commit for ten seconds: one of the placements is overdue. Its events, and the cancels', come all the same.
  gathered.fail(new ApiError(ErrorKind.internal, "no response in time"));
  gathered.arrived();
  expect(deferrals).toBe(0);
  gathered.finish((reply) => reply.data("{}"));
  gathered.fail(new ApiError(ErrorKind.internal, "another one"));
  expect([deferrals, heard, pending.size]).toEqual([0, ["no response in time"], 0]);
  // Its correlation id is free again.
  expect(pending.expect(answer, 2_000)).toBe(1);
});
