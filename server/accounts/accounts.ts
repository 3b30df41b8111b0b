/**
 * Accounts in memory: users and their credentials (sessions, personal access tokens, grants to third parties). The
 * gateway decides here and the log records: revoking access takes effect at once, granting it once it is durable.
 * Tokens are stored as their SHA-256 only. Owned by the gateway thread; does no I/O.
 */

import type {
  EmailTokenRow,
  IdentityApplicationRow,
  OAuthClientRow,
  OAuthGrantRow,
  SessionRow,
  SocialIdentityRow,
  TokenRow,
} from "../../engine/log/rows.ts";
import type { AccountRows } from "../../engine/projection/load/accounts.ts";
import { assert } from "../../engine/util/assert.ts";
import { clientOf } from "../http/client-address.ts";
import { BoundedSet } from "../util/bounded-map.ts";
import { Pat, Session, sidOf } from "./credentials.ts";
import { KnownAddresses } from "./known-addresses.ts";
import { MAX_ENDED_SESSIONS } from "./limits.ts";
import type { Credential, Grant, OAuthClient, User } from "./types.ts";
import { UserTable } from "./user-table.ts";
import { mustVerify } from "./users.ts";

export class Accounts {
  readonly pats = new UserTable<Pat>();
  readonly sessions = new UserTable<Session>();
  readonly clients = new UserTable<OAuthClient>();
  readonly grants = new UserTable<Grant>();
  readonly emailTokens = new UserTable<EmailTokenRow>();
  readonly knownAddresses = new KnownAddresses();
  private readonly users = new Map<number, User>();
  private readonly usersByEmail = new Map<string, User>();
  /** By verified number; a user may have a different number by now. */
  private readonly usersByPhone = new Map<string, User>();
  private readonly unverified = new Map<number, User>();
  /** By user: the number of deposits on their way to the log. */
  private readonly funding = new Map<number, number>();
  private readonly patsByHash = new Map<string, Pat>();
  private readonly sessionsByFamily = new Map<string, Session>();
  private readonly sessionsBySid = new Map<string, Session>();
  private readonly clientsByName = new Map<string, OAuthClient>();
  private readonly emailTokensByHash = new Map<string, EmailTokenRow>();
  private readonly identities = new Map<number, IdentityApplicationRow>();
  private readonly usersByIdentity = new Map<string, User>();
  /** Sessions that ended recently, so that their expired tokens still report the end and not the expiry. */
  private readonly endedSids = new BoundedSet<string>(MAX_ENDED_SESSIONS);
  private lastSessionId = 0;
  /** Ids have gaps where accounts were deleted. */
  private lastUser = 0;
  private seededTerms: ReadonlySet<number> = new Set();
  private seeded = new Set<number>();
  /** Called with each credential that ends. */
  private readonly onEnded: (credential: Credential) => void;

  constructor(onEnded: (credential: Credential) => void) {
    this.onEnded = onEnded;
  }

  load(rows: AccountRows): void {
    this.seeded = new Set(rows.seededUsers);
    for (const row of rows.users) this.addUser(this.seeded.has(row.id) ? { ...row, isSeeded: true } : row);
    for (const userId of rows.fundedUsers) this.unverified.delete(userId);
    for (const row of rows.tokens) this.addPat(row);
    for (const row of rows.clients) this.addClient(row);
    for (const row of rows.grants) this.addGrant(row);
    for (const row of rows.sessions) this.addSession(row);
    for (const row of rows.emailTokens) this.addEmailToken(row);
    for (const row of rows.identityApplications) this.identities.set(row.userId, row);
    for (const row of rows.socialIdentities) this.addIdentity(row);
    for (const family of rows.endedFamilies) this.noteEnded(sidOf(family));
    this.seededTerms = new Set(rows.seededTerms);
    for (const { userId, address, at } of rows.signIns) this.knownAddresses.note(userId, clientOf(address), at);
    this.lastSessionId = rows.lastSessionId;
  }

  // ---------------------------------------------------------------- users

