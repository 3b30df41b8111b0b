/** Per-key mutual exclusion with waiting: an action whose key is busy runs once all earlier ones of that key have ended. */
export class KeyedQueue {
  /** By key: resolves at the end of the last action. */
  private readonly tails = new Map<string, Promise<void>>();

  /** Runs `action` while it holds all `keys`: in this turn, unless one of them is busy. Resolves and rejects as it does. */
  run<T>(keys: readonly string[], action: () => Promise<T>): Promise<T> {
    if (keys.length === 0) return action();
    const before = keys.map((key) => this.tails.get(key)).filter((tail) => tail !== undefined);
    const running = before.length === 0 ? action() : Promise.all(before).then(action);
    const ended = running.then(
      () => {},
      () => {},
    );
    for (const key of keys) this.tails.set(key, ended);
    void ended.then(() => {
      for (const key of keys) if (this.tails.get(key) === ended) this.tails.delete(key);
    });
    return running;
  }
}
