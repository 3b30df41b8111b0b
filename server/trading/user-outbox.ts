/**
 * What users are told, in its order, with waits: while an answer is being gathered for a user, what is told after its
 * first part waits until it has left. Waits of one user may overlap; a message waits only for those that began before it.
 */

interface Wait {
  isOver: boolean;
  /** Told since this wait began and before the next one did. */
  readonly messages: (() => void)[];
}

export class UserOutbox {
  /** By user with a wait: the waits that something is behind of, oldest first. */
  private readonly waits = new Map<number, Wait[]>();

  /** Begins a wait; the function that this answers ends it. */
  hold(userId: number): () => void {
    const wait: Wait = { isOver: false, messages: [] };
    const waits = this.waits.get(userId);
    if (waits === undefined) this.waits.set(userId, [wait]);
    else waits.push(wait);
    return () => {
      wait.isOver = true;
      this.release(userId);
    };
  }

  /** True where a message would wait. */
  isHeld(userId: number): boolean {
    return this.waits.has(userId);
  }

  /** Sends now, or when the waits before it are over. */
  send(userId: number, message: () => void): void {
    const last = this.waits.get(userId)?.at(-1);
    if (last === undefined) message();
    else last.messages.push(message);
  }

  private release(userId: number): void {
    const waits = this.waits.get(userId)!;
    while (waits[0]?.isOver === true) for (const message of waits.shift()!.messages) message();
    if (waits.length === 0) this.waits.delete(userId);
  }
}
