/**
 * The second step of a sign-in. After the password, or an identity provider's sign-in, an account with a second factor
 * gets a challenge instead of tokens: opaque, for one sign-in, valid for minutes and while the password stays the same. In
 * memory only: after a restart the user signs in again.
 *
 * Wrong codes are bounded per challenge and per account. A challenge requires the password, so a stranger cannot exhaust
 * the account's bound; and passkeys work even when it is exhausted.
 */
import { randomBytes } from "node:crypto";
import { audit, type RequestContext } from "../accounts/audit.ts";
import {
  MAX_CHALLENGES,
  MAX_CHALLENGES_PER_USER,
  MAX_WRONG_CODES,
  MAX_WRONG_CODES_PER_HOUR,
  SIGN_IN_CHALLENGE_MS,
} from "../accounts/limits.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { ProofMethod, User } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { recoveryCodeUsedMail, wrongCodesMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { HourlyLimit } from "../util/hourly-limit.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import { newPasskeySecret, type Passkeys, type RequestOptions } from "./passkeys.ts";
import type { FactorProof, SecondFactors, UsedFactor } from "./second-factors.ts";

const CHALLENGE_PREFIX = "pm_chl_";
const CHALLENGE_BYTES = 32;

/** The response to the first step. */
export interface Challenge {
  readonly challenge: string;
  readonly methods: ProofMethod[];
  /** The options for `navigator.credentials.get`; null without a passkey. */
  readonly passkey: RequestOptions | null;
  readonly expiresAt: number;
}

interface PendingChallenge {
  readonly user: User;
  /** The first step's method, such as "password". */
  readonly method: string;
  /** The user's hash at the first step. */
  readonly passwordHash: string | null;
  readonly passkeyChallenge: string;
  readonly expiresAt: number;
  wrong: number;
  /** A proof is being verified: a second request with this challenge is rejected meanwhile. */
  isBusy: boolean;
}

/** The result of both steps. */
export interface CompletedSignIn {
  readonly user: User;
  /** The first step's method. */
  readonly method: string;
  readonly by: ProofMethod;
}

interface Options {
  readonly factors: SecondFactors;
  readonly passkeys: Passkeys;
  readonly writer: LogWriter;
  readonly notifier: Notifier;
}

export class SecondFactorSignIn {
  private readonly options: Options;
  /** By the challenge's hash, oldest first. */
  private readonly pending = new BoundedMap<string, PendingChallenge>(MAX_CHALLENGES);
  /** By user, oldest first; some may have ended. */
  private readonly ofUser = new Map<number, string[]>();
  private readonly wrongCodes = new HourlyLimit(MAX_WRONG_CODES_PER_HOUR);

  constructor(options: Options) {
    this.options = options;
  }

  /** Returns null when the account has no second factor. @param method of the first step */
  begin(user: User, method: string, now: number): Challenge | null {
    const { factors, passkeys } = this.options;
    if (!factors.has(user.id)) return null;
    const challenge = CHALLENGE_PREFIX + randomBytes(CHALLENGE_BYTES).toString("base64url");
    const passkeyChallenge = newPasskeySecret();
    const expiresAt = now + SIGN_IN_CHALLENGE_MS;
    const { passwordHash } = user;
    const hash = hashToken(challenge);
    this.pending.set(hash, { user, method, passwordHash, passkeyChallenge, expiresAt, wrong: 0, isBusy: false });
    const mine = (this.ofUser.get(user.id) ?? []).filter((each) => this.pending.has(each));
    const ending = mine.splice(0, mine.length + 1 - MAX_CHALLENGES_PER_USER);
    for (const each of ending) this.pending.delete(each);
    this.ofUser.set(user.id, [...mine, hash]);
    const passkey = passkeys.requestOptions(passkeyChallenge, factors.of(user.id));
    return { challenge, methods: factors.methodsOf(user.id), passkey, expiresAt };
  }

