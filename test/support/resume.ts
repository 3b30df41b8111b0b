/** Resumes a private stream on a connection, and picks the replayed order updates out of what arrives. */
import { expect } from "vitest";
import type { OrderJson } from "./client.ts";
import type { Acknowledgement, Frame, Socket } from "./socket.ts";

/** Resumes after `sequence` and waits for the end of the replay; returns the acknowledgement. */
export async function resume(socket: Socket, sequence: number): Promise<Acknowledgement> {
  const count = socket.frames.length;
  const answer = await socket.ask({ op: "resume", sequence });
  expect(answer).toMatchObject({ code: 0, data: { after: sequence } });
  await socket.frame("balance.updated", () => true, count);
  return answer;
}

/** The order updates that arrived after an acknowledgement. */
export function updatesAfter({ arrivals }: Socket, answer: Acknowledgement): Frame<OrderJson>[] {
  const after = arrivals.slice(arrivals.indexOf(answer) + 1) as Frame<OrderJson>[];
  return after.filter(({ event }) => event === "order.updated");
}
