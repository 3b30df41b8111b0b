/** What comes over a subject that nothing stores: JSON of a known shape, or something else. */
import type { Msg } from "@nats-io/transport-node";
import type { Static, TSchema } from "typebox";
import { Check } from "typebox/value";

/** Null where the message is something else. */
export function contentOf<T extends TSchema>(schema: T, message: Msg): Static<T> | null {
  try {
    const content: unknown = message.json();
    return Check(schema, content) ? content : null;
  } catch {
    return null;
  }
}
