/**
 * Notices that one turn of the event loop goes on and on: uWebSockets.js reads a connection for as long as there is more,
 * so who sends without a pause keeps all others waiting. What is done about it is for those who are handed requests.
 * Keeps the answers that must wait for the turn's end, and their place among the messages that sockets are sent.
 */

export class EventLoopGuard {
  /** Of this turn, among those in which anything came. */
  number = 0;
  private began = 0;
  private readonly held: (() => void)[] = [];

  /** To be asked with each thing that comes. @param now ms @param most ms that are not long */
  isLong(now: number, most = MAX_TURN_MS): boolean {
    if (this.began !== 0) return now - this.began > most;
    this.began = now;
    this.number++;
    setImmediate(this.end);
    return false;
  }

  /** Gives it when the turn ends, or with `release`. */
  hold(give: () => void): void {
    if (this.held.push(give) === 1) setImmediate(this.release);
  }

  /** Gives what is held: to be called before anybody is told what is newer. */
  readonly release = (): void => {
    if (this.held.length === 0) return;
    for (const give of this.held.splice(0)) give();
  };

  private readonly end = (): void => {
    this.began = 0;
  };
}
import { MAX_TURN_MS } from "./limits.ts";
