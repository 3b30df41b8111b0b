/**
 * Reads the environment into one checked object: a wrong value ends the start with a line that names the variable. Types
 * and bounds are in environment.ts; here are the checks that need more: URLs, files, lists, JSON.
 */
import { isIP } from "node:net";
import { resolve } from "node:path";
import type { Durability } from "../../engine/util/wal-database.ts";
import { TWO_PERSON_ACTIONS, type TwoPersonAction } from "../accounts/approvals.ts";
import { ConfigError } from "../errors.ts";
import { isAddressRange } from "../http/client-address.ts";
import { DEFAULT_RATE_LIMITS, type RateLimits } from "../http/rate-limiter.ts";
import type { ReplicationSettings } from "../replication/types.ts";
import { readSocialProviders, type SocialProvider } from "../sign-in/social-provider.ts";
import { isObject } from "../util/is-object.ts";
import { type AddressRule, readAddressRule } from "../wallet/withdrawal-address.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { readFileName, readUtf8 } from "./file-name.ts";
import { readStandby } from "./standby-config.ts";

export interface Config {
  /** False: no port is open, and only the control socket takes requests. */
  readonly network: boolean;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string;
  readonly dataDir: string;
  readonly engineThreads: number;
  readonly durability: Durability;
  /** Null where RATE_LIMITS=off. */
  readonly rateLimits: RateLimits | null;
  /** Addresses and CIDR ranges whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[];
  /** WebSocket connections of one address at one time. */
  readonly maxSocketsPerAddress: number;
  /** Days that archives of the log are kept; 0: all are kept. */
  readonly logDays: number;
  /** Files of book history are made, and kept for so many days; 0: for ever. */
  readonly history: boolean;
  readonly historyDays: number;
  readonly seedFile: string | null;
  /** The fee for merging, BPS of the 1 USDC of each complete set. */
  readonly mergeFeeBps: number;
  readonly smtpUrl: string | null;
  /** Between two mails that tell a user what happened, ms; 0: none are sent. */
  readonly mailIntervalMs: number;
  /** The From header of mail. */
  readonly mailFrom: string;
  readonly smsWebhookUrl: string | null;
  readonly socialProviders: readonly SocialProvider[];
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
  readonly logLevel: string;
  /** The actions that a second operator must approve. */
  readonly twoPersonRule: ReadonlySet<TwoPersonAction>;
  /** Operators' routes accept only sessions with a second factor. */
  readonly operatorsNeedSecondFactor: boolean;
  /** Which addresses withdrawals may be paid to. */
  readonly withdrawalAddress: AddressRule;
  /** How users pay money in, with `{reference}` in the place of the user's own; null: the operators say it elsewhere. */
  readonly depositInstructions: string | null;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Null on a single box. */
  readonly standby: ReplicationSettings | null;
}

/** @throws ConfigError naming the variable and what it must be */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const given = readEnvironment(env);
  const urls = readUrls(given);
  const secondFactor = given.REQUIRE_OPERATOR_SECOND_FACTOR ?? (isLoopback(given.HOST) ? "off" : "on");
  const depositInstructions = readDepositInstructions(given.DEPOSIT_INSTRUCTIONS);
  return {
    network: given.NETWORK === "on",
    host: given.HOST,
    port: given.PORT,
    ...urls,
    dataDir: resolve(given.DATA_DIR),
    engineThreads: given.ENGINE_THREADS,
    durability: given.DURABILITY,
    rateLimits: readRateLimits(given.RATE_LIMITS),
    trustedProxies: readTrustedProxies(given.TRUSTED_PROXIES),
    maxSocketsPerAddress: given.MAX_SOCKETS_PER_ADDRESS,
    logDays: readLogDays(given.LOG_DAYS),
    history: given.HISTORY === "on",
    historyDays: given.HISTORY_DAYS,
    seedFile: readFileName("SEED_FILE", given.SEED_FILE),
    mergeFeeBps: given.MERGE_FEE,
    mailIntervalMs: 1_000 * given.MAIL_INTERVAL,
    mailFrom: given.MAIL_FROM ?? `Prediction Exchange <no-reply@${mailHost(urls.publicUrl)}>`,
    socialProviders: readProviders(given.SOCIAL_PROVIDERS),
    accessTtlMs: 1_000 * given.ACCESS_TOKEN_TTL,
    refreshTtlMs: 1_000 * given.REFRESH_TOKEN_TTL,
    logLevel: given.LOG_LEVEL,
    tls: readTls(given),
    twoPersonRule: readTwoPersonRule(given.TWO_PERSON_RULE),
    operatorsNeedSecondFactor: secondFactor === "on",
    depositInstructions,
    withdrawalAddress: readWithdrawalAddress(given.WITHDRAWAL_ADDRESS),
    standby: readStandby(given, {
      PUBLIC_URL: urls.publicUrl,
      REQUIRE_OPERATOR_SECOND_FACTOR: secondFactor,
      DEPOSIT_INSTRUCTIONS: depositInstructions,
    }),
  };
}

