/**
 * Detects a turn of the event loop that takes long: uWebSockets.js reads a connection for as long as it has data, so one
 * client that sends without pause keeps all others waiting. What to do about it is up to the callers, who receive requests
 * and messages. The guard defers responses to the end of the turn.
 */
import { MAX_TURN_MS } from "./limits.ts";

export class EventLoopGuard {
  /** Numbers the turns in which anything arrived. */
  turn = 0;
  /** Responses to write with `release`, oldest first; others may only read its length. */
  readonly deferred: (() => void)[] = [];
  /** ms; 0 between turns */
  private startedAt = 0;

  /** Call it for everything that arrives. @param now ms @param maxMs up to this a turn isn't long */
  isLong(now: number, maxMs = MAX_TURN_MS): boolean {
    if (this.startedAt !== 0) return now - this.startedAt > maxMs;
    this.startedAt = now;
    this.turn++;
    setImmediate(this.end);
    return false;
  }

  /** Runs `write` at the end of the turn, or with `release`. */
  defer(write: () => void): void {
    if (this.deferred.push(write) === 1) setImmediate(this.release);
  }

  /** Writes the deferred responses: call it before sending news that is newer. */
  readonly release = (): void => {
    if (this.deferred.length === 0) return;
    for (const write of this.deferred.splice(0)) write();
  };

  private readonly end = (): void => {
    this.startedAt = 0;
  };
}
