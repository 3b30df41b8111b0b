/** An authenticator app; adds it to an account, and signs in with it. */
import type { Static } from "typebox";
import type * as F from "../../server/sign-in/second-factor-schemas.ts";
import { codeAt, STEP_MS } from "../../server/sign-in/totp.ts";
import { type Answer, askOnce, Client } from "./client.ts";
import { PASSWORD, type SignInJson } from "./identity.ts";
import type { TestServer } from "./server.ts";

export type ChallengeJson = Static<typeof F.SignInChallenge>;
export type EnrolmentJson = Static<typeof F.Enrolment>;
export type ConfirmedJson = Static<typeof F.Confirmed>;
export type FactorsJson = Static<typeof F.SecondFactors>;

export const FACTORS = "/me/second-factors";
const BASE_32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export function readBase32(text: string): Buffer {
  const bits = [...text].map((letter) => BASE_32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}

/** A code shown so late in its step might reach the exchange in the next one, where the earliest is no longer valid. */
const LATE_MS = 2_000;
const pause = new Int32Array(new SharedArrayBuffer(4));

/** Waits until the step of codes has a while to go. @returns the time, ms */
function earlyInStep(): number {
  const left = STEP_MS - (Date.now() % STEP_MS);
  if (left <= LATE_MS) Atomics.wait(pause, 0, 0, left + 1);
  return Date.now();
}

/** Shows codes of one secret, each later than the one before, as a code is valid once. */
export class AuthenticatorApp {
  readonly secret: string;
  private last = 0;

  constructor(secret: string) {
    this.secret = secret;
  }

  /** The earliest code that the exchange can accept: three in 30 s, then one every 30 s. @param now its clock, ms */
  next(now = earlyInStep()): string {
    this.last = Math.max(this.last + 1, Math.floor(now / STEP_MS) - 1);
    return codeAt(readBase32(this.secret), this.last);
  }

  /** The last code shown. */
  again(): string {
    return codeAt(readBase32(this.secret), this.last);
  }

  /** A code that is invalid at the time. */
  wrong(now = Date.now()): string {
    const step = Math.floor(now / STEP_MS);
    const near = [-2, -1, 0, 1, 2].map((offset) => codeAt(readBase32(this.secret), step + offset));
    for (let n = 0; ; n++) {
      const code = String(n).padStart(6, "0");
      if (!near.includes(code)) return code;
    }
  }
}

export interface Enrolled {
  readonly app: AuthenticatorApp;
  readonly id: number;
  /** Only with the first factor, else null. */
  readonly recoveryCodes: string[] | null;
}

export const prove = (session: Client, proof: object = { password: PASSWORD }): Promise<null> =>
  session.data("POST", `${FACTORS}/proof`, proof);

/** Adds an authenticator app to the session's account. @param proof of the account's owner */
export async function addApp(session: Client, proof: object = { password: PASSWORD }, now?: number): Promise<Enrolled> {
  await prove(session, proof);
  const { id, secret } = await session.data<EnrolmentJson>("POST", FACTORS, { kind: "totp", name: "Phone" });
  const app = new AuthenticatorApp(secret!);
  const path = `${FACTORS}/${id}/confirm`;
  const { recovery_codes } = await session.data<ConfirmedJson>("POST", path, { code: app.next(now) });
  return { app, id, recoveryCodes: recovery_codes };
}

/** The first step of an account with a second factor. */
export async function challengeOf(server: TestServer, email: string, password = PASSWORD): Promise<ChallengeJson> {
  const body = { email, password };
  const { code, msg, data } = await askOnce<ChallengeJson>(server, null, "POST", "/auth/login", { body });
  if (code !== 0 || data.challenge === undefined) throw new Error(`no challenge for ${email}: ${code} ${msg}`);
  return data;
}

/** The second step. */
export function finish(server: TestServer, challenge: string, shown: object): Promise<Answer<SignInJson>> {
  return askOnce(server, null, "POST", "/auth/login/second-factor", { body: { challenge, ...shown } });
}

/** Both steps. Close the client. */
export async function signInWithCode(
  server: TestServer,
  email: string,
  code: string,
): Promise<{ client: Client; accessToken: string; refreshToken: string }> {
  const { challenge } = await challengeOf(server, email);
  const { code: outcome, msg, data } = await finish(server, challenge, { code });
  if (outcome !== 0) throw new Error(`second step of ${email}: ${outcome} ${msg}`);
  const { access_token: accessToken, refresh_token: refreshToken } = data;
  return { client: new Client(server, accessToken), accessToken, refreshToken };
}

export const claimsOf = (accessToken: string): { readonly amr?: string[] } =>
  JSON.parse(Buffer.from(accessToken.split(".")[1]!, "base64url").toString());
