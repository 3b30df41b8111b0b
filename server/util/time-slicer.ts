/**
 * Writes long lists slice by slice, so that the thread can do other work in between: one slice per turn of the event
 * loop, however many lists are being written. Knows nothing of the items.
 */
import { MAX_CHARACTERS_PER_TURN } from "./limits.ts";

/** Writes the next slice of a list; returns true once the list is complete. */
type WriteSlice = () => boolean;

export class TimeSlicer {
  /** Unfinished lists, in the order of their next slices. */
  private readonly unfinished: WriteSlice[] = [];

  /**
   * Joins the texts of items with commas: at once where they are short, else over several turns.
   * @param finish makes the result of the joined text
   */
  write(
    ids: readonly number[],
    text: (id: number) => string,
    finish: (joined: string) => string,
  ): string | Promise<string> {
    const texts: string[] = [];
    const remaining = ids.values();
    const writeSlice: WriteSlice = () => {
      let characters = 0;
      while (texts.length < ids.length && characters < MAX_CHARACTERS_PER_TURN) {
        const { value, done } = remaining.next();
        if (done === true) break;
        const written = text(value);
        characters += written.length;
        texts.push(written);
      }
      return texts.length === ids.length;
    };
    if (writeSlice()) return finish(texts.join(","));
    return new Promise((resolve, reject) => {
      this.unfinished.push(() => {
        try {
          if (!writeSlice()) return false;
          resolve(finish(texts.join(",")));
        } catch (error) {
          reject(error);
        }
        return true;
      });
      if (this.unfinished.length === 1) setImmediate(this.runSlice);
    });
  }

  private readonly runSlice = (): void => {
    const [writeSlice] = this.unfinished;
    if (writeSlice === undefined) return;
    const isComplete = writeSlice();
    this.unfinished.shift();
    if (!isComplete) this.unfinished.push(writeSlice);
    if (this.unfinished.length > 0) setImmediate(this.runSlice);
  };
}