  addUser(user: User): void {
    this.users.set(user.id, user);
    this.usersByEmail.set(user.email, user);
    this.lastUser = Math.max(this.lastUser, user.id);
    if (mustVerify(user)) this.unverified.set(user.id, user);
    if (user.phone !== null && user.phoneVerifiedAt !== null && !this.usersByPhone.has(user.phone)) {
      this.usersByPhone.set(user.phone, user);
    }
  }

  /** Removes an account, and at once ends all access to it and all access through its OAuth clients. */
  removeUser(user: User): void {
    const { id, email } = user;
    for (const pat of this.pats.of(id)) this.endPat(pat);
    const clients = new Set(this.clients.of(id));
    if (clients.size > 0) {
      for (const grant of [...this.grants.values()]) if (clients.has(grant.client)) this.endGrant(grant);
    }
    for (const grant of this.grants.of(id)) this.endGrant(grant);
    for (const client of clients) this.removeClient(client);
    for (const session of this.sessions.of(id)) this.endSession(session);
    for (const row of this.emailTokens.of(id)) this.removeEmailToken(row);
    this.identities.delete(id);
    this.knownAddresses.forget(id);
    this.unverified.delete(id);
    if (this.usersByEmail.get(email) === user) this.usersByEmail.delete(email);
    this.users.delete(id);
  }

  private endGrant(grant: Grant): void {
    for (const session of this.sessionsOfGrant(grant)) this.endSession(session);
    this.removeGrant(grant);
  }

  /** Accounts with an unverified email address and no record of money, oldest first. */
  unverifiedUsers(): IterableIterator<User> {
    return this.unverified.values();
  }

  allUsers(): IterableIterator<User> {
    return this.users.values();
  }

  /** True while a deposit to the user is on its way to the log: the account must stay. */
  isFunding(userId: number): boolean {
    return this.funding.has(userId);
  }

  /** @param change 1 for a deposit that was admitted, -1 for one that is committed */
  countFunding(userId: number, change: 1 | -1): void {
    const count = (this.funding.get(userId) ?? 0) + change;
    if (count === 0) this.funding.delete(userId);
    else this.funding.set(userId, count);
  }

  get unverifiedCount(): number {
    return this.unverified.size;
  }

  /** Protects the account from deletion: its address is verified, or it received money. */
  keepUser(userId: number): void {
    this.unverified.delete(userId);
  }

  /** The account that verified this number. */
  userByPhone(phone: string): User | undefined {
    const user = this.usersByPhone.get(phone);
    return user?.phone === phone && user.phoneVerifiedAt !== null ? user : undefined;
  }

  /** Records that the user verified its number: no other account can verify it then. */
  notePhone(user: User): void {
    if (user.phone !== null) this.usersByPhone.set(user.phone, user);
  }

  get lastUserId(): number {
    return this.lastUser;
  }

  user(id: number): User | undefined {
    return this.users.get(id);
  }

  /** A user who must exist, because a row or a credential names it. */
  existingUser(id: number): User {
    const user = this.users.get(id);
    assert(user !== undefined, "every row names a user in memory");
    return user;
  }

  /** @param email in lower case */
  userByEmail(email: string): User | undefined {
    return this.usersByEmail.get(email);
  }

  /** True if a seed created the user, not a registration. */
  isSeeded(userId: number): boolean {
    return this.seeded.has(userId);
  }

  /** True if the seed of an earlier start set the user's terms. */
  hasSeededTerms(userId: number): boolean {
    return this.seededTerms.has(userId);
  }

  noteSeeded(userId: number): void {
    this.seeded.add(userId);
    this.existingUser(userId).isSeeded = true;
    this.unverified.delete(userId);
  }

  identityApplication(userId: number): IdentityApplicationRow | undefined {
    return this.identities.get(userId);
  }

  setIdentityApplication(row: IdentityApplicationRow): void {
    this.identities.set(row.userId, row);
  }

  addIdentity({ userId, issuer, subject }: SocialIdentityRow): void {
    this.usersByIdentity.set(`${issuer} ${subject}`, this.existingUser(userId));
  }

