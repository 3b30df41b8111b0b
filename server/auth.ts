/**
 * Sign-up and sign-in: registration, mailed links, passwords, and the sessions that they open. Expects to be attacked:
 * neither answer nor time of a sign-in or of a forgotten password tells whether an address has an account, and what
 * opens access is looked at again after every wait.
 *
 * Changes are made in memory at once and answered when they are durable.
 */
import { randomBytes, randomInt } from "node:crypto";
import type { EmailTokenRow } from "../engine/journal/load.ts";
import type { AccountWrite, AuditEntry } from "../engine/journal/writes.ts";
import { MAX_MESSAGES_PER_HOUR, RESET_PASSWORD_MS, VERIFY_EMAIL_MS } from "../engine/limits.ts";
import type { AccountWriter } from "./account-writer.ts";
import { type Accounts, type Grant, hashToken, type Principal, type Session, type User } from "./accounts.ts";
import { actorOf, audit, type Change, type RequestContext } from "./audit.ts";
import { ApiError, badRequest, ErrorKind, refusedAs } from "./errors.ts";
import { HourlyLimit } from "./hourly-limit.ts";
import { type Logger, logInternal } from "./logger.ts";
import { passwordChangedMail, passwordResetMail, verificationMail } from "./messages.ts";
import type { Messenger } from "./messenger.ts";
import type { Passwords } from "./passwords.ts";
import type { Sessions, Tokens } from "./sessions.ts";
import type { SocialIdentity } from "./social.ts";
import { changeUser } from "./users.ts";

/** An answer that must not tell what follows it comes so much earlier, in ms. */
const HIDDEN_WORK_MS = { min: 50, max: 250 };
/** Characters of a mailed token: 132 bits, short enough that a link stays on one line. */
const EMAIL_TOKEN_BYTES = 16;

export interface SignedIn extends Tokens {
  readonly user: User;
}

export interface AuthOptions {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly messenger: Messenger;
  readonly writer: AccountWriter;
  readonly logger: Logger;
  /** Where links lead: the web page's address. */
  readonly publicUrl: () => string;
}

const wrongCredentials = (): ApiError => new ApiError(ErrorKind.unauthenticated, "wrong e-mail or password");

export class Auth {
  private readonly options: AuthOptions;
  /** Mailed links, by purpose and user. */
  private readonly mails = new HourlyLimit(MAX_MESSAGES_PER_HOUR);

  constructor(options: AuthOptions) {
    this.options = options;
  }

  // ---------------------------------------------------------------- sign-up

  /** @param email in lower case @throws ApiError 40900 where the address is taken, 40000 for a common password, 50300 */
  async register(email: string, password: string, context: RequestContext): Promise<User> {
    const { accounts, passwords } = this.options;
    if (accounts.userByEmail(email) !== undefined) throw emailTaken();
    const user = await this.createUser(email, await passwords.hash(password, context.client), null, context);
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
    const write: AccountWrite = { kind: "createUser", email, ...rest };
    const change = { action: "user.create", userId: "subject" } as const;
    const [made] = await this.options.writer.write([write], [audit(context, "visitor", change)]);
    if (!made!.created) throw emailTaken();
    return this.options.accounts.user(made!.id)!;
  }

  /** Mails another link where the address waits for one; says nothing of whether it does. */
  resendVerification(email: string, context: RequestContext): void {
    this.later(async () => {
      const user = this.options.accounts.userByEmail(email);
      if (user !== undefined && user.emailVerifiedAt === null) await this.sendLink(user, "verify_email", context);
    });
  }

  /** @throws ApiError 40000 for a link that is wrong, used or expired */
  async verifyEmail(token: string, context: RequestContext): Promise<User> {
    const { row, user } = this.findLink(token, "verify_email", context.now);
    this.options.accounts.removeEmailToken(row);
    const writes = [
      spent(row, context.now),
      changeUser(user, { emailVerifiedAt: user.emailVerifiedAt ?? context.now }),
    ];
    await this.save(writes, context, `user ${user.id}`, {
      action: "user.verify_email",
      userId: user.id,
      subject: user.id,
    });
    return user;
  }

  // ---------------------------------------------------------------- sign-in

  /** @param email in lower case @throws ApiError 40100, 40300 for a suspended account, 50300 */
  async login(email: string, password: string, context: RequestContext): Promise<SignedIn> {
    const { accounts, passwords } = this.options;
    const user = accounts.userByEmail(email);
    const hash = user?.passwordHash ?? null;
    const isRight = await passwords.verify(hash, password, context.client);
    // The password may have been changed while it was looked at.
    if (!isRight || user === undefined || user.passwordHash !== hash) throw wrongCredentials();
    return this.signIn(user, "password", context);
  }

  private async signIn(user: User, method: string, context: RequestContext): Promise<SignedIn> {
    if (user.suspendedAt !== null) throw new ApiError(ErrorKind.forbidden, "the account is suspended");
    return { user, ...(await this.options.sessions.open(user, method, context)) };
  }