/** `resume` needs some days of the log, and a backup should be older than none of them. */
const MIN_LOG_DAYS = 7;

function readLogDays(days: number): number {
  if (days > 0 && days < MIN_LOG_DAYS)
    throw new ConfigError(`LOG_DAYS must be 0 or at least ${MIN_LOG_DAYS}, not "${days}"`);
  return days;
}

function readUrls(given: Environment): Pick<Config, "publicUrl" | "smtpUrl" | "smsWebhookUrl"> {
  const { HOST: host, PORT: port, TLS_CERT, TLS_KEY } = given;
  const ownUrl = urlOf(TLS_CERT !== undefined || TLS_KEY !== undefined, host, port);
  if (!URL.canParse(ownUrl)) throw new ConfigError(`HOST must be a host name or an IP address, not "${host}"`);
  const publicUrl = readUrl("PUBLIC_URL", given.PUBLIC_URL, ["http:", "https:"]) ?? ownUrl;
  if (/[?#]/.test(publicUrl)) throw new ConfigError("PUBLIC_URL must have no ? and no #");
  const smtpUrl = readUrl("SMTP_URL", given.SMTP_URL, ["smtp:", "smtps:"]);
  if (smtpUrl !== null && new URL(smtpUrl).search !== "") throw new ConfigError("SMTP_URL must have no parameters");
  const smsWebhookUrl = readUrl("SMS_WEBHOOK_URL", given.SMS_WEBHOOK_URL, ["http:", "https:"]);
  if (smsWebhookUrl !== null && new URL(smsWebhookUrl).username !== "") {
    throw new ConfigError("SMS_WEBHOOK_URL must have no user name");
  }
  return { publicUrl: normalized(publicUrl), smtpUrl, smsWebhookUrl };
}

/** The origin as browsers write it, and the path below which a proxy serves the exchange, if any. */
function normalized(publicUrl: string): string {
  const { origin, pathname, username } = new URL(publicUrl);
  if (username !== "") throw new ConfigError("PUBLIC_URL must have no user name");
  return origin + pathname.replace(/\/+$/, "");
}

function readUrl(name: string, value: string | undefined, protocols: readonly string[]): string | null {
  if (value === undefined) return null;
  // It may hold a password: the error doesn't repeat it.
  if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) {
    throw new ConfigError(`${name} must be a URL that begins with ${protocols.join("// or ")}//`);
  }
  return value;
}

function readTls({ TLS_CERT, TLS_KEY }: Environment): Config["tls"] {
  const certFile = readFileName("TLS_CERT", TLS_CERT);
  const keyFile = readFileName("TLS_KEY", TLS_KEY);
  if ((certFile === null) !== (keyFile === null)) throw new ConfigError("TLS_CERT and TLS_KEY go together: set both");
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}

const MAX_INSTRUCTIONS = 4_000;

function readDepositInstructions(file: string | undefined): string | null {
  const path = readFileName("DEPOSIT_INSTRUCTIONS", file);
  if (path === null) return null;
  const fail = (what: string): ConfigError => new ConfigError(`DEPOSIT_INSTRUCTIONS: "${file}" ${what}`);
  const written = readUtf8(path);
  if (written === null) throw fail("must be text in UTF-8");
  const text = written.replaceAll("\r\n", "\n").trim();
  if (text === "" || text.length > MAX_INSTRUCTIONS) throw fail(`must have 1 to ${MAX_INSTRUCTIONS} characters`);
  if (/[^\P{Cc}\n\t]/u.test(text)) throw fail("must have no control characters but line ends");
  const [unknown] = text.match(/\{(?!reference\})[^{}\n]*\}/) ?? [];
  if (unknown !== undefined) throw fail(`has ${unknown}: only {reference} is replaced`);
  return text;
}

