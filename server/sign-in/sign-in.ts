/**
 * Sign-up and sign-in: registration, mailed links, passwords, and the sessions that they open. Built for attack: neither
 * the response nor the timing of a sign-in or a password reset reveals whether an address has an account, and every check
 * that grants access runs again after each await.
 *
 * Changes apply to memory at once; the response waits until they are durable.
 */
import { randomBytes, randomInt } from "node:crypto";
import type { EmailTokenRow } from "../../engine/log/rows.ts";
import type { RevokeAccess } from "../accounts/access-revocation.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, audit, type Change, type RequestContext } from "../accounts/audit.ts";
import type { Session } from "../accounts/credentials.ts";
import { MAX_MESSAGES_PER_HOUR, RESET_PASSWORD_MS, VERIFY_EMAIL_MS } from "../accounts/limits.ts";
import { isEmail } from "../accounts/schemas.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { Principal, User } from "../accounts/types.ts";
import type { UnverifiedAccounts } from "../accounts/unverified-accounts.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, badRequest, ErrorKind, rejectedAs } from "../errors.ts";
import { type Logger, logInternal } from "../logger.ts";
import { passwordChangedMail, passwordResetMail, verificationMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import { HourlyLimit } from "../util/hourly-limit.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { Passwords } from "./passwords.ts";
import type { Challenge, SecondFactorSignIn } from "./second-factor-sign-in.ts";
import type { FactorProof } from "./second-factors.ts";
import type { Sessions, Tokens } from "./sessions.ts";
import type { SocialIdentity } from "./social-provider.ts";

/** Delay before work whose timing the response must not reveal, ms. */
const HIDDEN_WORK_MS = { min: 50, max: 250 };
/** 128 bits, short enough that a link stays on one line. */
const EMAIL_TOKEN_BYTES = 16;

export interface SignedIn extends Tokens {
  readonly user: User;
}

export interface SignInServiceOptions {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly notifier: Notifier;
  readonly writer: LogWriter;
  readonly unverified: UnverifiedAccounts;
  readonly logger: Logger;
  readonly secondStep: SecondFactorSignIn;
  readonly revokeAccess: RevokeAccess;
  /** The web page's address, which mailed links open. */
  readonly publicUrl: () => string;
}

type LinkPurpose = "verify_email" | "reset_password";

const wrongCredentials = (): ApiError => new ApiError(ErrorKind.unauthenticated, "wrong email or password");

export class SignInService {
  private readonly options: SignInServiceOptions;
  /** Mailed links, by purpose and user. */
  private readonly mails = new HourlyLimit(MAX_MESSAGES_PER_HOUR);

  constructor(options: SignInServiceOptions) {
    this.options = options;
  }

  // ---------------------------------------------------------------- sign-up

  /** @param email in lower case @throws ApiError 40900 when the address is taken, 40000 for a common password, 50300 */
  async register(email: string, password: string, context: RequestContext): Promise<User> {
    const { accounts, passwords } = this.options;
    if (accounts.userByEmail(email) !== undefined) throw emailTaken();
    const passwordHash = await passwords.hash(password, context.client);
    await this.options.unverified.makeRoom(context.now);
    const user = await this.createUser(email, passwordHash, null, context);
    await this.sendLink(user, "verify_email", context);
    return user;
  }

  private async createUser(
    email: string,
    passwordHash: string | null,
    emailVerifiedAt: number | null,
    context: RequestContext,
  ): Promise<User> {
    const rest = { role: "user", kycTier: 0, passwordHash, emailVerifiedAt, phoneVerifiedAt: null, at: context.now };
    const write: RequestedWrite = { kind: "createUser", email, ...rest };
    const change = { action: "user.create", userId: "subject" } as const;
    const [made] = await this.options.writer.write([write], [audit(context, "visitor", change)]);
    if (made?.created !== true) throw emailTaken();
    return this.options.accounts.existingUser(made.id);
  }

  /** Mails another link if the address is unverified; does not reveal whether it is. */
  resendVerification(email: string, context: RequestContext): void {
    this.runDelayed(async () => {
      const user = this.options.accounts.userByEmail(email);
      if (user !== undefined && user.emailVerifiedAt === null) await this.sendLink(user, "verify_email", context);
    });
  }

  /**
   * The link proves that the address belongs to the caller; the password, or a session, proves that the account does:
   * anybody can register any address. Ends all earlier access, except the session that verifies.
   * @param password null if the request has none
   * @param principal the caller, which may be another account; null without a token
   * @throws ApiError 40000 for a link that is wrong, used or expired, and for a missing password; 40100 for a wrong
   * password, 40300 if the request has the account's session; 50300
   */
  async verifyEmail(
    token: string,
    password: string | null,
    principal: Principal | null,
    context: RequestContext,
  ): Promise<User> {
    const { user } = this.findLink(token, "verify_email", context.now);
    const session = ownSession(principal, user);
    if (password !== null) await this.expectPassword(user, password, session !== null, context);
    else if (session === null) throw badRequest("password: required unless you are signed in to the account");
    // Meanwhile, a sign-in at a provider or a password reset may have invalidated the link and ended the session.
    this.findLink(token, "verify_email", context.now);
    if (session?.isEnded) throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    // From here it must succeed.
    const actor = `user ${user.id}`;
    // An operator's seed created the account's tokens, so they stay.
    const ends = this.options.accounts.isSeeded(user.id) ? "sessions" : "everything";
    const closed = this.options.revokeAccess(user, { reason: "email_verified", ends, actor, keep: session }, context);
    const change = { action: "user.verify_email", userId: user.id, subject: user.id };
    const writes = [
      changeUser(user, { emailVerifiedAt: user.emailVerifiedAt ?? context.now }),
      ...this.invalidateLinks(user, context.now, "verify_email"),
    ];
    await Promise.all([closed, this.save(writes, context, actor, change)]);
    return user;
  }

  /** @throws ApiError 40100, or 40300 for a signed-in caller; 50300 */
  private async expectPassword(
    user: User,
    password: string,
    isSignedIn: boolean,
    context: RequestContext,
  ): Promise<void> {
    const hash = user.passwordHash;
    const knownAs = isSignedIn || this.isKnown(user, context) ? user.id : null;
    const isRight = await this.options.passwords.verify(hash, password, context.client, knownAs);
    // The password may have changed during the verification.
    if (isRight && user.passwordHash === hash) return;
    throw new ApiError(isSignedIn ? ErrorKind.forbidden : ErrorKind.unauthenticated, "password: wrong");
  }

  // ---------------------------------------------------------------- sign-in

  /** @param email in lower case @throws ApiError 40100, 40300 for a suspended account, 50300 */
  async login(email: string, password: string, context: RequestContext): Promise<SignedIn | Challenge> {
    const { accounts, passwords } = this.options;
    const user = accounts.userByEmail(email);
    const hash = user?.passwordHash ?? null;
    const knownAs = user !== undefined && this.isKnown(user, context) ? user.id : null;
    const isRight = await passwords.verify(hash, password, context.client, knownAs);
    // The password may have changed during the verification.
    if (!isRight || user === undefined || user.passwordHash !== hash) throw wrongCredentials();
    return this.signIn(user, "password", context);
  }

  private isKnown(user: User, { client, now }: RequestContext): boolean {
    return this.options.accounts.knownAddresses.has(user.id, client, now);
  }

  /** After the first step: opens the session, or returns the challenge of a second factor. */
  private async signIn(user: User, method: string, context: RequestContext): Promise<SignedIn | Challenge> {
    expectUnsuspended(user);
    const challenge = this.options.secondStep.begin(user, method, context.now);
    return challenge ?? { user, ...(await this.options.sessions.open(user, method, context)) };
  }

  /** The second step. @throws ApiError 40100, 40300 for a suspended account, 40000, 40900, 42900 */
  async finishSignIn(challenge: string, proof: FactorProof, context: RequestContext): Promise<SignedIn> {
    const { secondStep, sessions } = this.options;
    const { user, method, by } = await secondStep.finish(challenge, proof, context);
    expectUnsuspended(user);
    return { user, ...(await sessions.open(user, method, context, by)) };
  }

  /**
   * Signs in a user whom an identity provider authenticated. An identity that is new here gets the account with the same
   * address, or a new account, but only if the provider has verified the address.
   * @throws ApiError 40300, 40100 for an address that registration would reject
   */
  async signInBy(provider: string, identity: SocialIdentity, context: RequestContext): Promise<SignedIn | Challenge> {
    const { accounts } = this.options;
    const { issuer, subject } = identity;
    const user = accounts.userByIdentity(issuer, subject) ?? (await this.userForIdentity(identity, context));
    // Another sign-in may have linked it meanwhile.
    if (accounts.userByIdentity(issuer, subject) === undefined) {
      const row = { userId: user.id, issuer, subject, createdAt: context.now };
      const change = { action: "user.link_identity", userId: user.id, subject: user.id, details: { provider } };
      accounts.addIdentity({ userId: user.id, issuer, subject });
      await this.save([{ kind: "insert", table: "social_identities", row }], context, `user ${user.id}`, change);
    }
    return this.signIn(user, `social:${provider}`, context);
  }

  private async userForIdentity({ email, emailVerified }: SocialIdentity, context: RequestContext): Promise<User> {
    if (email === null || !emailVerified) {
      throw new ApiError(ErrorKind.forbidden, "the identity provider has not verified an email address");
    }
    if (!isEmail(email)) {
      throw new ApiError(
        ErrorKind.unauthenticated,
        "the identity provider gave an email address that can't have an account",
      );
    }
    const { accounts } = this.options;
    if (accounts.userByEmail(email) === undefined) {
      const made = await this.createUser(email, null, context.now, context).catch(rejectedAs(null));
      // Null when another sign-in, or a registration, created it meanwhile.
      if (made !== null) return made;
    }
    const user = accounts.userByEmail(email);
    if (user === undefined) throw new ApiError(ErrorKind.conflict, "the account is being changed: try again");
    if (user.emailVerifiedAt !== null) return user;
    // Whoever registered the address never proved that they own it: their password must not open the account.
    const change = { action: "user.claim_email", userId: user.id, subject: user.id };
    const actor = `user ${user.id}`;
    const closed = this.options.revokeAccess(user, { reason: "email_claimed", ends: "everything", actor }, context);
    const write = changeUser(user, { passwordHash: null, ...claimedAccount(context.now) });
    const writes = [write, ...this.invalidateLinks(user, context.now)];
    await Promise.all([closed, this.save(writes, context, `user ${user.id}`, change)]);
    return user;
  }

  /** @throws ApiError 40100, 40300 */
  async refresh(token: string, context: RequestContext): Promise<Tokens> {
    const { sessions } = this.options;
    return sessions.rotate(await sessions.find(token, false, context), context);
  }

  /** As `refresh`, for the token in the page's cookie. @throws ApiError 40100, 40300 */
  refreshByCookie(token: string, context: RequestContext): Promise<Tokens> {
    return this.options.sessions.rotateCookie(token, context);
  }

  logout(principal: Principal, context: RequestContext): Promise<void> {
    return this.options.sessions.end([principal.credential as Session], "logout", actorOf(principal), context);
  }

  // ---------------------------------------------------------------- passwords

  /** Mails a link if the address has an account; does not reveal whether it has. */
  forgotPassword(email: string, context: RequestContext): void {
    this.runDelayed(async () => {
      const user = this.options.accounts.userByEmail(email);
      if (user !== undefined) await this.sendLink(user, "reset_password", context);
    });
  }

  /** Sets the password and ends every session, token and grant. @throws ApiError 40000, 50300 */
  async resetPassword(token: string, password: string, context: RequestContext): Promise<void> {
    const { passwords, notifier } = this.options;
    const { row } = this.findLink(token, "reset_password", context.now);
    const passwordHash = await passwords.hash(password, context.client, "password", row.userId);
    // Another request may have used the link during the hashing.
    const { user } = this.findLink(token, "reset_password", context.now);
    // Whoever registered never proved that they own the address; the reader of the link just did.
    const isClaim = user.emailVerifiedAt === null;
    const ends = isClaim ? "everything" : "access";
    const actor = `user ${user.id}`;
    const closed = this.options.revokeAccess(user, { reason: "password_reset", ends, actor }, context);
    const changes = isClaim ? { passwordHash, ...claimedAccount(context.now) } : { passwordHash };
    const links = isClaim
      ? this.invalidateLinks(user, context.now)
      : this.invalidateLinks(user, context.now, "reset_password");
    const change = { action: "user.reset_password", userId: user.id, subject: user.id };
    const saved = this.save([changeUser(user, changes), ...links], context, `user ${user.id}`, change);
    await Promise.all([closed, saved]);
    notifier.sendMail(passwordChangedMail(user.email));
  }

  /** Ends the user's other sessions. @throws ApiError 40300 for a wrong current password, 40000, 50300 */
  async changePassword(principal: Principal, current: string, next: string, context: RequestContext): Promise<void> {
    const { passwords, sessions, notifier } = this.options;
    const { user } = principal.credential;
    const hash = user.passwordHash;
    if (!(await passwords.verify(hash, current, context.client, user.id))) {
      throw new ApiError(ErrorKind.forbidden, "the current password is wrong");
    }
    const passwordHash = await passwords.hash(next, context.client, "new", user.id);
    if (user.passwordHash !== hash || principal.credential.isEnded) {
      throw new ApiError(ErrorKind.conflict, "the password was changed by another request");
    }
    const writes = [...this.invalidateLinks(user, context.now, "reset_password"), changeUser(user, { passwordHash })];
    const change = { action: "user.change_password", userId: user.id, subject: user.id };
    const ended = sessions.endOthers(principal, "password_changed", context);
    await Promise.all([ended, this.save(writes, context, actorOf(principal), change)]);
    notifier.sendMail(passwordChangedMail(user.email));
  }

  /** Invalidates the user's mailed links: those for one purpose, or all. */
  private invalidateLinks(user: User, now: number, purpose: LinkPurpose | null = null): RequestedWrite[] {
    const { accounts } = this.options;
    const links = accounts.emailTokens.of(user.id).filter((row) => purpose === null || row.purpose === purpose);
    for (const row of links) accounts.removeEmailToken(row);
    return links.map((row): RequestedWrite => {
      return { kind: "update", table: "email_tokens", id: row.id, set: { usedAt: now } };
    });
  }

  // ---------------------------------------------------------------- mailed links

  private async sendLink(user: User, purpose: LinkPurpose, context: RequestContext): Promise<void> {
    const { accounts, notifier, writer, publicUrl } = this.options;
    const { now } = context;
    if (!this.mails.consume(`${purpose} ${user.id}`, now)) return;
    const token = randomBytes(EMAIL_TOKEN_BYTES).toString("base64url");
    const validMs = purpose === "verify_email" ? VERIFY_EMAIL_MS : RESET_PASSWORD_MS;
    const made = { tokenHash: hashToken(token), createdAt: now, expiresAt: now + validMs };
    const row = { userId: user.id, purpose, ...made };
    const id = await writer.insert({ kind: "insert", table: "email_tokens", row }, []);
    accounts.addEmailToken({ ...row, id });
    const page = purpose === "verify_email" ? "verify-email" : "reset-password";
    const link = `${publicUrl()}/${page}?token=${token}`;
    const mail = purpose === "verify_email" ? verificationMail : passwordResetMail;
    notifier.sendMail(mail(user.email, link, validMs));
  }

  private findLink(token: string, purpose: LinkPurpose, now: number): { row: EmailTokenRow; user: User } {
    const { accounts } = this.options;
    const row = accounts.emailTokenByHash(hashToken(token));
    if (row === undefined || row.purpose !== purpose || row.expiresAt <= now) {
      throw badRequest("token: wrong, used or expired: request a new link");
    }
    return { row, user: accounts.existingUser(row.userId) };
  }

  /** Drops expired links. */
  forgetExpired(now: number): void {
    const { accounts } = this.options;
    this.mails.forgetExpired(now);
    for (const row of accounts.emailTokens.values()) if (row.expiresAt <= now) accounts.removeEmailToken(row);
  }

  /** Runs work that the response must not reveal, some time after the response. */
  private runDelayed(work: () => Promise<void>): void {
    const { logger } = this.options;
    const run = (): void => void work().catch((error) => logInternal(logger, internal(error), ""));
    setTimeout(run, randomInt(HIDDEN_WORK_MS.min, HIDDEN_WORK_MS.max));
  }

  private async save(writes: RequestedWrite[], context: RequestContext, actor: string, change: Change): Promise<void> {
    await this.options.writer.write(writes, [audit(context, actor, change)]);
  }
}

function expectUnsuspended({ suspendedAt }: User): void {
  if (suspendedAt !== null) throw new ApiError(ErrorKind.forbidden, "the account is suspended");
}

const internal = (error: unknown): ApiError => new ApiError(ErrorKind.internal, "internal error", null, error);
const emailTaken = (): ApiError => new ApiError(ErrorKind.conflict, "email: already registered");

/** Null if the principal is another user, or holds a token instead of a session. */
function ownSession(principal: Principal | null, user: User): Session | null {
  if (principal === null || principal.userId !== user.id || principal.kind !== "session") return null;
  return principal.credential as Session;
}

/** Resets an account whose address's owner takes it over: proofs of whoever registered it no longer count. */
function claimedAccount(now: number) {
  return { emailVerifiedAt: now, phone: null, phoneVerifiedAt: null, kycTier: 0 };
}
