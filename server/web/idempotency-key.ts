/**
 * The Idempotency-Key of a form: the same while the form asks for the same without an answer, so that asking again after
 * a lost answer does nothing twice. Knows no route.
 */
import { useRef } from "preact/hooks";
import { ApiError } from "./api.ts";

const KEY_BYTES = 16;

/** Not randomUUID: browsers keep it from pages that came over plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class IdempotencyKey {
  private request = "";
  private key = "";

  /** Sends a request with its key. Where it failed without a refusal, the next one with the same body has the same key. */
  async send<T>(body: object, act: (key: string) => Promise<T>): Promise<T> {
    const request = JSON.stringify(body);
    if (request !== this.request) {
      this.request = request;
      this.key = newKey();
    }
    try {
      const answer = await act(this.key);
      this.request = "";
      return answer;
    } catch (error) {
      // A refusal had no effect; all else may have had one.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) this.request = "";
      throw error;
    }
  }
}

/** One of a form. */
export function useIdempotencyKey(): IdempotencyKey {
  const found = useRef<IdempotencyKey | null>(null);
  found.current ??= new IdempotencyKey();
  return found.current;
}
