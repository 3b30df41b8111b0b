/**
 * Notices that one turn of the event loop goes on and on: uWebSockets.js reads a connection for as long as there is more,
 * so who sends without a pause keeps all others waiting. What is done about it is for those who are handed requests.
 */
import { MAX_TURN_MS } from "../engine/limits.ts";

export class TurnWatch {
  /** Of this turn, among those in which anything came. */
  number = 0;
  private began = 0;

  /** To be asked with each thing that comes. @param now ms */
  isLong(now: number): boolean {
    if (this.began !== 0) return now - this.began > MAX_TURN_MS;
    this.began = now;
    this.number++;
    setImmediate(this.end);
    return false;
  }

  private readonly end = (): void => {
    this.began = 0;
  };
}
