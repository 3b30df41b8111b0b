/**
 * Writes long lists a slice at a time, so that the thread can do other things in between: one slice a turn of the event
 * loop, whatever the number of lists. Knows nothing of what is in them.
 */
import { MAX_CHARACTERS_PER_TURN } from "./limits.ts";

export class TimeSlicer {
  /** Lists that are being written, in the order of their next slices; each answers true when it is whole. */
  private waiting: (() => boolean)[] = [];

  /**
   * The texts of items, joined by commas: at once where they are short, else in several turns.
   * @param finish makes the answer of them
   */
  write(
    ids: readonly number[],
    text: (id: number) => string,
    finish: (joined: string) => string,
  ): string | Promise<string> {
    const texts: string[] = [];
    /** True when all is written. */
    const takeTurn = (): boolean => {
      let characters = 0;
      while (texts.length < ids.length && characters < MAX_CHARACTERS_PER_TURN) {
        const written = text(ids[texts.length]!);
        characters += written.length;
        texts.push(written);
      }
      return texts.length === ids.length;
    };
    if (takeTurn()) return finish(texts.join(","));
    return new Promise((resolve, reject) => {
      this.waiting.push(() => {
        try {
          if (!takeTurn()) return false;
          resolve(finish(texts.join(",")));
        } catch (error) {
          reject(error);
        }
        return true;
      });
      if (this.waiting.length === 1) setImmediate(this.runSlices);
    });
  }

  private readonly runSlices = (): void => {
    const [first, ...others] = this.waiting;
    this.waiting = first!() ? others : [...others, first!];
    if (this.waiting.length > 0) setImmediate(this.runSlices);
  };
}