  /**
   * Signs in whom an identity provider vouches for. Who isn't known there yet gets the account with the same address,
   * or a new one, and only where the provider says that the address is verified.
   * @throws ApiError 40300
   */
  async signInBy(provider: string, identity: SocialIdentity, context: RequestContext): Promise<SignedIn> {
    const { accounts } = this.options;
    const { issuer, subject } = identity;
    const known = accounts.userByIdentity(issuer, subject);
    const user = known ?? (await this.adopt(identity, context));
    if (known === undefined) {
      const row = { userId: user.id, issuer, subject, createdAt: context.now };
      const change = { action: "user.link_identity", userId: user.id, subject: user.id, details: { provider } };
      accounts.addIdentity({ userId: user.id, issuer, subject });
      await this.save([{ kind: "insert", table: "social_identities", row }], context, `user ${user.id}`, change);
    }
    return this.signIn(user, `social:${provider}`, context);
  }

  private async adopt({ email, emailVerified }: SocialIdentity, context: RequestContext): Promise<User> {
    if (email === null || !emailVerified) {
      throw new ApiError(ErrorKind.forbidden, "the identity provider does not vouch for a verified e-mail address");
    }
    const { accounts } = this.options;
    if (accounts.userByEmail(email) === undefined) {
      const made = await this.createUser(email, null, context.now, context).catch(refusedAs(null));
      // Null where another sign-in, or a registration, made it meanwhile.
      if (made !== null) return made;
    }
    const user = accounts.userByEmail(email)!;
    if (user.emailVerifiedAt !== null) return user;
    // Whoever registered the address never showed that it is theirs: what they set up must not open the account.
    const change = { action: "user.claim_email", userId: user.id, subject: user.id };
    const closed = this.closeAccess(user, "email_claimed", context);
    const write = changeUser(user, { passwordHash: null, ...claimed(context.now) });
    await Promise.all([closed, this.save([write], context, `user ${user.id}`, change)]);
    return user;
  }

  /** Takes all away that opens the account, and what it opens to others, at once; resolves when that is durable. */
  private async closeAccess(user: User, reason: string, context: RequestContext): Promise<void> {
    const { accounts, writer, sessions } = this.options;
    const over = new Set(accounts.sessions.of(user.id));
    const set = { revokedAt: context.now };
    const writes: AccountWrite[] = [];
    const audits: AuditEntry[] = [];
    const end = (write: AccountWrite & { kind: "update" }, action: string): void => {
      const change = { action, userId: user.id, subject: write.id, write: writes.length };
      audits.push(audit(context, `user ${user.id}`, change));
      writes.push(write);
    };
    for (const pat of accounts.pats.of(user.id)) {
      accounts.endPat(pat);
      end({ kind: "update", table: "personal_access_tokens", id: pat.id, set }, "pat.revoke");
    }
    const isHis = ({ row, client }: Grant): boolean => row.userId === user.id || client.row.userId === user.id;
    for (const grant of [...accounts.grants.values()].filter(isHis)) {
      for (const session of accounts.sessionsOfGrant(grant)) over.add(session);
      accounts.removeGrant(grant);
      end({ kind: "update", table: "oauth_grants", id: grant.row.id, set }, "grant.revoke");
    }
    for (const client of accounts.clients.of(user.id)) {
      accounts.removeClient(client);
      const { id } = client.row;
      end({ kind: "update", table: "oauth_clients", id, set: { deletedAt: context.now } }, "client.remove");
    }
    for (const row of accounts.emailTokens.of(user.id)) {
      accounts.removeEmailToken(row);
      writes.push(spent(row, context.now));
    }
    await Promise.all([writer.write(writes, audits), sessions.end([...over], reason, `user ${user.id}`, context)]);
  }

  /** @throws ApiError 40100, 40300 */
  async refresh(token: string, context: RequestContext): Promise<Tokens> {
    const { sessions } = this.options;
    return sessions.rotate(await sessions.find(token, false, context), context);
  }

  /** As `refresh`, of the token in the page's cookie. @throws ApiError 40100, 40300 */
  refreshByCookie(token: string, context: RequestContext): Promise<Tokens> {
    return this.options.sessions.rotateCookie(token, context);
  }

  logout(principal: Principal, context: RequestContext): Promise<void> {
    return this.options.sessions.end([principal.credential as Session], "logout", actorOf(principal), context);
  }

  // ---------------------------------------------------------------- passwords

  /** Mails a link where the address has an account; says nothing of whether it has. */
  forgotPassword(email: string, context: RequestContext): void {
    this.later(async () => {
      const user = this.options.accounts.userByEmail(email);
      if (user !== undefined) await this.sendLink(user, "reset_password", context);
    });
  }