function readTwoPersonRule(value: string): ReadonlySet<TwoPersonAction> {
  const names = value === "" ? [] : value.split(",").map((name) => name.trim());
  for (const name of names) {
    if ((TWO_PERSON_ACTIONS as readonly string[]).includes(name)) continue;
    throw new ConfigError(`TWO_PERSON_RULE must be any of ${TWO_PERSON_ACTIONS.join(",")}, not "${name}"`);
  }
  return new Set(names as TwoPersonAction[]);
}

/** Only this machine can reach a server that listens there. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function readWithdrawalAddress(value: string): AddressRule {
  try {
    return readAddressRule(value);
  } catch (error) {
    throw new ConfigError(`WITHDRAWAL_ADDRESS ${(error as Error).message}`);
  }
}

/** The URL of a server that listens on this host and port. */
export function urlOf(isTls: boolean, host: string, port: number): string {
  return `${isTls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The host that mail comes from: the service's own, where it has a name. */
function mailHost(publicUrl: string): string {
  const { hostname } = new URL(publicUrl);
  return hostname.startsWith("[") || isIP(hostname) !== 0 ? "localhost" : hostname;
}

function readProviders(value: string): readonly SocialProvider[] {
  if (value === "") return [];
  try {
    return readSocialProviders(value);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}

const MAX_RATE_LIMIT = 1_000_000_000;
/** By the keys of RATE_LIMITS. */
const RATE_LIMIT_FIELDS: ReadonlyMap<string, keyof RateLimits> = new Map([
  ["user", "user"],
  ["address", "address"],
  ["order_user", "orderUser"],
  ["order_address", "orderAddress"],
  ["auth_identifier", "authIdentifier"],
  ["refresh_address", "refreshAddress"],
  ["registration_address", "registrationAddress"],
]);

function readRateLimits(value: string): RateLimits | null {
  if (value === "on") return DEFAULT_RATE_LIMITS;
  if (value === "off") return null;
  const limits: Record<keyof RateLimits, number> = { ...DEFAULT_RATE_LIMITS };
  for (const [key, limit] of Object.entries(readRateLimitObject(value))) {
    const field = RATE_LIMIT_FIELDS.get(key);
    if (field === undefined) {
      throw new ConfigError(`RATE_LIMITS: "${key}" is none of ${[...RATE_LIMIT_FIELDS.keys()].join(", ")}`);
    }
    if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > MAX_RATE_LIMIT) {
      throw new ConfigError(
        `RATE_LIMITS: ${key} must be an integer from 1 to ${MAX_RATE_LIMIT}, not ${JSON.stringify(limit)}`,
      );
    }
    limits[field] = Number(limit);
  }
  return limits;
}

function readRateLimitObject(value: string): object {
  try {
    const parsed: unknown = JSON.parse(value);
    if (isObject(parsed)) return parsed;
  } catch {
    // Falls through to the one message for all wrong values.
  }
  throw new ConfigError(`RATE_LIMITS must be on, off or a JSON object, not "${value}"`);
}

function readTrustedProxies(value: string): readonly string[] {
  if (value === "") return [];
  const ranges = value.split(",").map((range) => range.trim());
  for (const range of ranges) {
    if (isAddressRange(range)) continue;
    throw new ConfigError(
      `TRUSTED_PROXIES must be IP addresses or CIDR ranges with commas between them, "${range}" is none`,
    );
  }
  return ranges;
}
