/**
 * Reads a seed file and makes what it lists: users with passwords, deposits, terms and tokens, events and markets. Taken once
 * per e-mail and slug, so that a second start with the same file changes nothing.
 */
import { readFileSync } from "node:fs";
import Type, { type Static } from "typebox";
import { MAX_MONEY_MICRO, MAX_OUTCOMES, MIN_OUTCOMES, SEED_REFERENCE } from "../../engine/limits.ts";
import { DEFAULT_TERMS, type UserTerms } from "../../engine/projection/user-terms.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import { assert } from "../../engine/util/assert.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { TOKEN_SHOWN_LENGTH } from "../accounts/credentials.ts";
import type { Passwords } from "../accounts/passwords.ts";
import { TermsChange, termsIn, termsView } from "../accounts/terms.ts";
import { hashToken } from "../accounts/token-hash.ts";
import { SCOPES } from "../accounts/types.ts";
import { changeTerms, checkRates } from "../accounts/users.ts";
import { ApiError, badRequest, ConfigError } from "../errors.ts";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import { compileSchema } from "../http/validate.ts";

const closed = <T extends Parameters<typeof Type.Object>[0]>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });
const nullableText = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const Time = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]));
const Slug = Type.String({ pattern: "^(?!\\d+$)[A-Za-z0-9][A-Za-z0-9._-]*$", maxLength: 200 });

const SeedSchema = closed({
  users: Type.Optional(
    Type.Array(
      closed({
        email: Type.String({ pattern: "^[^@\\s]+@[^@\\s]+$", maxLength: MAX_EMAIL_LENGTH }),
        password: Type.Optional(Type.String()),
        role: Type.Optional(Type.Enum(["user", "operator"])),
        kyc_tier: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
        deposit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_MONEY_MICRO })),
        terms: Type.Optional(TermsChange),
        pats: Type.Optional(
          Type.Array(
            closed({
              name: Type.String({ minLength: 1, maxLength: 100 }),
              scopes: Type.Array(Type.Enum([...SCOPES])),
              token: Type.String({ minLength: 1, maxLength: 512 }),
            }),
          ),
        ),
      }),
    ),
  ),
  events: Type.Optional(Type.Array(closed({ slug: Slug, title: Type.String(), category: nullableText }))),
  markets: Type.Optional(
    Type.Array(
      closed({
        slug: Slug,
        question: Type.String({ minLength: 1 }),
        description: nullableText,
        category: nullableText,
        event_slug: nullableText,
        outcomes: Type.Array(Type.String({ minLength: 1 }), { minItems: MIN_OUTCOMES, maxItems: MAX_OUTCOMES }),
        closes_at: Time,
      }),
    ),
  ),
});

export type Seed = Static<typeof SeedSchema>;

/** @throws ConfigError naming the file and the field */
export function readSeed(path: string): Seed {
  try {
    const seed = compileSchema(SeedSchema)(JSON.parse(readFileSync(path, "utf8")));
    for (const [i, { terms }] of (seed.users ?? []).entries()) if (terms !== undefined) checkSeededRates(terms, i);
    return seed;
  } catch (error) {
    const why = error instanceof ApiError || error instanceof SyntaxError ? error.message : String(error);
    throw new ConfigError(`SEED_FILE: ${path}: ${why}`);
  }
}

/** Before anything is made. @throws ApiError naming the user's place and the term */
function checkSeededRates(terms: TermsChange, index: number): void {
  try {
    checkRates({ ...DEFAULT_TERMS, ...termsIn(terms) });
  } catch (error) {
    throw badRequest(`users/${index}/terms/${(error as Error).message}`);
  }
}

/** What a seed's makers need of the exchange; each call is durable when it resolves. */
export interface SeedTarget {
  /** Applies writes that depend on nothing but each other's order; answers their ids. */
  write(writes: readonly AccountWrite[], audits: readonly AuditEntry[]): Promise<{ id: number; created: boolean }[]>;
  hasUser(email: string): boolean;
  /** Whether a seed made the user. */
  isSeeded(userId: number): boolean;
  /** Whether a seed of an earlier start set the user's terms: an operator may have changed them since. */
  hasSeededTerms(userId: number): boolean;
  /** Takes the terms into memory; returns the write that makes them durable. */
  setTerms(userId: number, terms: Partial<UserTerms>): AccountWrite;
  /** This one did. */
  noteSeeded(userId: number): void;
  hashPassword(password: string): Promise<string>;
}

/** The seed's view of a server's accounts. */
export function createSeedTarget(accounts: Accounts, writer: AccountWriter, passwords: Passwords): SeedTarget {
  return {
    write: (writes, audits) => writer.write(writes, audits),
    hasUser: (email) => accounts.userByEmail(email) !== undefined,
    isSeeded: (userId) => accounts.isSeeded(userId),
    hasSeededTerms: (userId) => accounts.hasSeededTerms(userId),
    setTerms(userId, terms) {
      const user = accounts.user(userId);
      assert(user !== undefined, "a user that a seed made is in memory");
      return changeTerms(user, terms);
    },
    noteSeeded: (userId) => accounts.noteSeeded(userId),
    hashPassword: (password) => passwords.hashChosen(password),
  };
}

