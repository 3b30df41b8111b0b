/**
 * One user's REST calls, as a bot makes them: waits when the exchange says so, retries after a broken connection, and
 * returns the error code instead of throwing, because the demo continues whatever an operator does to its users.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Caller, Reply } from "./types.ts";

/** "Rate limit" and "overloaded": nothing was executed, so the request can be retried. */
const CLOSED = 50300;
const WAIT_CODES = [42900, CLOSED];
const MAX_TRIES = 5;
/** Where another box may have taken over, which takes a few seconds. */
const MAX_TRIES_OF_TWO = 100;
const BROKEN: Reply<never> = { code: -1, msg: "the connection broke", data: null };

/** Where the exchange is: the URLs of its boxes without a path, one of which is active. All bots go on together. */
export class Boxes {
  private readonly roots: readonly string[];
  private at = 0;

  /** @param roots one, or two */
  constructor(roots: readonly string[]) {
    this.roots = roots;
  }

  get current(): string {
    return this.roots[this.at]!;
  }

  /** How often a request is sent until it has a response. */
  get maxTries(): number {
    return this.roots.length > 1 ? MAX_TRIES_OF_TWO : MAX_TRIES;
  }

  /** The box at this URL isn't there, or isn't active. */
  leave(root: string): void {
    if (root === this.current) this.at = (this.at + 1) % this.roots.length;
  }
}

export class Api implements Caller {
  readonly name: string;
  private readonly boxes: Boxes;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly stop: AbortSignal;

  /** @param stop ends all waits */
  constructor(name: string, boxes: Boxes, token: string | null, stop: AbortSignal) {
    this.name = name;
    this.boxes = boxes;
    this.stop = stop;
    this.headers = {
      "Content-Type": "application/json",
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    };
  }

  async call<T>(method: string, path: string, body?: object): Promise<Reply<T>> {
    let reply: Reply<T> = BROKEN;
    for (let tries = 0; tries < this.boxes.maxTries && !this.stop.aborted; tries++) {
      const root = this.boxes.current;
      let waitMs = 100;
      try {
        const answer = await fetch(`${root}/api/v1${path}`, {
          method,
          headers: this.headers,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        reply = (await answer.json()) as Reply<T>;
        if (!WAIT_CODES.includes(reply.code)) return reply;
        if (reply.code === CLOSED) this.boxes.leave(root);
        // The other box may be ready sooner.
        if (this.boxes.current === root) waitMs = 1_000 * Number(answer.headers.get("retry-after") ?? 1);
      } catch {
        reply = BROKEN;
        this.boxes.leave(root);
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
