/**
 * The server's phase, which decides how it responds: `starting` until live orders are restored, `failed` once nothing more
 * can be made durable. Holds the phase only: it starts and stops nothing.
 */
import { type ApiError, overloaded, STARTING, STOPPING } from "../errors.ts";

export class Lifecycle {
  phase: "starting" | "ready" | "failed" | "stopping" = "starting";

  /** The error for every request outside health checks; null while the server accepts requests. */
  readonly closed = (): ApiError | null => {
    if (this.phase === "starting") return overloaded(STARTING);
    if (this.phase === "stopping") return overloaded(STOPPING);
    return null;
  };

  /** Why the exchange does not trade; null while it does. */
  readonly unready = (): string | null => (this.phase === "ready" ? null : this.phase);
}
