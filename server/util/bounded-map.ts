/**
 * A map and a set that hold at most `maxSize` keys: one more evicts the key that was inserted longest ago. Every cache of
 * the server is one, except texts bounded by their length (text-cache.ts) and rate-limit buckets, which reuse memory.
 *
 * Not lru-cache: it allocates its arrays for `max` entries up front (2.8 MB for 100,000 that are never used, against a few
 * bytes here), and no cache here needs its expiry or reads that refresh. Measured with lru-cache 11 on Node 20.
 */

interface Keyed<K> {
  readonly size: number;
  keys(): Iterator<K>;
  delete(key: K): boolean;
}

/**
 * Finds the oldest key. A new iterator has to pass all the holes that deleted keys left at the front of the table: 16 to
 * 70 µs at 100,000 keys. So one iterator is kept from eviction to eviction: with it an eviction takes 0.6 µs. It is
 * replaced after `maxSize` insertions, because it keeps every table alive that the collection has outgrown since.
 */
class Evictor<K> {
  private readonly maxSize: number;
  private oldest: Iterator<K> | null = null;
  private insertions = 0;

  constructor(maxSize: number) {
    this.maxSize = maxSize;
  }

  /** To be called before a key is inserted that the collection lacks. */
  makeRoom(keyed: Keyed<K>): void {
    this.insertions++;
    if (this.insertions > this.maxSize) this.oldest = null;
    if (keyed.size < this.maxSize) return;
    if (this.oldest === null) {
      this.oldest = keyed.keys();
      this.insertions = 0;
    }
    const { value, done } = this.oldest.next();
    if (done !== true) keyed.delete(value);
  }
}

export class BoundedMap<K, V> extends Map<K, V> {
  private readonly evictor: Evictor<K>;

  /** @param maxSize at least 1 */
  constructor(maxSize: number) {
    super();
    this.evictor = new Evictor(maxSize);
  }

  /** A key that is there keeps its age. */
  override set(key: K, value: V): this {
    if (!this.has(key)) this.evictor.makeRoom(this);
    return super.set(key, value);
  }

  /** Sets the value, and makes the key the newest. */
  renew(key: K, value: V): void {
    this.delete(key);
    this.set(key, value);
  }
}

export class BoundedSet<T> extends Set<T> {
  private readonly evictor: Evictor<T>;

  /** @param maxSize at least 1 */
  constructor(maxSize: number) {
    super();
    this.evictor = new Evictor(maxSize);
  }

  override add(value: T): this {
    if (!this.has(value)) this.evictor.makeRoom(this);
    return super.add(value);
  }
}
