/**
 * The demo's own data folder: makes it, keeps the tokens and passwords of its users in it so that a second run goes on
 * with the same ones, and writes the seed that the exchange starts with. Never touches a folder that isn't the demo's.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { lockDataFolder } from "../../server/util/data-folder.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";
import { EVENTS, MARKETS } from "./catalog.ts";

/** What somebody tries the page with, and what decides at the desk. */
export const PERSON = "demo@example.com";
export const OPERATOR = "operator@example.com";

const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];
const DAY_MS = 86_400_000;
/** micro-USDC. The person has what a KYC tier 2 may trade in a day. */
const PERSON_DEPOSIT = 10_000_000_000;
const BOT_DEPOSIT = 5_000_000_000_000;

const ACCESS_FILE = "demo.json";
const SEED_FILE = "demo-seed.json";
const DATABASE = "exchange.db";
/** What goes with a demo that is forgotten; the access file last, since the folder is the demo's as long as it is there. */
const FORGOTTEN = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, "control.sock", "keys", "outbox", ACCESS_FILE];

/** How the demo's users get in: passwords of people, tokens by the part of the e-mail before the @. */
interface Access {
  readonly password: string;
  readonly operatorPassword: string;
  readonly tokens: Record<string, string>;
}

export interface DemoFolder extends Access {
  readonly path: string;
  readonly seedFile: string;
}

/**
 * @param fresh forgets what an earlier demo left there
 * @param bots names of the users that trade by themselves
 * @throws Error in one line where the folder can't be the demo's
 */
export function openFolder(dataDir: string, fresh: boolean, bots: readonly string[]): DemoFolder {
  const path = resolve(dataDir);
  const accessFile = join(path, ACCESS_FILE);
  if (existsSync(join(path, DATABASE)) && !existsSync(accessFile)) {
    throw new Error(`DATA_DIR: "${path}" holds another exchange; the demo takes a folder of its own`);
  }
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // Nobody else's, from here to the end of this function; the exchange takes it next.
  const lock = lockDataFolder(path);
  try {
    if (fresh && existsSync(accessFile)) for (const name of FORGOTTEN) remove(path, name);
    const access = readAccess(accessFile);
    for (const name of [nameOf(PERSON), ...bots]) access.tokens[name] ??= newToken();
    writePrivate(accessFile, access);
    const seedFile = join(path, SEED_FILE);
    writePrivate(seedFile, seedOf(access, bots, Date.now()));
    return { ...access, path, seedFile };
  } finally {
    lock.close();
  }
}

export const nameOf = (email: string): string => email.slice(0, email.indexOf("@"));
export const emailOf = (name: string): string => `${name}@example.com`;

function remove(path: string, name: string): void {
  rmSync(join(path, name), { recursive: true, force: true });
}

function newToken(): string {
  return `pm_pat_${randomBytes(32).toString("base64url")}`;
}

function readAccess(path: string): Access {
  if (existsSync(path)) {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as Access;
    } catch {
      throw new Error(`"${path}" is spoilt; --fresh begins anew`);
    }
  }
  const password = (): string => randomBytes(12).toString("base64url");
  return { password: password(), operatorPassword: password(), tokens: {} };
}

function writePrivate(path: string, content: object): void {
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
}

/** As SEED_FILE takes it: once per e-mail and slug, so that a later start adds only what is new. */
function seedOf({ password, operatorPassword, tokens }: Access, bots: readonly string[], now: number): object {
  const pats = (name: string) => [{ name: "demo", scopes: SCOPES, token: tokens[name] }];
  return {
    users: [
      { email: PERSON, password, kyc_tier: 2, deposit: PERSON_DEPOSIT, pats: pats(nameOf(PERSON)) },
      { email: OPERATOR, password: operatorPassword, role: "operator" },
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