const CHUNK = 500;

/** Makes what the seed lists and isn't there yet. */
export async function applySeed(seed: Seed, target: SeedTarget, now: number): Promise<void> {
  const eventIds = new Map<string, number>();
  const events = seed.events ?? [];
  const eventWrites = events.map(({ slug, title, category = null }): AccountWrite => {
    return { kind: "createEvent", slug, title, category, closesAt: null, at: now };
  });
  (await inChunks(target, eventWrites, now)).forEach(({ id }, i) => {
    eventIds.set(events[i]!.slug, id);
  });

  await inChunks(
    target,
    (seed.markets ?? []).map((market): AccountWrite => {
      const { slug, question, outcomes, description = null, category = null, closes_at = null, event_slug } = market;
      const eventId = event_slug == null ? null : eventIds.get(event_slug);
      if (eventId === undefined) throw new ConfigError(`SEED_FILE: market ${slug}: no event "${event_slug}"`);
      const rest = { description, category, eventId, opensAt: now, closesAt: closes_at, at: now };
      return { kind: "createMarket", slug, question, outcomes, proposedBy: null, ...rest };
    }),
    now,
  );

  const users = seed.users ?? [];
  const userWrites: AccountWrite[] = [];
  for (const { email, password, role = "user", kyc_tier = 0 } of users) {
    const name = email.toLowerCase();
    const isKnown = password === undefined || target.hasUser(name);
    const passwordHash = isKnown ? null : await target.hashPassword(password);
    // Tier 1 stands for a verified e-mail and phone.
    const verifiedAt = kyc_tier > 0 ? now : null;
    const verified = { emailVerifiedAt: verifiedAt, phoneVerifiedAt: verifiedAt };
    const rest = { role: String(role), kycTier: kyc_tier, passwordHash, ...verified, at: now };
    userWrites.push({ kind: "createUser", email: name, ...rest });
  }
  const made = await inChunks(target, userWrites, now);
  const more: AccountWrite[] = [];
  const withTerms = new Set<number>();
  users.forEach((user, i) => {
    const { id: userId, created } = made[i]!;
    // Who registered the address has an account of their own, which gets nothing of this.
    if (created) target.noteSeeded(userId);
    else if (!target.isSeeded(userId)) return;
    if (user.deposit !== undefined && user.deposit > 0) {
      const reference = SEED_REFERENCE + user.email.toLowerCase();
      more.push({ kind: "deposit", userId, amount: user.deposit, reference, at: now });
    }
    if (user.terms !== undefined && !target.hasSeededTerms(userId) && !withTerms.has(userId)) {
      withTerms.add(userId);
      more.push(target.setTerms(userId, termsIn(user.terms)));
    }
    for (const { name, scopes, token } of user.pats ?? []) {
      const prefix = token.slice(0, Math.min(TOKEN_SHOWN_LENGTH, token.length >> 1));
      const rest = { tokenHash: hashToken(token), prefix, allowedAddresses: null, expiresAt: null, at: now };
      more.push({ kind: "createToken", userId, name, scopes: scopes as string[], ...rest });
    }
  });
  await inChunks(target, more, now);
}

async function inChunks(
  target: SeedTarget,
  writes: AccountWrite[],
  now: number,
): Promise<{ id: number; created: boolean }[]> {
  const results: { id: number; created: boolean }[] = [];
  try {
    for (let i = 0; i < writes.length; i += CHUNK) {
      // Each by itself, because each may be refused; those of a chunk are on their way together.
      const chunk = writes.slice(i, i + CHUNK).map((write) => target.write([write], auditOf(write, now)));
      for (const [result] of await Promise.all(chunk)) results.push(result!);
    }
  } catch (error) {
    if (error instanceof ApiError) throw new ConfigError(`SEED_FILE: ${error.message}`);
    throw error;
  }
  return results;
}

const AUDITED: Partial<Record<AccountWrite["kind"], string>> = {
  createUser: "user.create",
  createToken: "pat.create",
  deposit: "wallet.deposit",
  setTerms: "user.set_terms",
};

/** What the audit log says of a seed's write: money and access only. */
function auditOf(write: AccountWrite, at: number): AuditEntry[] {
  const action = AUDITED[write.kind];
  if (action === undefined) return [];
  const userId = "userId" in write ? write.userId : "subject";
  const isTerms = write.kind === "setTerms";
  const details = isTerms
    ? termsView(write)
    : write.kind === "deposit"
      ? { amount: write.amount, reference: write.reference }
      : null;
  const rest = { subject: isTerms ? write.userId : null, details, requestId: null, address: null };
  return [{ at, action, actor: "seed", write: 0, userId, ...rest }];
}
