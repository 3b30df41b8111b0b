/**
 * The Idempotency-Key of a form. Repeats of an unanswered request carry the same key, so that a retry after a lost
 * response takes effect once. Knows no routes.
 */
import { useRef } from "preact/hooks";
import { ApiError } from "./api.ts";

const KEY_BYTES = 16;

/** Not randomUUID: browsers don't offer it to pages served over plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class IdempotencyKey {
  private request = "";
  private key = "";

  /** Sends a request with its key. Unless the server rejects it, a failed request keeps its key for the next try. */
  async send<T>(body: object, act: (key: string) => Promise<T>): Promise<T> {
    const request = JSON.stringify(body);
    if (request !== this.request) {
      this.request = request;
      this.key = newKey();
    }
    try {
      const response = await act(this.key);
      this.request = "";
      return response;
    } catch (error) {
      // A rejection had no effect; any other failure may have had one.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) this.request = "";
      throw error;
    }
  }
}

/** Returns the form's key. */
export function useIdempotencyKey(): IdempotencyKey {
  const found = useRef<IdempotencyKey | null>(null);
  found.current ??= new IdempotencyKey();
  return found.current;
}
