/** Reads the environment into one checked object. A wrong value stops the start with a line that names the variable. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { MAX_MERGE_FEE_BPS, MAX_WS_CONNECTIONS, SOCKETS_PER_ADDRESS } from "../engine/limits.ts";
import type { Durability } from "../engine/projection/database.ts";
import { TWO_PERSON_ACTIONS, type TwoPersonAction } from "./accounts/approvals.ts";
import { readSocialProviders, type SocialProvider } from "./accounts/social-sign-in.ts";
import { ConfigError } from "./errors.ts";
import { isAddressRange } from "./http/client-address.ts";
import { DEFAULT_RATE_LIMITS, type RateLimits } from "./http/rate-limiter.ts";
import { type AddressRule, EVM, readAddressRule } from "./wallet/withdrawal-address.ts";

export interface Config {
  /** False: no port is opened, the control socket alone takes requests. */
  readonly network: boolean;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string;
  readonly dataDir: string;
  readonly engineThreads: number;
  readonly durability: Durability;
  /** Null where RATE_LIMITS=off. */
  readonly rateLimits: RateLimits | null;
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  /** WebSocket connections at one time. */
  readonly maxSocketsPerAddress: number;
  readonly seedFile: string | null;
  /** What merging costs, BPS of the 1 USDC of each complete set. */
  readonly mergeFeeBps: number;
  readonly smtpUrl: string | null;
  /** As in a mail's header. */
  readonly mailFrom: string;
  readonly smsWebhookUrl: string | null;
  readonly socialProviders: readonly SocialProvider[];
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
  readonly logLevel: string;
  /** What a second operator must approve. */
  readonly twoPersonRule: ReadonlySet<TwoPersonAction>;
  /** Operators' routes take sessions with a second factor alone. */
  readonly operatorsNeedSecondFactor: boolean;
  /** What withdrawals may be paid to. */
  readonly withdrawalAddress: AddressRule;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
const MAX_ENGINE_THREADS = 64;
/** A day, and a year. */
const MAX_ACCESS_TTL_S = 86_400;
const MAX_REFRESH_TTL_S = 31_536_000;

