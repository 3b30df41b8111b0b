/**
 * The demo's own data folder: creates it, keeps its users' tokens and passwords there for the next run, and writes the
 * seed that the exchange starts with. Never touches another exchange's folder.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { deleteExchange, holdsExchange, lockDataFolder } from "../../server/util/data-folder.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";
import { EVENTS, MARKETS } from "./catalog.ts";

/** The accounts for a visitor of the page, and for the operator's desk. */
export const PERSON = "demo@example.com";
export const OPERATOR = "operator@example.com";
/** An account whose identity waits for an operator. */
export const NEWCOMER = "newcomer@example.com";

const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];
const DAY_MS = 86_400_000;
/** micro-USDC. The person's deposit matches the daily limit of KYC tier 2. */
const PERSON_DEPOSIT = 10_000_000_000;
const BOT_DEPOSIT = 5_000_000_000_000;

const ACCESS_FILE = "demo.json";
const SEED_FILE = "demo-seed.json";

/** How the demo's users get in: passwords of people, tokens by the part of the e-mail before the @. */
interface Access {
  readonly password: string;
  readonly operatorPassword: string;
  readonly tokens: Record<string, string>;
  /** The past is being made: what the folder has before it is whole is good for nothing. */
  isUnfinished?: boolean;
}

export interface DemoFolder extends Access {
  readonly path: string;
  readonly seedFile: string;
  /** It has no exchange yet. */
  readonly isEmpty: boolean;
}

/**
 * @param fresh deletes an earlier demo's files
 * @param bots the names of the bot users
 * @param now ms: markets that don't exist yet close so many days after it
 * @throws Error with a one-line reason if the folder can't be the demo's
 */
export function openFolder(dataDir: string, fresh: boolean, bots: readonly string[], now: number): DemoFolder {
  const path = resolve(dataDir);
  const accessFile = join(path, ACCESS_FILE);
  if (holdsExchange(path) && !existsSync(accessFile)) {
    throw new Error(`DATA_DIR: "${path}" holds another exchange; the demo takes a folder of its own`);
  }
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // This process holds the lock until the end of this function; then the exchange takes it.
  const lock = lockDataFolder(path);
  try {
    if (existsSync(accessFile) && (fresh || readAccess(accessFile).isUnfinished === true)) {
      deleteExchange(path);
      // Last, because it marks the folder as the demo's.
      rmSync(accessFile);
    }
    const isEmpty = !holdsExchange(path);
    const access = readAccess(accessFile);
    for (const name of [nameOf(PERSON), ...bots]) access.tokens[name] ??= newToken();
    writePrivate(accessFile, access);
    const seedFile = join(path, SEED_FILE);
    writePrivate(seedFile, seedOf(access, bots, now));
    return { ...access, path, seedFile, isEmpty };
  } finally {
    lock.close();
  }
}

/** Notes whether the folder's past is being made. */
export function notePast({ path }: DemoFolder, isUnfinished: boolean): void {
  const accessFile = join(path, ACCESS_FILE);
  const { isUnfinished: _, ...access } = readAccess(accessFile);
  writePrivate(accessFile, isUnfinished ? { ...access, isUnfinished } : access);
}

export const nameOf = (email: string): string => email.slice(0, email.indexOf("@"));
export const emailOf = (name: string): string => `${name}@example.com`;

function newToken(): string {
  return `pm_pat_${randomBytes(32).toString("base64url")}`;
}

function readAccess(path: string): Access {
  if (existsSync(path)) {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as Access;
    } catch {
      throw new Error(`"${path}" is damaged: --fresh starts over`);
    }
  }
  const password = (): string => randomBytes(12).toString("base64url");
  return { password: password(), operatorPassword: password(), tokens: {} };
}

function writePrivate(path: string, content: object): void {
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
}

/** In the format of SEED_FILE, which applies each email and slug once, so that a later start adds only new ones. */
function seedOf({ password, operatorPassword, tokens }: Access, bots: readonly string[], now: number): object {
  const pats = (name: string) => [{ name: "demo", scopes: SCOPES, token: tokens[name] }];
  return {
    users: [
      { email: PERSON, password, kyc_tier: 2, deposit: PERSON_DEPOSIT, pats: pats(nameOf(PERSON)) },
      { email: OPERATOR, password: operatorPassword, role: "operator" },
      { email: NEWCOMER, kyc_tier: 1 },
      ...bots.map((name) => ({
        email: emailOf(name),
        kyc_tier: 2,
        terms: UNBOUNDED_TERMS,
        deposit: BOT_DEPOSIT,
        pats: pats(name),
      })),
    ],
    events: EVENTS,
    markets: MARKETS.map(({ slug, question, description, category, event, closesInDays, outcomes }) => ({
      ...{ slug, question, description, category },
      ...(event === undefined ? {} : { event_slug: event }),
      outcomes: Object.keys(outcomes),
      closes_at: now + closesInDays * DAY_MS,
    })),
  };
}
