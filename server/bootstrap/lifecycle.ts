/**
 * The server's phase, which decides how it responds: `starting` until live orders are restored, `failed` once nothing more
 * can be made durable. Holds the phase only: it starts and stops nothing.
 */
import { type ApiError, overloaded, STARTING, STOPPING } from "../errors.ts";

type Phase = "starting" | "ready" | "failed" | "stopping";

export class Lifecycle {
  /** The error for every request outside health checks; null while the server accepts requests. */
  refusal: ApiError | null = overloaded(STARTING);
  private current: Phase = "starting";

  get phase(): Phase {
    return this.current;
  }

  set phase(phase: Phase) {
    this.current = phase;
    if (phase === "stopping") this.refusal = overloaded(STOPPING);
    else if (phase !== "starting") this.refusal = null;
  }

  /** Why the exchange does not trade; null while it does. */
  readonly unready = (): string | null => (this.current === "ready" ? null : this.current);
}