/** @throws ConfigError naming the variable and what it must be */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const text = (name: string, fallback: string): string => {
    const value = env[name];
    return value === undefined || value === "" ? fallback : value;
  };
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name, String(fallback));
    if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max) {
      throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
    }
    return Number(value);
  };
  const choice = <T extends string>(name: string, fallback: T, choices: readonly T[]): T => {
    const value = text(name, fallback) as T;
    if (!choices.includes(value)) throw new ConfigError(`${name} must be one of ${choices.join(", ")}, not "${value}"`);
    return value;
  };
  const file = (name: string): string | null => {
    const value = text(name, "");
    if (value === "") return null;
    try {
      readFileSync(value);
    } catch (error) {
      throw new ConfigError(`${name}: cannot read "${value}" (${(error as NodeJS.ErrnoException).code})`);
    }
    return resolve(value);
  };

  const host = text("HOST", "127.0.0.1");
  const port = integer("PORT", 8080, 0, 65_535);
  const tls = text("TLS_CERT", "") !== "" || text("TLS_KEY", "") !== "";
  const ownUrl = urlOf(tls, host, port);
  if (!URL.canParse(ownUrl)) throw new ConfigError(`HOST must be a host name or an IP address, not "${host}"`);
  const url = (name: string, protocols: readonly string[]): string | null => {
    const value = text(name, "");
    if (value === "") return null;
    // It may hold a password: it is not repeated.
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) {
      throw new ConfigError(`${name} must be a URL that begins with ${protocols.join("// or ")}//`);
    }
    return value;
  };
  const publicUrl = url("PUBLIC_URL", ["http:", "https:"]) ?? ownUrl;
  if (/[?#]/.test(publicUrl)) throw new ConfigError("PUBLIC_URL must have no ? and no #");
  const smtpUrl = url("SMTP_URL", ["smtp:", "smtps:"]);
  if (smtpUrl !== null && new URL(smtpUrl).search !== "") throw new ConfigError("SMTP_URL must have no parameters");
  const smsWebhookUrl = url("SMS_WEBHOOK_URL", ["http:", "https:"]);
  if (smsWebhookUrl !== null && new URL(smsWebhookUrl).username !== "") {
    throw new ConfigError("SMS_WEBHOOK_URL must have no user name");
  }
  const certFile = file("TLS_CERT");
  const keyFile = file("TLS_KEY");
  if ((certFile === null) !== (keyFile === null)) throw new ConfigError("TLS_CERT and TLS_KEY go together: set both");
  return {
    network: choice("NETWORK", "on", ["on", "off"]) === "on",
    host,
    port,
    publicUrl: publicUrl.replace(/\/+$/, ""),
    dataDir: resolve(text("DATA_DIR", "data")),
    engineThreads: integer("ENGINE_THREADS", Math.max(1, availableParallelism() - 1), 1, MAX_ENGINE_THREADS),
    durability: choice("DURABILITY", "full", ["full", "normal", "off"]),
    rateLimits: readRateLimits(text("RATE_LIMITS", "on")),
    trustedProxies: readTrustedProxies(text("TRUSTED_PROXIES", "")),
    maxSocketsPerAddress: integer("MAX_SOCKETS_PER_ADDRESS", SOCKETS_PER_ADDRESS, 1, MAX_WS_CONNECTIONS),
    seedFile: file("SEED_FILE"),
    mergeFeeBps: integer("MERGE_FEE", 0, 0, MAX_MERGE_FEE_BPS),
    smtpUrl,
    mailFrom: text("MAIL_FROM", `Prediction Exchange <no-reply@${mailHost(publicUrl)}>`),
    smsWebhookUrl,
    socialProviders: readProviders(text("SOCIAL_PROVIDERS", "")),
    accessTtlMs: 1_000 * integer("ACCESS_TOKEN_TTL", 900, 1, MAX_ACCESS_TTL_S),
    refreshTtlMs: 1_000 * integer("REFRESH_TOKEN_TTL", 2_592_000, 1, MAX_REFRESH_TTL_S),
    logLevel: choice("LOG_LEVEL", "info", LOG_LEVELS),
    tls: certFile === null || keyFile === null ? null : { certFile, keyFile },
    twoPersonRule: readTwoPersonRule(text("TWO_PERSON_RULE", "")),
    operatorsNeedSecondFactor:
      choice("REQUIRE_OPERATOR_SECOND_FACTOR", isLoopback(host) ? "off" : "on", ["on", "off"]) === "on",
    withdrawalAddress: readWithdrawalAddress(text("WITHDRAWAL_ADDRESS", EVM)),
  };
}

function readTwoPersonRule(value: string): ReadonlySet<TwoPersonAction> {
  const names = value === "" ? [] : value.split(",").map((name) => name.trim());
  for (const name of names) {
    if ((TWO_PERSON_ACTIONS as readonly string[]).includes(name)) continue;
    throw new ConfigError(`TWO_PERSON_RULE must be any of ${TWO_PERSON_ACTIONS.join(",")}, not "${name}"`);
  }
  return new Set(names as TwoPersonAction[]);
}

/** Only this machine reaches what listens there. */
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

/** Where a server that listens so is found. */
export function urlOf(isTls: boolean, host: string, port: number): string {
  return `${isTls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Mails come from the service's own host, where it has a name. */
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
const RATE_LIMIT_KEYS: Readonly<Record<string, keyof RateLimits>> = {
  user: "user",
  address: "address",
  order_user: "orderUser",
  order_address: "orderAddress",
  auth_identifier: "authIdentifier",
  refresh_address: "refreshAddress",
  registration_address: "registrationAddress",
};

function readRateLimits(value: string): RateLimits | null {
  if (value === "on") return DEFAULT_RATE_LIMITS;
  if (value === "off") return null;
  const limits: Record<keyof RateLimits, number> = { ...DEFAULT_RATE_LIMITS };
  for (const [key, limit] of Object.entries(readRateLimitObject(value))) {
    if (!Object.hasOwn(RATE_LIMIT_KEYS, key)) {
      throw new ConfigError(`RATE_LIMITS: "${key}" is none of ${Object.keys(RATE_LIMIT_KEYS).join(", ")}`);
    }
    if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > MAX_RATE_LIMIT) {
      throw new ConfigError(
        `RATE_LIMITS: ${key} must be an integer from 1 to ${MAX_RATE_LIMIT}, not ${JSON.stringify(limit)}`,
      );
    }
    limits[RATE_LIMIT_KEYS[key]!] = Number(limit);
  }
  return limits;
}

function readRateLimitObject(value: string): object {
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
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