  userByIdentity(issuer: string, subject: string): User | undefined {
    return this.usersByIdentity.get(`${issuer} ${subject}`);
  }

  // ---------------------------------------------------------------- tokens

  addPat(row: TokenRow): void {
    const pat = new Pat(row, this.existingUser(row.userId));
    this.pats.add(row.id, row.userId, pat);
    this.patsByHash.set(row.tokenHash, pat);
  }

  patByHash(hash: string): Pat | undefined {
    return this.patsByHash.get(hash);
  }

  endPat(pat: Pat): void {
    this.pats.remove(pat.id, pat.user.id);
    this.patsByHash.delete(pat.row.tokenHash);
    this.end(pat);
  }

  nextSessionId(): number {
    return ++this.lastSessionId;
  }

  addSession(row: SessionRow): Session | null {
    const grant = row.grantId === null ? null : this.grants.get(row.grantId);
    // Its grant was revoked, or its client was removed.
    if (grant === undefined) return null;
    const session = new Session(row, this.existingUser(row.userId), grant);
    this.sessions.add(row.id, row.userId, session);
    this.sessionsByFamily.set(row.family, session);
    this.sessionsBySid.set(session.sid, session);
    return session;
  }

  sessionByFamily(family: string): Session | undefined {
    return this.sessionsByFamily.get(family);
  }

  sessionBySid(sid: string): Session | undefined {
    return this.sessionsBySid.get(sid);
  }

  hasEnded(sid: string): boolean {
    return this.endedSids.has(sid);
  }

  endSession(session: Session): void {
    this.noteEnded(session.sid);
    this.forgetSession(session);
    this.end(session);
  }

  /** Drops a session that has expired together with its access tokens. */
  forgetSession(session: Session): void {
    this.sessions.remove(session.id, session.user.id);
    this.sessionsByFamily.delete(session.row.family);
    this.sessionsBySid.delete(session.sid);
  }

  private noteEnded(sid: string): void {
    this.endedSids.add(sid);
  }

  private end(credential: Credential): void {
    credential.isEnded = true;
    this.onEnded(credential);
  }

  /** All credentials of the user. */
  credentialsOf(userId: number): Credential[] {
    return [...this.pats.of(userId), ...this.sessions.of(userId)];
  }

  // ---------------------------------------------------------------- third parties

  addClient(row: OAuthClientRow): OAuthClient {
    const client = { row, redirectUris: row.redirectUris.split("\n") };
    this.clients.add(row.id, row.userId, client);
    this.clientsByName.set(row.clientId, client);
    return client;
  }

  /** @param clientId the public id */
  clientByName(clientId: string): OAuthClient | undefined {
    return this.clientsByName.get(clientId);
  }

  removeClient({ row }: OAuthClient): void {
    this.clients.remove(row.id, row.userId);
    this.clientsByName.delete(row.clientId);
  }

  addGrant(row: OAuthGrantRow): Grant | null {
    const client = this.clients.get(row.clientId);
    if (client === undefined) return null;
    const grant = { row, client, lastUsedAt: row.lastUsedAt ?? 0 };
    this.grants.add(row.id, row.userId, grant);
    return grant;
  }

  grantOf(userId: number, client: OAuthClient): Grant | undefined {
    return this.grants.of(userId).find((grant) => grant.client === client);
  }

  removeGrant({ row }: Grant): void {
    this.grants.remove(row.id, row.userId);
  }

  sessionsOfGrant(grant: Grant): Session[] {
    return this.sessions.of(grant.row.userId).filter((session) => session.grant === grant);
  }

  // ---------------------------------------------------------------- mailed links

  addEmailToken(row: EmailTokenRow): void {
    this.emailTokens.add(row.id, row.userId, row);
    this.emailTokensByHash.set(row.tokenHash, row);
  }

  emailTokenByHash(hash: string): EmailTokenRow | undefined {
    return this.emailTokensByHash.get(hash);
  }

  removeEmailToken(row: EmailTokenRow): void {
    this.emailTokens.remove(row.id, row.userId);
    this.emailTokensByHash.delete(row.tokenHash);
  }
}
