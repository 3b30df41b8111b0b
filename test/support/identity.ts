/**
 * A person's actions around an account: sign up, read the mail and the text message, sign in, create tokens. Reads mails
 * and text messages in the outbox of the data folder, where a server without SMTP_URL puts them. Hands out unique addresses,
 * and keeps a test file's clients and secrets.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Static } from "typebox";
import type { CreatedPat, SignIn, Tokens, User } from "../../server/accounts/schemas.ts";

import { eventually } from "./checks.ts";
import { type Answer, askOnce, Client } from "./client.ts";
import type { TestServer } from "./server.ts";
import { ALL_SCOPES } from "./world.ts";

export const PASSWORD = "a quiet harbour at dawn";

export type UserJson = Static<typeof User>;
/** Of a sign-in without a cookie. */
export type SignInJson = Static<typeof SignIn> & TokensJson;
export type TokensJson = Static<typeof Tokens> & { readonly refresh_token: string };
export type CreatedPatJson = Static<typeof CreatedPat>;

/** A signed-in user: a client with the access token, and the rest of what the sign-in gave. */
export interface SignedIn {
  readonly client: Client;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly user: UserJson;
}

let emails = 0;
/** An email address, unique in this test file. */
export const freshEmail = (name = "person"): string => `${name}-${++emails}@people.example`;

let addresses = 0;
/** An IP address, unique in this test file, from the benchmark range (RFC 2544). */
export const freshAddress = (): string => `198.18.${addresses >> 8}.${addresses++ & 255}`;

/** All messages sent so far to an address or a phone number, oldest first. */
export function messagesTo(server: TestServer, to: string): string[] {
  const outbox = join(server.dataDir, "outbox");
  const names = existsSync(outbox) ? readdirSync(outbox).filter((name) => /\.(eml|sms)$/.test(name)) : [];
  const texts = names.sort().map((name) => readFileSync(join(outbox, name), "utf8"));
  return texts.filter((text) => text.split("\n").some((line) => line.trim() === `To: ${to}`));
}

/** Waits for the `nth` match in messages to the recipient. */
async function sent(server: TestServer, to: string, pattern: RegExp, nth: number): Promise<string> {
  let found: string[] = [];
  await eventually(async () => {
    found = messagesTo(server, to).flatMap((text) => pattern.exec(text)?.[1] ?? []);
    if (found.length < nth) throw new Error(`${found.length} of ${nth} messages to ${to} came`);
  });
  return found[nth - 1]!;
}

/** The token of the `nth` link to verify an address. */
export function verificationToken(server: TestServer, email: string, nth = 1): Promise<string> {
  return sent(server, email, /\/verify-email\?token=([A-Za-z0-9_-]+)/, nth);
}

/** The token of the `nth` link to reset a password. */
export function resetToken(server: TestServer, email: string, nth = 1): Promise<string> {
  return sent(server, email, /\/reset-password\?token=([A-Za-z0-9_-]+)/, nth);
}

/** The token of the links that end mails about what happened. */
export function unsubscribeToken(server: TestServer, email: string): Promise<string> {
  return sent(server, email, /\/unsubscribe\/([\w.-]+)/, 1);
}

/** The `nth` code to a phone. */
export function phoneCode(server: TestServer, phone: string, nth = 1): Promise<string> {
  return sent(server, phone, /\b(\d{6})\b/, nth);
}

export function register(server: TestServer, email: string, password = PASSWORD): Promise<Answer<UserJson>> {
  return askOnce(server, null, "POST", "/auth/register", { body: { email, password } });
}

export function login(server: TestServer, email: string, password = PASSWORD): Promise<Answer<SignInJson>> {
  return askOnce(server, null, "POST", "/auth/login", { body: { email, password } });
}

/** Signs in. Close the client. @throws Error if the server rejects it */
export async function signIn(server: TestServer, email: string, password = PASSWORD): Promise<SignedIn> {
  const { code, msg, data } = await login(server, email, password);
  if (code !== 0) throw new Error(`sign-in of ${email}: ${code} ${msg}`);
  return {
    client: new Client(server, data.access_token),
    accessToken: data.access_token,
    refreshToken: data.refresh_token,
    user: data.user,
  };
}

let phones = 1_000;
/** A phone number, unique in this test file. */
export const freshPhoneNumber = (): string => `+1415556${++phones}`;

/** Creates an account as a person would, verifies its email, for tier 1 also its phone, and signs in. Close the client. */
export async function signUp(
  server: TestServer,
  email: string,
  tier: 0 | 1,
  phone = freshPhoneNumber(),
): Promise<SignedIn> {
  const { code, msg } = await register(server, email);
  if (code !== 0) throw new Error(`registration of ${email}: ${code} ${msg}`);
  const signedIn = await signIn(server, email);
  const { client } = signedIn;
  const verified = await client.data<UserJson>("POST", "/auth/verify-email", {
    token: await verificationToken(server, email),
  });
  if (tier === 0) return { ...signedIn, user: verified };
  const before = messagesTo(server, phone).length;
  await client.data("POST", "/me/phone", { phone });
  const user = await client.data<UserJson>("POST", "/me/phone/verify", {
    code: await phoneCode(server, phone, before + 1),
  });
  return { ...signedIn, user };
}

/** A personal access token, with all scopes unless `more` names others. @param session a session's client */
export function createPat(session: Client, more: object = {}): Promise<CreatedPatJson> {
  return session.data("POST", "/me/personal-access-tokens", { name: "bot", scopes: ALL_SCOPES, ...more });
}

/** A test file's clients, which `close` closes, and the secrets that they received. */
export class Guests {
  /** Must never appear in a log. */
  readonly secrets = new Set<string>([PASSWORD]);
  private readonly clients: Client[] = [];

  /** @param sockets the number of concurrent requests */
  client(server: TestServer, token: string | null, sockets = 1): Client {
    const client = new Client(server, token, sockets);
    this.clients.push(client);
    if (token !== null) this.secrets.add(token);
    return client;
  }

  keep(signedIn: SignedIn): SignedIn {
    this.clients.push(signedIn.client);
    this.secrets.add(signedIn.accessToken).add(signedIn.refreshToken);
    return signedIn;
  }

  async signIn(server: TestServer, email: string, password = PASSWORD): Promise<SignedIn> {
    return this.keep(await signIn(server, email, password));
  }

  close(): void {
    for (const client of this.clients) client.close();
  }
}
