/** Which accounts changed in this turn, so that each user with a connection receives one update of them. */
import type { UserListener } from "./types.ts";

export class AccountChanges {
  private readonly outcomesByUser = new Map<number, Set<number>>();
  private users: Pick<UserListener, "listens" | "accountChanged">;

  constructor(users: Pick<UserListener, "listens" | "accountChanged">) {
    this.users = users;
  }

  listen(users: UserListener): void {
    this.users = users;
  }

  /** Accounts that changed. */
  get size(): number {
    return this.outcomesByUser.size;
  }

  /** The user's balance changed, and its position in the outcome, unless that is 0. */
  add(userId: number, outcomeId: number): void {
    if (!this.users.listens(userId)) return;
    let outcomes = this.outcomesByUser.get(userId);
    if (outcomes === undefined) {
      outcomes = new Set();
      this.outcomesByUser.set(userId, outcomes);
    }
    if (outcomeId !== 0) outcomes.add(outcomeId);
  }

  /** Publishes the changes. @param at ms @param sequenceOf the last number of a user's order updates */
  publish(at: number, sequenceOf: (userId: number) => number): void {
    for (const [userId, outcomes] of this.outcomesByUser) {
      this.users.accountChanged(userId, sequenceOf(userId), at, outcomes);
    }
    this.outcomesByUser.clear();
  }
}
