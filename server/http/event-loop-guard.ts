/**
 * Detects a turn of the event loop that takes long: uWebSockets.js reads a connection for as long as it has data, so one
 * client that sends without pause keeps all others waiting. What to do about it is up to the callers, who receive requests
 * and messages. The guard holds the responses that wait for the end of the turn.
 */

export class EventLoopGuard {
  /** Numbers the turns in which anything arrived. */
  turn = 0;
  /** Responses to write with `release`, oldest first; others may only read its length. */
  readonly held: (() => void)[] = [];
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
  hold(write: () => void): void {
    if (this.held.push(write) === 1) setImmediate(this.release);
  }

  /** Writes the held responses: call it before sending news that is newer. */
  readonly release = (): void => {
    if (this.held.length === 0) return;
    for (const write of this.held.splice(0)) write();
  };

  private readonly end = (): void => {
    this.startedAt = 0;
  };
}

import { MAX_TURN_MS } from "./limits.ts";
