/** What the service says of its own health. */
import Type from "typebox";
import { closed } from "../http/schemas.ts";

export const Health = closed({ status: Type.String({ description: "ok, or the reason" }) });

/** The fields after the first are those of a box whose log is copied to NATS nodes. */
export const Readiness = closed({
  status: Type.String({ description: "ok, or the reason" }),
  role: Type.Optional(Type.Enum(["active"], { description: "what this box is" })),
  epoch: Type.Optional(Type.Integer({ description: "rises by 1 with each takeover" })),
  behind_batches: Type.Optional(Type.Integer({ description: "batches of the log that the nodes don't have yet" })),
  ack: Type.Optional(Type.Enum(["stream", "none"], { description: "what an acknowledgement waits for" })),
});
