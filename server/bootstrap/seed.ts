/**
 * Reads a seed file and creates what it lists: users with passwords, deposits, terms and tokens, events and markets. Each
 * email and slug counts once, so that a second start with the same file changes nothing.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Static } from "typebox";
import Type from "typebox";
import { MAX_MONEY_MICRO, MAX_OUTCOMES, MIN_OUTCOMES, SEED_REFERENCE } from "../../engine/limits.ts";
import { DEFAULT_TERMS, type UserTerms } from "../../engine/log/user-terms.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { TOKEN_PREFIX, TOKEN_SHOWN_LENGTH } from "../accounts/credentials.ts";
import { TermsChange, termsIn, termsView } from "../accounts/terms.ts";
import { hashToken } from "../accounts/token-hash.ts";
import { SCOPES } from "../accounts/types.ts";
import { changeTerms, checkRates } from "../accounts/users.ts";
import { ApiError, badRequest, ConfigError } from "../errors.ts";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import { compileSchema } from "../http/validate.ts";
import type { Passwords } from "../sign-in/passwords.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedAudit, RequestedWrite } from "../writes/types.ts";
import { readUtf8 } from "./file-name.ts";

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
type SeededUser = NonNullable<Seed["users"]>[number];

interface WriteResult {
  readonly id: number;
  /** False where the row existed before. */
  readonly created: boolean;
}

/** @throws ConfigError naming the file and the field */
export function readSeed(path: string): Seed {
  try {
    const text = readUtf8(path);
    // Another encoding would change names for good.
    if (text === null) throw badRequest("must be text in UTF-8");
    const seed = compileSchema(SeedSchema)(JSON.parse(text));
    for (const [i, { terms }] of (seed.users ?? []).entries()) if (terms !== undefined) checkSeededRates(terms, i);
    return seed;
  } catch (error) {
    const why = error instanceof ApiError || error instanceof SyntaxError ? error.message : String(error);
    throw new ConfigError(`SEED_FILE: ${path}: ${why}`);
  }
}

/** Runs before anything is created. @throws ApiError naming the user's index and the term */
function checkSeededRates(terms: TermsChange, index: number): void {
  try {
    checkRates({ ...DEFAULT_TERMS, ...termsIn(terms) });
  } catch (error) {
    throw badRequest(`users/${index}/terms/${(error as Error).message}`);
  }
}

/** What a seed needs of the exchange. A promise resolves once its write is durable. */
export interface SeedTarget {
  /** Applies writes in their order; resolves with their ids. */
  write(writes: readonly RequestedWrite[], audits: readonly RequestedAudit[]): Promise<WriteResult[]>;
  hasUser(email: string): boolean;
  /** Whether a seed created the user. */
  isSeeded(userId: number): boolean;
  /** Whether the seed of an earlier start set the user's terms: an operator may have changed them since. */
  hasSeededTerms(userId: number): boolean;
  /** Changes the terms in memory; returns the write that makes them durable. */
  setTerms(userId: number, terms: Partial<UserTerms>): RequestedWrite;
  /** Marks the user as created by a seed. */
  noteSeeded(userId: number): void;
  hashPassword(password: string): Promise<string>;
}

