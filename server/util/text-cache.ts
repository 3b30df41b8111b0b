/**
 * A cache of texts, each made once per version of its subject. Bounded by the length of all texts together: the text
 * made longest ago is evicted first.
 */

interface VersionedText {
  readonly version: number;
  readonly json: string;
}

export class TextCache {
  private readonly capacity: number;
  private readonly texts = new Map<number, VersionedText>();
  private length = 0;

  /** @param capacity characters of all texts together */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** The text of `key` at `version`; makes it where it is missing or of another version. */
  get(key: number, version: number, make: () => string): string {
    const known = this.texts.get(key);
    if (known !== undefined) {
      if (known.version === version) return known.json;
      this.delete(key, known);
    }
    const json = make();
    this.texts.set(key, { version, json });
    this.length += json.length;
    for (const [oldest, text] of this.texts) {
      if (this.length <= this.capacity) break;
      this.delete(oldest, text);
    }
    return json;
  }

  clear(): void {
    this.texts.clear();
    this.length = 0;
  }

  private delete(key: number, { json }: VersionedText): void {
    this.texts.delete(key);
    this.length -= json.length;
  }
}
