/**
 * The server's phase, which decides how it responds: `starting` until live orders are restored, `failed` once nothing more
 * can be made durable. Holds the phase only: it starts and stops nothing.
 */
import { type ApiError, overloaded, STARTING, STOPPING } from "../errors.ts";

type Phase = "starting" | "ready" | "failed" | "stopping";

/** By phase: the error for every request outside health checks; null where the server accepts requests. */
const REJECTIONS: Readonly<Record<Phase, ApiError | null>> = {
  starting: overloaded(STARTING),
  ready: null,
  failed: null,
  stopping: overloaded(STOPPING),
};

export class Lifecycle {
  phase: Phase = "starting";

  /** The error for every request outside health checks; null while the server accepts requests. */
  get refusal(): ApiError | null {
    return REJECTIONS[this.phase];
  }

  /** Why the exchange does not trade; null while it does. */
  readonly unready = (): string | null => (this.phase === "ready" ? null : this.phase);
}
