/**
 * What a person does around an account: sign up, read the mail and the text message that come, sign in. Mails and
 * messages are read where a server without SMTP_URL leaves them, in the outbox of its data folder.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Static } from "typebox";
import type * as S from "../../../server/schemas.ts";
import { eventually } from "./checks.ts";
import { type Answer, Client } from "./client.ts";
import type { TestServer } from "./server.ts";

export const PASSWORD = "a quiet harbour at dawn";

export type UserJson = Static<typeof S.User>;
export type SignInJson = Static<typeof S.SignIn>;

/** A signed-in user: a client with the access token, and the rest of what the sign-in gave. */
export interface SignedIn {
  readonly client: Client;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly user: UserJson;
}

/** All that the server sent so far to an address or a phone number, oldest first. */
export function messagesTo(server: TestServer, to: string): string[] {
  const outbox = join(server.dataDir, "outbox");
  const names = existsSync(outbox) ? readdirSync(outbox).filter((name) => /\.(eml|sms)$/.test(name)) : [];
  const texts = names.sort().map((name) => readFileSync(join(outbox, name), "utf8"));
  return texts.filter((text) => text.split("\n").some((line) => line.trim() === `To: ${to}`));
}

/** The `nth` thing of its kind that was sent to someone: waits for it. */
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

/** The `nth` code to a phone. */
export function phoneCode(server: TestServer, phone: string, nth = 1): Promise<string> {
  return sent(server, phone, /\b(\d{6})\b/, nth);
}

export function register(server: TestServer, email: string, password = PASSWORD): Promise<Answer<UserJson>> {
  return anonymously(server, (client) => client.request("POST", "/auth/register", { body: { email, password } }));
}

export function login(server: TestServer, email: string, password = PASSWORD): Promise<Answer<SignInJson>> {
  return anonymously(server, (client) => client.request("POST", "/auth/login", { body: { email, password } }));
}

/** Signs in; fails where the server refuses. Close the client. */
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

/** Makes an account as a person would, up to tier 0 or 1, and signs in. Close the client. */
export async function signUp(
  server: TestServer,
  email: string,
  tier: 0 | 1,
  phone = "+14155552671",
): Promise<SignedIn> {
  const { code, msg } = await register(server, email);
  if (code !== 0) throw new Error(`registration of ${email}: ${code} ${msg}`);
  const signedIn = await signIn(server, email);
  if (tier === 0) return signedIn;
  const { client } = signedIn;
  await client.data("POST", "/auth/verify-email", { token: await verificationToken(server, email) });
  const before = messagesTo(server, phone).length;
  await client.data("POST", "/me/phone", { phone });
  const user = await client.data<UserJson>("POST", "/me/phone/verify", {
    code: await phoneCode(server, phone, before + 1),
  });
  return { ...signedIn, user };
}

async function anonymously<T>(
  server: TestServer,
  ask: (client: Client) => Promise<Answer<unknown>>,
): Promise<Answer<T>> {
  const client = new Client(server, null);
  try {
    return (await ask(client)) as Answer<T>;
  } finally {
    client.close();
  }
}
