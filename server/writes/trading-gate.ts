/**
 * Whether the exchange takes trading requests. Open; paused, where it rejects what may add to a position and cancels go on;
 * or failed for good, where it rejects everything. Owned by the gateway thread.
 */
import type { ApiError } from "../errors.ts";

export class TradingGate {
  /** In the order of the pauses. */
  private readonly pauses = new Set<ApiError>();
  private failure: ApiError | null = null;
  /** The error of requests that may add to a position; null while there is none. */
  private rejection: ApiError | null = null;

  /** Rejects new orders, splits and merges with `reason` until `resume(reason)`. Pauses for several reasons add up. */
  pause(reason: ApiError): void {
    this.pauses.add(reason);
    this.decide();
  }

  /** Ends the pause for that reason. */
  resume(reason: ApiError): void {
    this.pauses.delete(reason);
    this.decide();
  }

  /** Nothing more can be made durable: rejects every request that changes something with `reason`. The first reason stays. */
  fail(reason: ApiError): void {
    this.failure ??= reason;
    this.decide();
  }

  /** True once it has failed. */
  get hasFailed(): boolean {
    return this.failure !== null;
  }

  /** For what may add to a position. @throws ApiError 50300 while paused, and once failed */
  checkOpen(): void {
    if (this.rejection !== null) throw this.rejection;
  }

  /** For what goes on during a pause: cancels, money, markets. @throws ApiError 50300 once failed */
  checkRunning(): void {
    if (this.failure !== null) throw this.failure;
  }

  private decide(): void {
    const [first = null] = this.pauses;
    this.rejection = this.failure ?? first;
  }
}
