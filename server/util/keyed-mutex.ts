/** One at a time of each key: who comes while another is under way is refused. */
import { ApiError, ErrorKind } from "../errors.ts";

export class KeyedMutex<K> {
  private readonly busy = new Set<K>();
  private readonly refusal: string;

  /** @param refusal what is said to who comes second */
  constructor(refusal: string) {
    this.refusal = refusal;
  }

  has(key: K): boolean {
    return this.busy.has(key);
  }

  /** @throws ApiError 40900, and whatever `act` does */
  async run<T>(key: K, act: () => Promise<T>): Promise<T> {
    if (this.busy.has(key)) throw new ApiError(ErrorKind.conflict, this.refusal);
    this.busy.add(key);
    try {
      return await act();
    } finally {
      this.busy.delete(key);
    }
  }
}
