/** Writes long lists so that the thread can do other things in between. Knows nothing of what is in them. */
import { MAX_CHARACTERS_PER_TURN } from "../engine/limits.ts";

/**
 * The texts of items, joined by commas: at once where they are short, else in several turns of the event loop.
 * @param finish makes the answer of them
 */
export function writeInTurns(
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
    const goOn = (): void => {
      try {
        if (takeTurn()) resolve(finish(texts.join(",")));
        else setImmediate(goOn);
      } catch (error) {
        reject(error);
      }
    };
    setImmediate(goOn);
  });
}