  /**
   * Resolves once the proof, and with it the challenge, is durably used up.
   * @throws ApiError 40100 for an ended challenge or a wrong proof; 40000; 40900 while another request uses the same
   * challenge; 42900 after too many wrong codes
   */
  async finish(challenge: string, proof: FactorProof, context: RequestContext): Promise<CompletedSignIn> {
    const { factors, writer, notifier } = this.options;
    const { now } = context;
    const hash = hashToken(challenge);
    const pending = this.live(hash, now);
    if (pending.isBusy) throw new ApiError(ErrorKind.conflict, "another request is using this challenge");
    const { user, method } = pending;
    pending.isBusy = true;
    try {
      const use = await this.verify(pending, proof, now);
      if (use === null) throw this.refuse(hash, pending, proof.passkey === undefined, now);
      this.live(hash, now);
      this.pending.delete(hash);
      const writes: RequestedWrite[] = [...use.writes];
      const isRecovery = use.method === "recovery_code";
      const left = factors.codesLeft(user.id);
      const change = { action: "second_factor.recover", userId: user.id, subject: user.id, details: { left } };
      await writer.write(writes, isRecovery ? [audit(context, `user ${user.id}`, change)] : []);
      if (isRecovery) notifier.sendMail(recoveryCodeUsedMail(user.email, left));
      // Whatever ended the challenge during the write also ends the sign-in.
      this.expectGood(pending, now);
      return { user, method, by: use.method };
    } finally {
      pending.isBusy = false;
    }
  }

  private async verify(
    pending: PendingChallenge,
    { code, passkey }: FactorProof,
    now: number,
  ): Promise<UsedFactor | null> {
    const { factors } = this.options;
    const { id } = pending.user;
    if (passkey !== undefined && code === undefined) {
      return factors.usePasskey(id, pending.passkeyChallenge, passkey, now);
    }
    if (code === undefined || passkey !== undefined) throw badRequest("code: required, unless you send passkey");
    const waitMs = this.wrongCodes.waitMs(String(id), now);
    if (waitMs > 0) {
      const words = "too many wrong codes for this account: wait, or use a passkey";
      throw new ApiError(ErrorKind.limitExceeded, words, Math.ceil(waitMs / 1_000));
    }
    return factors.useCode(id, code, now);
  }

  /** Counts a wrong proof. @returns the error for the client */
  private refuse(hash: string, pending: PendingChallenge, isCode: boolean, now: number): ApiError {
    const { user } = pending;
    pending.wrong++;
    if (pending.wrong >= MAX_WRONG_CODES) this.pending.delete(hash);
    if (isCode) {
      const key = String(user.id);
      this.wrongCodes.consume(key, now);
      // Whoever got this far knows the password.
      if (this.wrongCodes.waitMs(key, now) > 0) this.options.notifier.sendMail(wrongCodesMail(user.email));
    }
    const left = MAX_WRONG_CODES - pending.wrong;
    const what = isCode ? "code" : "passkey";
    const rest = left === 0 ? "sign in again" : `${left} more ${left === 1 ? "try" : "tries"}`;
    return new ApiError(ErrorKind.unauthenticated, `${what}: wrong, or used before; ${rest}`);
  }

  /** @throws ApiError 40100 */
  private live(hash: string, now: number): PendingChallenge {
    const found = this.pending.get(hash);
    if (found === undefined) throw challengeEnded();
    this.expectGood(found, now);
    return found;
  }

  /** @throws ApiError 40100 */
  private expectGood({ user, passwordHash, expiresAt }: PendingChallenge, now: number): void {
    const isSame = user.passwordHash === passwordHash && this.options.factors.has(user.id);
    if (!isSame || expiresAt <= now) throw challengeEnded();
  }

  forgetExpired(now: number): void {
    this.wrongCodes.forgetExpired(now);
    for (const [hash, { expiresAt }] of this.pending) {
      if (expiresAt > now) break;
      this.pending.delete(hash);
    }
    for (const [userId, hashes] of this.ofUser) {
      if (!hashes.some((hash) => this.pending.has(hash))) this.ofUser.delete(userId);
    }
  }
}

const challengeEnded = (): ApiError =>
  new ApiError(ErrorKind.unauthenticated, "challenge: unknown, used or expired: sign in again");