  /** Sets the password and ends all sessions, third parties' too; tokens and grants stay. @throws ApiError 40000, 50300 */
  async resetPassword(token: string, password: string, context: RequestContext): Promise<void> {
    const { accounts, passwords, sessions, messenger } = this.options;
    this.findLink(token, "reset_password", context.now);
    const passwordHash = await passwords.hash(password, context.client);
    // It may have been used meanwhile.
    const { user } = this.findLink(token, "reset_password", context.now);
    // Whoever set the account up didn't show that the address is theirs; the link came there.
    const isClaim = user.emailVerifiedAt === null;
    const closed = isClaim ? this.closeAccess(user, "password_reset", context) : null;
    const changes = isClaim ? { passwordHash, ...claimed(context.now) } : { passwordHash };
    const writes = [...this.spendResetLinks(user, context.now), changeUser(user, changes)];
    const actor = `user ${user.id}`;
    const change = { action: "user.reset_password", userId: user.id, subject: user.id };
    const ended = sessions.end(accounts.sessions.of(user.id), "password_reset", actor, context);
    await Promise.all([closed, ended, this.save(writes, context, actor, change)]);
    messenger.sendMail(passwordChangedMail(user.email));
  }

  /** Ends the user's other sessions. @throws ApiError 40100 for a wrong current password, 40000, 50300 */
  async changePassword(principal: Principal, current: string, next: string, context: RequestContext): Promise<void> {
    const { passwords, sessions, messenger } = this.options;
    const { user } = principal.credential;
    const hash = user.passwordHash;
    if (!(await passwords.verify(hash, current, context.client))) {
      throw new ApiError(ErrorKind.unauthenticated, "the current password is wrong");
    }
    const passwordHash = await passwords.hash(next, context.client, "new");
    if (user.passwordHash !== hash || principal.credential.isEnded) {
      throw new ApiError(ErrorKind.conflict, "the password was changed by another request");
    }
    const writes = [...this.spendResetLinks(user, context.now), changeUser(user, { passwordHash })];
    const change = { action: "user.change_password", userId: user.id, subject: user.id };
    const ended = sessions.endOthers(principal, "password_changed", context);
    await Promise.all([ended, this.save(writes, context, actorOf(principal), change)]);
    messenger.sendMail(passwordChangedMail(user.email));
  }

  private spendResetLinks(user: User, now: number): AccountWrite[] {
    const { accounts } = this.options;
    const links = accounts.emailTokens.of(user.id).filter(({ purpose }) => purpose === "reset_password");
    for (const row of links) accounts.removeEmailToken(row);
    return links.map((row) => spent(row, now));
  }

  // ---------------------------------------------------------------- mailed links

  private async sendLink(user: User, purpose: string, context: RequestContext): Promise<void> {
    const { accounts, messenger, writer, publicUrl } = this.options;
    const { now } = context;
    if (!this.mails.take(`${purpose} ${user.id}`, now)) return;
    const token = randomBytes(EMAIL_TOKEN_BYTES).toString("base64url");
    const validMs = purpose === "verify_email" ? VERIFY_EMAIL_MS : RESET_PASSWORD_MS;
    const made = { tokenHash: hashToken(token), createdAt: now, expiresAt: now + validMs };
    const row = { userId: user.id, purpose, ...made };
    const id = await writer.insert({ kind: "insert", table: "email_tokens", row }, []);
    accounts.addEmailToken({ ...row, id });
    const page = purpose === "verify_email" ? "verify-email" : "reset-password";
    const link = `${publicUrl()}/${page}?token=${token}`;
    const mail = purpose === "verify_email" ? verificationMail : passwordResetMail;
    messenger.sendMail(mail(user.email, link, validMs));
  }

  private findLink(token: string, purpose: string, now: number): { row: EmailTokenRow; user: User } {
    const { accounts } = this.options;
    const row = accounts.emailTokenByHash(hashToken(token));
    if (row === undefined || row.purpose !== purpose || row.expiresAt <= now) {
      throw badRequest("token: wrong, used or expired: ask for a new one");
    }
    return { row, user: accounts.user(row.userId)! };
  }

  /** Forgets links that are over. */
  forgetExpired(now: number): void {
    const { accounts } = this.options;
    this.mails.forgetExpired(now);
    for (const row of accounts.emailTokens.values()) if (row.expiresAt <= now) accounts.removeEmailToken(row);
  }

  /** Does what an answer must not tell of, some time after the answer. */
  private later(work: () => Promise<void>): void {
    const { logger } = this.options;
    const run = (): void => void work().catch((error) => logInternal(logger, internal(error), ""));
    setTimeout(run, randomInt(HIDDEN_WORK_MS.min, HIDDEN_WORK_MS.max));
  }

  private async save(writes: AccountWrite[], context: RequestContext, actor: string, change: Change): Promise<void> {
    await this.options.writer.write(writes, [audit(context, actor, change)]);
  }
}

const internal = (error: unknown): ApiError => new ApiError(ErrorKind.internal, "internal error", null, error);
const emailTaken = (): ApiError => new ApiError(ErrorKind.conflict, "email: already registered");

/** Of an account that its address's owner takes over: what whoever made it has shown counts for nothing. */
function claimed(now: number) {
  return { emailVerifiedAt: now, phone: null, phoneVerifiedAt: null, kycTier: 0 };
}

function spent(row: EmailTokenRow, now: number): AccountWrite {
  return { kind: "update", table: "email_tokens", id: row.id, set: { usedAt: now } };
}
