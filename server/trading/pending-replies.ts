/**
 * Answers that wait for a commit. Each has a place, whose number goes with its command and comes back with one event.
 * Flat and reused: the tables that a Map outgrows keep what was in them alive until the next full collection, which
 * was half a kilobyte an order.
 */
import { assert } from "../../engine/util/assert.ts";
import type { Answer } from "./types.ts";

export class PendingReplies {
  /** By place; place 0 is nobody's. Null: free, or given up while its event is still to come. */
  private readonly answers: (Answer | null)[] = [null];
  /** By place, ms since the epoch; 0 where it is free. */
  private readonly deadlines: number[] = [0];
  private readonly free: number[] = [];
  private count = 0;

  /** Answers owed. */
  get size(): number {
    return this.count;
  }

  /** @param deadline ms since the epoch @returns the place, from 1 */
  add(answer: Answer, deadline: number): number {
    const place = this.free.pop() ?? this.answers.length;
    this.answers[place] = answer;
    this.deadlines[place] = deadline;
    this.count++;
    return place;
  }

  get(place: number): Answer | null {
    return this.answers[place]!;
  }

  /** Lets `answer` wait where another one waits, until then, or was given up. */
  replace(place: number, answer: Answer, deadline = this.deadlines[place]!): void {
    if (this.answers[place] === null) this.count++;
    this.answers[place] = answer;
    this.deadlines[place] = deadline;
  }

  /** Gives one up: its place stays taken until its event comes. Null where that was done before. */
  give(place: number): Answer | null {
    const answer = this.answers[place]!;
    if (answer !== null) this.count--;
    this.answers[place] = null;
    return answer;
  }

  /** The event has come: the place is free. Null where the answer was given up, and for place 0. */
  take(place: number): Answer | null {
    if (place === 0) return null;
    assert(this.deadlines[place]! > 0, "a place comes back once");
    this.deadlines[place] = 0;
    const answer = this.answers[place]!;
    if (answer !== null) this.count--;
    this.answers[place] = null;
    this.free.push(place);
    return answer;
  }

  /** Gives up all whose deadline has come; their places stay taken, because their events may still come. */
  takeOverdue(now: number): Answer[] {
    const overdue: Answer[] = [];
    for (let place = 1; place < this.answers.length; place++) {
      const answer = this.answers[place]!;
      if (answer === null || this.deadlines[place]! > now) continue;
      this.give(place);
      overdue.push(answer);
    }
    return overdue;
  }
}
