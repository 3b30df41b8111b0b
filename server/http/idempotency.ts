/**
 * Idempotency-Key: a repeated request gets the first one's response and has no effect. Owns the requests in progress; done
 * ones are in the batch of their effect, and rows of the tables. A request without effect keeps no key. Owned
 * by the gateway thread.
 */
import { IDEMPOTENCY_KEY_MS } from "../../engine/limits.ts";
import type { KeptRequest } from "../../engine/log/request.ts";
import type { Clock } from "../../engine/util/clock.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, overloaded } from "../errors.ts";
import type { DoneRequest, KeyLookup } from "../queries/types.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH, MAX_IDEMPOTENCY_KEYS_PER_USER } from "./limits.ts";
import type { Route, RouteRequest } from "./route.ts";

/** The name of the header. */
export const IDEMPOTENCY_KEY = "idempotency-key";
export const WRONG_KEY = `Idempotency-Key: 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters`;
const VISIBLE = new RegExp(`^[\\x21-\\x7e]{1,${MAX_IDEMPOTENCY_KEY_LENGTH}}$`);

/** @throws ApiError 40000 for an invalid key, and where the route can't honor one */
export function checkKeyUse({ idempotencyKey: use }: Route, key: string): void {
  if (!VISIBLE.test(key)) throw badRequest(WRONG_KEY);
  if (typeof use === "object") throw badRequest(`Idempotency-Key: this path honors none: ${use.instead}`);
}

/** What a route needs of its request to run it once per key. */
type Keyable = Pick<RouteRequest<unknown, unknown, Principal | null>, "now" | "principal" | "idempotencyKey">;

export interface KeyedRequest {
  readonly userId: number;
  /** The header's value. */
  readonly key: string;
  /** Method and path, as in `POST /wallet/split`. */
  readonly name: string;
  /** Two requests with equal name and body are the same. */
  readonly body: object;
}

export interface KeyedActions {
  /** Runs the request and writes the row in its transaction; resolves to the response's data. */
  act(kept: Omit<KeptRequest, "reference">): Promise<string>;
  /** Returns the data of the first response. */
  repeat(done: DoneRequest): string;
}

interface PendingRequest {
  readonly request: string;
  readonly response: Promise<string>;
  readonly since: number;
  /** The response timed out: the request may be done, or will be. */
  isResultUnknown: boolean;
}

/** One user's requests in progress. */
interface UserRequests {
  /** Waiting for the lookup, or running. */
  open: number;
  /** Running, and those that ran since this entry exists. */
  running: number;
  started: number;
}

/** Looks up the requests that are done. */
interface KeyHistory {
  /** @param since ms: older requests don't count */
  idempotencyKey(userId: number, key: string, since: number): Promise<KeyLookup>;
}

export class Idempotency {
  private readonly history: KeyHistory;
  private readonly checkLive: (principal: Principal, now: number) => void;
  private readonly clock: Clock;
  private readonly pending = new Map<string, PendingRequest>();
  /** By user. */
  private readonly users = new Map<number, UserRequests>();

  /** @param checkLive throws unless the principal's token is still valid, ms */
  constructor(history: KeyHistory, checkLive: (principal: Principal, now: number) => void, clock: Clock) {
    this.history = history;
    this.clock = clock;
    this.checkLive = checkLive;
  }

  /**
   * Serves a route whose row the accompanying write creates: once per key, or at once where the request has none.
   * @param details of the request: those of a repeat are equal
   * @param make runs the request; its write keeps `kept`
   * @param repeat the first response
   * @throws ApiError what `run` and `make` throw
   */
  serve(
    { now, principal, idempotencyKey: key }: Keyable,
    name: string,
    details: object,
    make: (now: number, kept: KeptRequest | null) => Promise<string>,
    repeat: KeyedActions["repeat"],
  ): Promise<string> {
    // The machine's own shell has no keys.
    if (key === "" || principal === null) return make(now, null);
    const act = async (kept: Omit<KeptRequest, "reference">): Promise<string> => {
      this.checkLive(principal, kept.at);
      return make(kept.at, { ...kept, reference: null });
    };
    return this.run({ userId: principal.userId, key, name, body: details }, { act, repeat });
  }

  /**
   * Runs a request at most once per key; repeats while it is in progress get its response, whatever it is.
   * @throws ApiError 40900 where the key belongs to another request, 42900 where the user has too
   *   many keys, 50300 while the first request's result is unknown; what `act` throws
   */
  async run({ userId, key, name, body }: KeyedRequest, actions: KeyedActions): Promise<string> {
    const request = `${name} ${JSON.stringify(body)}`;
    const id = `${userId} ${key}`;
    const first = this.pending.get(id);
    if (first !== undefined) {
      checkSame(first, request);
      if (!first.isResultUnknown) return first.response;
    }
    const lookup = this.history.idempotencyKey(userId, key, this.clock.now() - IDEMPOTENCY_KEY_MS);
    if (first !== undefined) {
      const { found } = await lookup;
      if (found === null)
        throw overloaded("the first request with this Idempotency-Key is still in progress: try again");
      this.pending.delete(id);
      return actions.repeat(found);
    }
    const response = this.runOnce(lookup, { userId, key, request }, actions);
    const entry: PendingRequest = { request, response, since: this.clock.now(), isResultUnknown: false };
    this.pending.set(id, entry);
    const forget = (): void => void this.pending.delete(id);
    response.then(forget, (error) => {
      if (error instanceof ApiError && error.kind === ErrorKind.internal) entry.isResultUnknown = true;
      else forget();
    });
    return response;
  }

  private async runOnce(
    lookup: Promise<KeyLookup>,
    kept: Pick<KeptRequest, "userId" | "key" | "request">,
    actions: KeyedActions,
  ): Promise<string> {
    const user = this.users.get(kept.userId) ?? { open: 0, running: 0, started: 0 };
    this.users.set(kept.userId, user);
    user.open++;
    try {
      return await this.runAfterLookup(lookup, kept, actions, user);
    } finally {
      if (--user.open === 0) this.users.delete(kept.userId);
    }
  }

  private async runAfterLookup(
    lookup: Promise<KeyLookup>,
    kept: Pick<KeptRequest, "userId" | "key" | "request">,
    { act, repeat }: KeyedActions,
    user: UserRequests,
  ): Promise<string> {
    // The lookup may not count what runs now, and what starts until it responds.
    const before = user.running - user.started;
    const { found, count, oldest } = await lookup;
    if (found !== null) {
      checkSame(found, kept.request);
      return repeat(found);
    }
    const at = this.clock.now();
    if (count + before + user.started >= MAX_IDEMPOTENCY_KEYS_PER_USER) {
      const text = `at most ${MAX_IDEMPOTENCY_KEYS_PER_USER} Idempotency-Keys in 24 hours`;
      throw new ApiError(ErrorKind.limitExceeded, text, Math.ceil(((oldest ?? at) + IDEMPOTENCY_KEY_MS - at) / 1_000));
    }
    user.running++;
    user.started++;
    try {
      return await act({ ...kept, at });
    } finally {
      user.running--;
    }
  }

  /** Forgets requests that timed out and weren't repeated. */
  forgetExpired(now: number): void {
    for (const [id, { isResultUnknown, since }] of this.pending) {
      if (isResultUnknown && since <= now - IDEMPOTENCY_KEY_MS) this.pending.delete(id);
    }
  }
}

/** @throws ApiError 40900 */
function checkSame(first: { readonly request: string }, request: string): void {
  if (first.request !== request) {
    throw new ApiError(ErrorKind.conflict, "Idempotency-Key: already used with another request");
  }
}
