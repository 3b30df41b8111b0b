/** Per-key mutual exclusion without waiting: a second caller of a busy key is rejected. */
import { ApiError, ErrorKind } from "../errors.ts";

export class KeyedMutex<K> {
  private readonly busy = new Set<K>();
  private readonly rejection: string;

  /** @param rejection the message of the error that the second caller gets */
  constructor(rejection: string) {
    this.rejection = rejection;
  }

  has(key: K): boolean {
    return this.busy.has(key);
  }

  /** Runs `action` while it holds the key. @throws ApiError 40900 where the key is busy, and the errors of `action` */
  async run<T>(key: K, action: () => Promise<T>): Promise<T> {
    if (this.busy.has(key)) throw new ApiError(ErrorKind.conflict, this.rejection);
    this.busy.add(key);
    try {
      return await action();
    } finally {
      this.busy.delete(key);
    }
  }
}
