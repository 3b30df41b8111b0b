/** What the service says of its own health. */
import Type from "typebox";
import { closed } from "../http/schemas.ts";

export const Health = closed({ status: Type.String({ description: "ok, or the reason" }) });

/** The fields after the first are those of a box whose log is copied to NATS nodes. */
export const Readiness = closed({
  status: Type.String({ description: "ok, or the reason" }),
  role: Type.Optional(Type.Enum(["active", "standby"], { description: "what this box is" })),
  epoch: Type.Optional(Type.Integer({ description: "rises by 1 with each takeover" })),
  behind_batches: Type.Optional(
    Type.Integer({ description: "batches of the log that the others don't have yet, or that a standby lacks" }),
  ),
  ack: Type.Optional(Type.Enum(["standby", "stream", "none"], { description: "what an acknowledgement waits for" })),
  alone: Type.Optional(
    Type.Boolean({ description: "acknowledgements don't wait for a standby, although they should; with ack standby" }),
  ),
  keys_copied: Type.Optional(
    Type.Boolean({ description: "a standby has the same files of keys/: without them it doesn't take over" }),
  ),
  active: Type.Optional(
    Type.Union([Type.String(), Type.Null()], { description: "of a standby: the active box's address" }),
  ),
});
