/**
 * Requests that people send without a token around an account, and what their responses reveal. Knows one test file's
 * server and keeps its clients.
 */
import { expect } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, type Client } from "../support/client.ts";
import { freshAddress, Guests, messagesTo, resetToken, type SignedIn, type UserJson } from "../support/identity.ts";
import type { TestServer } from "../support/server.ts";
import { expectRefused } from "../support/trading.ts";
import type { World } from "../support/world.ts";

export const NEW_PASSWORD = "nine lanterns over the weir";
/** The mails of a kind that an account may get, and the codes that a phone may get. */
export const MAX_MESSAGES_PER_HOUR = 5;
/** The server defers each mail by 50 to 250 ms, so six rounds in sequence outlast every earlier mail. */
export const HIDDEN_ROUNDS = 6;

export const statusesOf = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status).sort();
export const me = (client: Client): Promise<UserJson> => client.get("/me");
export const me401 = (client: Client): Promise<Answer> => expectRefused(client.request("GET", "/me"), 401, 40100);

/** Returns everything that could distinguish one response from another, without the request id and the date. */
export function sight({ status, code, msg, data, headers }: Answer): object {
  const { "x-request-id": _, date: __, ...rest } = headers;
  return { status, code, msg, data, headers: rest };
}

export interface AccountRequests {
  readonly guests: Guests;
  readonly kept: (signedIn: SignedIn) => SignedIn;
  /** Returns an unauthenticated client that can have several requests in flight. */
  readonly visitors: () => Client;
  /** POST without a token. */
  readonly post: <T = unknown>(path: string, body: unknown, client?: Client, headers?: object) => Promise<Answer<T>>;
  /** Sends from a fresh address, so that the remaining rate limits reveal nothing. */
  readonly postFromElsewhere: (path: string, body: unknown) => Promise<Answer>;
  /** Resolves when the server has sent all mails that the responses so far deferred. Can be called more than once. */
  readonly hiddenWorkDone: () => Promise<void>;
  /** The address may have received so many mails when `expectMails` runs. */
  readonly countMails: (email: string, count: number) => void;
  /** Expects that each counted address got its mails and no others. */
  readonly expectMails: () => Promise<void>;
  /** Ends the file's world; expects that no secret is in its log. */
  readonly end: (world: World) => Promise<void>;
}

/** @param firstSentinel from this number on, each call of `hiddenWorkDone` mails the next six users of the world */
export function accountRequests(server: () => TestServer, firstSentinel: number): AccountRequests {
  const guests = new Guests();
  guests.secrets.add(NEW_PASSWORD);
  let nextSentinel = firstSentinel;

  const post = <T>(path: string, body: unknown, client?: Client, headers = {}): Promise<Answer<T>> => {
    if (client !== undefined) return client.request<T>("POST", path, { body, headers });
    return askOnce(server(), null, "POST", path, { body, headers });
  };
  const hiddenWorkDone = async (): Promise<void> => {
    for (let i = 0; i < HIDDEN_ROUNDS; i++) {
      const email = `user${nextSentinel++}@example.com`;
      await post("/auth/forgot-password", { email });
      // Wait for this mail before the next request.
      await resetToken(server(), email);
    }
  };
  const mails = new Map<string, number>();
  return {
    guests,
    kept: (signedIn) => guests.keep(signedIn),
    visitors: () => guests.client(server(), null, 32),
    post,
    postFromElsewhere: (path, body) => post(path, body, undefined, { "X-Forwarded-For": freshAddress() }),
    hiddenWorkDone,
    countMails: (email, count) => void mails.set(email, count),
    expectMails: async () => {
      await hiddenWorkDone();
      const received = [...mails.keys()].map((email) => [email, messagesTo(server(), email).length]);
      expect(received).toEqual([...mails]);
    },
    end: async (world) => {
      guests.close();
      await expectEndsWell(world);
      expectUnlogged(guests.secrets, world.server);
    },
  };
}
