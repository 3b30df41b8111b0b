/**
 * How an account's owner manages its second factors: confirms its identity, adds a factor in two steps, removes one,
 * replaces recovery codes. Also the reset of lost factors by operators. Mails the owner about each change.
 *
 * Pending factors and identity proofs live in memory only, so a restart drops them. Adding the first factor ends the
 * other sessions, which were opened without one; the session that added it counts as opened with it.
 */
import { randomBytes } from "node:crypto";
import type { SecondFactorRow } from "../../engine/log/rows.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import type { Session } from "../accounts/credentials.ts";
import {
  MAX_PASSKEYS_PER_USER,
  MAX_PENDING_FACTORS,
  MAX_TOTPS_PER_USER,
  MAX_WRONG_CODES,
  MAX_WRONG_CODES_PER_HOUR,
  PENDING_FACTOR_MS,
  PROOF_MS,
} from "../accounts/limits.ts";
import type { Operator } from "../accounts/operator.ts";
import type { FactorKind, Principal, User } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { secondFactorChangedMail, secondFactorsResetMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { HourlyLimit } from "../util/hourly-limit.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import { type CreationOptions, newPasskeySecret, type Passkeys } from "./passkeys.ts";
import type { Passwords } from "./passwords.ts";
import type { FactorProof, SecondFactors } from "./second-factors.ts";
import type { Sessions } from "./sessions.ts";
import { base32, matchStep, SECRET_BYTES, totpUri } from "./totp.ts";

const ISSUER = "Prediction Exchange";
const USUAL_NAMES: Readonly<Record<FactorKind, string>> = { totp: "Authenticator app", passkey: "Passkey" };
const NO_PROOF =
  "confirm your identity first: POST /me/second-factors/proof with your password or a second-factor code";
const SIGN_IN_AGAIN = "confirm your identity first: sign in again";

/** A factor that the owner has not confirmed yet. */
export type PendingFactor = {
  readonly id: number;
  readonly userId: number;
  readonly name: string;
  readonly expiresAt: number;
  wrong: number;
} & (
  | { readonly kind: "totp"; readonly secret: Buffer; readonly challenge: null }
  | { readonly kind: "passkey"; readonly secret: null; readonly challenge: string; readonly userHandle: string }
);

/** What the owner needs to confirm a pending factor; returned only once. */
export interface Enrollment {
  readonly pending: PendingFactor;
  /** In base 32; `uri` contains it too, for the QR code. */
  readonly secret: string | null;
  readonly uri: string | null;
  readonly options: CreationOptions | null;
}

export const OWNER_PROOF_METHODS = ["password", "code"] as const;
export type OwnerProofMethod = (typeof OWNER_PROOF_METHODS)[number];

/** How the owner confirms its identity. */
export interface OwnerProof {
  readonly password?: string | undefined;
  readonly code?: string | undefined;
}

interface Options {
  readonly accounts: Accounts;
  readonly factors: SecondFactors;
  readonly passkeys: Passkeys;
  readonly passwords: Passwords;
  readonly sessions: Sessions;
  readonly writer: LogWriter;
  readonly notifier: Notifier;
  /** True when operators must have a second factor. */
  readonly isRequired: boolean;
}

export class SecondFactorSettings {
  private readonly options: Options;
  /** By id, oldest first. */
  private readonly pending = new BoundedMap<number, PendingFactor>(MAX_PENDING_FACTORS);
  /** When each session confirmed its owner, ms. */
  private readonly proofs = new WeakMap<Session, number>();
  private readonly wrongProofs = new HourlyLimit(MAX_WRONG_CODES_PER_HOUR);
  private readonly proving = new KeyedMutex<number>("another proof is being verified: try again");
  private readonly mutex = new KeyedMutex<number>(
    "another change to the account's second factors is in progress: try again",
  );

  constructor(options: Options) {
    this.options = options;
  }

  isRequiredOf({ role }: User): boolean {
    return this.options.isRequired && role === "operator";
  }

  // ---------------------------------------------------------------- proofs

  /**
   * Allows the session to change second factors for some minutes. The password is enough without a second factor, or in a
   * session that was opened with one.
   * @throws ApiError 40300 for a wrong proof; 40000; 40900 while another is verified; 42900 after too many wrong ones
   */
  prove(principal: Principal, proof: OwnerProof, context: RequestContext): Promise<void> {
    // One at a time: parallel attempts would all pass the check of the bound.
    return this.proving.run(principal.userId, () => this.verifyOwner(principal, proof, context));
  }

  private async verifyOwner(
    principal: Principal,
    { password, code }: OwnerProof,
    context: RequestContext,
  ): Promise<void> {
    const { factors, passwords, writer } = this.options;
    const session = principal.credential as Session;
    const { user } = session;
    const { now } = context;
    if ((password === undefined) === (code === undefined)) throw badRequest("password: required, unless you send code");
    if (password !== undefined && factors.has(user.id) && !session.hasSecondFactor) {
      throw new ApiError(
        ErrorKind.forbidden,
        "code: required, from a second factor: this session was opened without one",
      );
    }
    const waitMs = this.wrongProofs.waitMs(String(user.id), now);
    if (waitMs > 0) {
      throw new ApiError(ErrorKind.limitExceeded, "too many wrong proofs in an hour", Math.ceil(waitMs / 1_000));
    }
    if (password !== undefined) {
      const hash = user.passwordHash;
      const isRight = await passwords.verify(hash, password, context.client, user.id);
      if (!isRight || user.passwordHash !== hash) throw this.refuse(user, "password", now);
    } else {
      const use = code === undefined ? null : factors.useCode(user.id, code, now);
      if (use === null) throw this.refuse(user, "code", now);
      const change = { action: "second_factor.recover", userId: user.id, subject: user.id };
      await writer.write(use.writes, use.factor === null ? [audit(context, actorOf(principal), change)] : []);
    }
    this.proofs.set(session, now);
  }

  private refuse({ id }: User, what: string, now: number): ApiError {
    this.wrongProofs.consume(String(id), now);
    return new ApiError(ErrorKind.forbidden, `the current ${what} is wrong`);
  }

  /**
   * How the session's owner can confirm its identity before a change: an empty list when it has to sign in again, null when
   * no proof is needed now. For an account without a password, a sign-in moments ago is a proof.
   */
  proofsOf({ credential }: Principal, now: number): OwnerProofMethod[] | null {
    const { factors } = this.options;
    const session = credential as Session;
    const { user, row } = session;
    const isFresh = (at: number | undefined): boolean => at !== undefined && now - at < PROOF_MS;
    if (isFresh(this.proofs.get(session))) return null;
    const isWhole = session.hasSecondFactor || !factors.has(user.id);
    if (user.passwordHash === null && isWhole && isFresh(row.createdAt)) return null;
    const takesCodes = factors.methodsOf(user.id).some((method) => method !== "passkey");
    return [
      ...(user.passwordHash !== null && isWhole ? ["password" as const] : []),
      ...(takesCodes ? ["code" as const] : []),
    ];
  }

  /** @throws ApiError 40300 unless the session confirmed its owner recently */
  private expectProof(principal: Principal, now: number): void {
    const proofs = this.proofsOf(principal, now);
    if (proofs === null) return;
    throw new ApiError(ErrorKind.forbidden, proofs.length > 0 ? NO_PROOF : SIGN_IN_AGAIN);
  }

  // ---------------------------------------------------------------- adding

  /**
   * The first step; it drops the user's other pending factors.
   * @throws ApiError 40300 without a proof or a verified address, 40900 at the maximum number, 40000 for a passkey when
   * this exchange cannot use passkeys
   */
  begin(principal: Principal, kind: FactorKind, name: string | null, { now }: RequestContext): Enrollment {
    const { factors, passkeys } = this.options;
    const { user } = principal.credential;
    if (user.emailVerifiedAt === null) throw new ApiError(ErrorKind.forbidden, "verify the email address first");
    this.expectProof(principal, now);
    const own = factors.of(user.id);
    expectRoom(own, kind);
    if (kind === "passkey" && passkeys.rejection !== null) throw badRequest(`kind: ${passkeys.rejection}`);
    for (const each of this.pending.values()) if (each.userId === user.id) this.pending.delete(each.id);
    const pending: PendingFactor = {
      id: factors.nextId(),
      userId: user.id,
      name: name ?? USUAL_NAMES[kind],
      expiresAt: now + PENDING_FACTOR_MS,
      wrong: 0,
      ...(kind === "totp"
        ? { kind, secret: randomBytes(SECRET_BYTES), challenge: null }
        : { kind, secret: null, challenge: newPasskeySecret(), userHandle: handleOf(own) }),
    };
    this.pending.set(pending.id, pending);
    const { secret } = pending;
    return {
      pending,
      secret: secret && base32(secret),
      uri: secret && totpUri(secret, ISSUER, user.email),
      options:
        pending.kind === "totp" ? null : passkeys.creationOptions(user, pending.userHandle, pending.challenge, own),
    };
  }

  /**
   * The second step. Returns recovery codes with the first factor, else null.
   * @throws ApiError 4040 when the factor is not pending, 40000 for a missing or wrong proof; five wrong codes end it
   */
  confirm(
    principal: Principal,
    id: number,
    proof: FactorProof,
    context: RequestContext,
  ): Promise<{ factor: SecondFactorRow; codes: string[] | null }> {
    const { user } = principal.credential;
    return this.mutex.run(user.id, async () => {
      const { factors } = this.options;
      // A missing proof is reported before an unknown id.
      if (proof.code === undefined && proof.passkey === undefined)
        throw badRequest("code: required, unless you send passkey");
      const pending = this.pendingOf(user, id, context.now);
      const row = await this.verify(pending, proof, context.now);
      // During the verification, another request or the end of the session may have come first.
      if (principal.credential.isEnded || this.pendingOf(user, id, context.now) !== pending) throw noPending();
      expectRoom(factors.of(user.id), pending.kind);
      if (row.credentialId !== null && factors.isTaken(row.credentialId)) {
        throw new ApiError(ErrorKind.conflict, "passkey: already registered with an account");
      }
      this.pending.delete(id);
      return { factor: row, codes: await this.enroll(principal, row, context) };
    });
  }

  private pendingOf(user: User, id: number, now: number): PendingFactor {
    const pending = this.pending.get(id);
    if (pending === undefined || pending.userId !== user.id || pending.expiresAt <= now) throw noPending();
    return pending;
  }

  /** Verifies the proof; returns the row to store. @throws ApiError 40000 */
  private async verify(pending: PendingFactor, { code, passkey }: FactorProof, now: number): Promise<SecondFactorRow> {
    const { factors, passkeys } = this.options;
    const { id, userId, name } = pending;
    const made = { id, userId, name, createdAt: now, lastUsedAt: null };
    if (pending.kind === "totp") {
      const { kind, secret } = pending;
      if (code === undefined || passkey !== undefined) throw badRequest("code: required, from the authenticator app");
      const digits = code.replaceAll(/\s/g, "");
      const step = /^\d{6}$/.test(digits) ? matchStep(secret, digits, now, 0) : null;
      if (step === null) throw this.wrongCode(pending);
      const none = {
        rpId: null,
        credentialId: null,
        publicKey: null,
        counter: null,
        transports: null,
        userHandle: null,
      };
      return { ...made, ...none, kind, secret: factors.seal(userId, secret), lastStep: step };
    }
    if (passkey === undefined || code !== undefined) throw badRequest("passkey: required, as the browser returned it");
    const { kind, challenge, userHandle } = pending;
    const registered = await passkeys.register(passkey, challenge, userHandle);
    return { ...made, kind, secret: null, lastStep: null, ...registered };
  }

  private wrongCode(pending: PendingFactor): ApiError {
    const left = MAX_WRONG_CODES - ++pending.wrong;
    if (left === 0) this.pending.delete(pending.id);
    return badRequest(`code: wrong, ${left === 0 ? "start again" : `${left} more ${left === 1 ? "try" : "tries"}`}`);
  }

  /** Resolves once the factor is durable; the first one ends the sessions that were opened without one. */
  private async enroll(principal: Principal, row: SecondFactorRow, context: RequestContext): Promise<string[] | null> {
    const { factors, sessions, writer, notifier } = this.options;
    const { user } = principal.credential;
    const isFirst = !factors.has(user.id);
    const renewed = isFirst ? factors.replaceCodes(user.id, context.now) : null;
    const session = principal.credential as Session;
    const writes: RequestedWrite[] = [factors.add(row), sessions.prove(session, row.kind), ...(renewed?.writes ?? [])];
    const { kind, name } = row;
    const change = { action: "second_factor.add", userId: user.id, subject: row.id, details: { kind, name } };
    const ended = isFirst ? sessions.endOthers(principal, "second_factor_added", context) : null;
    const [results] = await Promise.all([writer.write(writes, [audit(context, actorOf(principal), change)]), ended]);
    assert(results[0]?.created === true, "a second factor is kept once");
    renewed?.learn(results.slice(-renewed.codes.length).map(({ id }) => id));
    notifier.sendMail(secondFactorChangedMail(user.email, `A second factor was added: ${kindName(row)}.`));
    return renewed?.codes ?? null;
  }

  // ---------------------------------------------------------------- removing

  /** @throws ApiError 4040, 40300 without a proof, 40900 for the last one of an operator who must have one */
  async remove(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const { factors, sessions, writer, notifier } = this.options;
    const { user } = principal.credential;
    if (this.pending.get(id)?.userId === user.id) {
      this.pending.delete(id);
      return;
    }
    if (factors.find(user.id, id) === undefined) throw notFound("second factor");
    this.expectProof(principal, context.now);
    await this.mutex.run(user.id, async () => {
      const row = factors.find(user.id, id);
      if (row === undefined) throw notFound("second factor");
      if (this.isRequiredOf(user) && factors.of(user.id).length === 1) {
        throw new ApiError(ErrorKind.conflict, "operators must have a second factor here: add another one first");
      }
      const writes = factors.remove(row, context.now);
      if (!factors.has(user.id)) writes.push(...sessions.unprove(user));
      const { kind, name } = row;
      const change = { action: "second_factor.remove", userId: user.id, subject: id, details: { kind, name } };
      await writer.write(writes, [audit(context, actorOf(principal), change)]);
      notifier.sendMail(secondFactorChangedMail(user.email, `A second factor was removed: ${kindName(row)}.`));
    });
  }

  /** Replaces the recovery codes; the old ones stop working. @throws ApiError 40300 without a proof, 40900 without a factor */
  async renewCodes(principal: Principal, context: RequestContext): Promise<string[]> {
    const { factors, writer, notifier } = this.options;
    const { user } = principal.credential;
    const expectFactor = (): void => {
      if (!factors.has(user.id)) throw new ApiError(ErrorKind.conflict, "add a second factor first");
    };
    expectFactor();
    this.expectProof(principal, context.now);
    return this.mutex.run(user.id, async () => {
      expectFactor();
      const { codes, writes, learn } = factors.replaceCodes(user.id, context.now);
      const change = { action: "second_factor.renew_codes", userId: user.id, subject: user.id };
      const results = await writer.write(writes, [audit(context, actorOf(principal), change)]);
      learn(results.slice(-codes.length).map(({ id }) => id));
      notifier.sendMail(
        secondFactorChangedMail(user.email, "New recovery codes were created. The old codes no longer work."),
      );
      return codes;
    });
  }

  // ---------------------------------------------------------------- reset

  /**
   * Removes all of the user's factors and ends its sessions.
   * @param why details for the audit log @param ending writes for the same transaction
   * @throws ApiError 40900 when there are none
   */
  reset(user: User, why: object, who: Operator, context: RequestContext, ending: readonly RequestedWrite[] = []) {
    return this.mutex.run(user.id, async () => {
      const { accounts, factors, sessions, writer, notifier } = this.options;
      const own = factors.of(user.id);
      if (own.length === 0) throw new ApiError(ErrorKind.conflict, "the account has no second factor");
      for (const each of this.pending.values()) if (each.userId === user.id) this.pending.delete(each.id);
      const writes = own.flatMap((row) => factors.remove(row, context.now));
      const details = { factors: own.map(({ id, kind }) => ({ id, kind })), ...why };
      const change = { action: "second_factor.reset", userId: user.id, subject: user.id, details };
      const ended = sessions.end(accounts.sessions.of(user.id), "second_factor_reset", who.actor, context);
      await Promise.all([writer.write([...writes, ...ending], [audit(context, who.actor, change)]), ended]);
      notifier.sendMail(secondFactorsResetMail(user.email));
    });
  }

  forgetExpired(now: number): void {
    this.wrongProofs.forgetExpired(now);
    for (const [id, { expiresAt }] of this.pending) if (expiresAt <= now) this.pending.delete(id);
  }
}

/** @throws ApiError 40900 */
function expectRoom(own: readonly SecondFactorRow[], kind: FactorKind): void {
  const most = kind === "totp" ? MAX_TOTPS_PER_USER : MAX_PASSKEYS_PER_USER;
  if (own.filter((row) => row.kind === kind).length < most) return;
  throw new ApiError(ErrorKind.conflict, `at most ${most} of this kind: remove one first`);
}

const noPending = (): ApiError => notFound("second factor awaiting confirmation");
const kindName = ({ kind }: SecondFactorRow): string => (kind === "totp" ? "an authenticator app" : "a passkey");

/** All of an account's passkeys have one handle, so that an authenticator keeps one of each account. */
const handleOf = (own: readonly SecondFactorRow[]): string =>
  own.find(({ userHandle }) => userHandle !== null)?.userHandle ?? newPasskeySecret();
