/**
 * One user's REST calls, as a bot makes them: waits when the exchange says so, retries after a broken connection, and
 * returns the error code instead of throwing, because the demo continues whatever an operator does to its users.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Caller, Reply } from "./types.ts";

/** "Rate limit" and "overloaded": nothing was executed, so the request can be retried. */
const WAIT_CODES = [42900, 50300];
const MAX_TRIES = 5;
const BROKEN: Reply<never> = { code: -1, msg: "the connection broke", data: null };

export class Api implements Caller {
  readonly name: string;
  private readonly base: string;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly stop: AbortSignal;

  /** @param root the exchange's URL without a path @param stop ends all waits */
  constructor(name: string, root: string, token: string | null, stop: AbortSignal) {
    this.name = name;
    this.base = `${root}/api/v1`;
    this.stop = stop;
    this.headers = {
      "Content-Type": "application/json",
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    };
  }

  async call<T>(method: string, path: string, body?: object): Promise<Reply<T>> {
    let reply: Reply<T> = BROKEN;
    for (let tries = 0; tries < MAX_TRIES && !this.stop.aborted; tries++) {
      let waitMs = 100;
      try {
        const answer = await fetch(this.base + path, {
          method,
          headers: this.headers,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        reply = (await answer.json()) as Reply<T>;
        if (!WAIT_CODES.includes(reply.code)) return reply;
        waitMs = 1_000 * Number(answer.headers.get("retry-after") ?? 1);
      } catch {
        reply = BROKEN;
      }
      await pause(waitMs, this.stop);
    }
    return reply;
  }
}

/** Resolves after `ms`, or immediately on `stop`. */
export async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal: stop }).catch(() => {});
}