/** The seed's view of a server's accounts. */
export function createSeedTarget(accounts: Accounts, writer: LogWriter, passwords: Passwords): SeedTarget {
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

/** Creates what the seed lists and the exchange lacks. */
export async function applySeed(seed: Seed, target: SeedTarget, now: number): Promise<void> {
  const eventIds = await createEvents(seed, target, now);
  await createMarkets(seed, eventIds, target, now);
  const created = await createUsers(seed, target, now);
  await inChunks(target, userWrites(created, target, now), now);
}

/** Creates the events; resolves with their ids by slug. */
async function createEvents(seed: Seed, target: SeedTarget, now: number): Promise<ReadonlyMap<string, number>> {
  const events = seed.events ?? [];
  const writes = events.map(({ slug, title, category = null }): RequestedWrite => {
    return { kind: "createEvent", slug, title, category, closesAt: null, at: now };
  });
  const results = await inChunks(target, writes, now);
  return new Map(zip(events, results).map(([{ slug }, { id }]) => [slug, id]));
}

async function createMarkets(
  seed: Seed,
  eventIds: ReadonlyMap<string, number>,
  target: SeedTarget,
  now: number,
): Promise<void> {
  await inChunks(
    target,
    (seed.markets ?? []).map((market): RequestedWrite => {
      const { slug, question, outcomes, description = null, category = null, closes_at = null, event_slug } = market;
      const eventId = event_slug == null ? null : eventIds.get(event_slug);
      if (eventId === undefined) throw new ConfigError(`SEED_FILE: market ${slug}: no event "${event_slug}"`);
      const rest = { description, category, eventId, opensAt: now, closesAt: closes_at, at: now };
      return { kind: "createMarket", slug, question, outcomes, proposedBy: null, ...rest };
    }),
    now,
  );
}

/** Creates the users; resolves with each and its result, also where an account with the email exists. */
async function createUsers(seed: Seed, target: SeedTarget, now: number): Promise<[SeededUser, WriteResult][]> {
  const users = seed.users ?? [];
  const writes: RequestedWrite[] = [];
  for (const { email, password, role = "user", kyc_tier = 0 } of users) {
    const name = email.toLowerCase();
    const isKnown = password === undefined || target.hasUser(name);
    const passwordHash = isKnown ? null : await target.hashPassword(password);
    // Tier 1 stands for a verified email and phone.
    const verifiedAt = kyc_tier > 0 ? now : null;
    const verified = { emailVerifiedAt: verifiedAt, phoneVerifiedAt: verifiedAt };
    const rest = { role: String(role), kycTier: kyc_tier, passwordHash, ...verified, at: now };
    writes.push({ kind: "createUser", email: name, ...rest });
  }
  return zip(users, await inChunks(target, writes, now));
}

/** Deposits, terms and tokens of the users. */
function userWrites(users: readonly [SeededUser, WriteResult][], target: SeedTarget, now: number): RequestedWrite[] {
  const writes: RequestedWrite[] = [];
  const withTerms = new Set<number>();
  for (const [user, { id: userId, created }] of users) {
    // Someone who registered with the email has an account of their own: the seed doesn't touch it.
    if (created) target.noteSeeded(userId);
    else if (!target.isSeeded(userId)) continue;
    if (user.deposit !== undefined && user.deposit > 0) {
      const reference = SEED_REFERENCE + user.email.toLowerCase();
      writes.push({ kind: "deposit", userId, amount: user.deposit, reference, at: now });
    }
    if (user.terms !== undefined && !target.hasSeededTerms(userId) && !withTerms.has(userId)) {
      withTerms.add(userId);
      writes.push(target.setTerms(userId, termsIn(user.terms)));
    }
    for (const { name, scopes, token } of user.pats ?? []) {
      const prefix = token.slice(0, Math.min(TOKEN_SHOWN_LENGTH, token.length >> 1));
      const rest = { tokenHash: hashToken(token), prefix, allowedAddresses: null, expiresAt: null, at: now };
      writes.push({ kind: "createToken", userId, name, scopes: scopes as string[], ...rest });
    }
  }
  return writes;
}

/** Pairs each item with its result. */
function zip<A, B>(items: readonly A[], results: readonly B[]): [A, B][] {
  assert(items.length === results.length, "every write of a seed has a result");
  return items.map((item, i) => [item, results[i] as B]);
}

async function inChunks(target: SeedTarget, writes: readonly RequestedWrite[], now: number): Promise<WriteResult[]> {
  const results: WriteResult[] = [];
  try {
    for (let i = 0; i < writes.length; i += CHUNK) {
      // Each write by itself, because each may be rejected; those of a chunk are in flight together.
      const chunk = writes.slice(i, i + CHUNK).map((write) => target.write([write], auditOf(write, now)));
      results.push(...(await Promise.all(chunk)).flat());
    }
  } catch (error) {
    if (error instanceof ApiError) throw new ConfigError(`SEED_FILE: ${error.message}`);
    throw error;
  }
  return results;
}

const AUDITED: Partial<Record<RequestedWrite["kind"], string>> = {
  createUser: "user.create",
  createToken: "pat.create",
  deposit: "wallet.deposit",
  setTerms: "user.set_terms",
};

/** The audit lines of a seed's write: of money and access only. */
function auditOf(write: RequestedWrite, at: number): RequestedAudit[] {
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

/** Relative to the build, which is in dist/builds/HASH. */
const SAMPLE_MARKETS = fileURLToPath(new URL("../../../data/sample-markets.json", import.meta.url));

/**
 * The seed of a first start without SEED_FILE: sample markets, and two users to try them with. Writes the users' tokens
 * into files of the data folder that only the owner can read.
 */
export function createSampleSeed(dataDir: string): Seed {
  const seed = readSeed(SAMPLE_MARKETS);
  const users = [1, 2].map((n) => {
    const token = TOKEN_PREFIX + randomBytes(32).toString("base64url");
    writeFileSync(join(dataDir, `demo-token-${n}`), `${token}\n`, { mode: 0o600 });
    const pats = [{ name: "demo", scopes: [...SCOPES], token }];
    return { email: `demo-${n}@example.com`, role: "user", kyc_tier: 2, deposit: 10_000_000_000, pats };
  });
  return { ...seed, users } as Seed;
}
