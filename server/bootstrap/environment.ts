/**
 * The environment variables as one TypeBox schema: type, default, bounds and meaning of each. docs/operations.md has the
 * same list, which a test compares. config.ts gives the values their final form; no other file reads the environment.
 */
import { availableParallelism } from "node:os";
import Type, { type Static, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { MAX_MERGE_FEE_BPS } from "../../engine/limits.ts";
import { ConfigError } from "../errors.ts";
import { EVM } from "../wallet/withdrawal-address.ts";
import { MAX_WS_CONNECTIONS, SOCKETS_PER_ADDRESS } from "../websocket/limits.ts";

const MAX_ENGINE_THREADS = 64;
const MAX_LOG_DAYS = 36_500;
const DAY_S = 86_400;
const YEAR_S = 31_536_000;

const text = (fallback: string, description: string) => Type.String({ default: fallback, description });
/** A variable that may be unset. */
const optional = (description: string) => Type.Optional(Type.String({ description }));
const integer = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description });
const choice = <T extends string[]>(fallback: T[number], choices: readonly [...T], description: string) =>
  Type.Enum<T>(choices, { default: fallback, description });

export const Environment = Type.Object({
  NETWORK: choice("on", ["on", "off"], "off opens no port: only the control socket accepts requests"),
  HOST: text("127.0.0.1", "the address to listen on"),
  PORT: integer(8080, 0, 65_535, "the port to listen on; 0 picks a free one"),
  PUBLIC_URL: optional("the address that users see; else http(s)://HOST:PORT"),
  TLS_CERT: optional("the file of a certificate in PEM; together with TLS_KEY"),
  TLS_KEY: optional("the file of its key in PEM"),
  TRUSTED_PROXIES: text("", "addresses and CIDR ranges whose X-Forwarded-For counts, with commas between them"),
  DATA_DIR: text("data", "the data folder"),
  ENGINE_THREADS: integer(Math.max(1, availableParallelism() - 1), 1, MAX_ENGINE_THREADS, "engine threads"),
  DURABILITY: choice(
    "full",
    ["full", "normal", "off"],
    "full: a commit survives a power loss; normal: a crash of the process; off: for benchmarks",
  ),
  LOG_DAYS: integer(0, 0, MAX_LOG_DAYS, "days that archives of the log are kept, at least 7; 0: all are kept"),
  HISTORY: choice("on", ["on", "off"], "on: files of book history are made every hour"),
  HISTORY_DAYS: integer(0, 0, MAX_LOG_DAYS, "days that files of book history are kept; 0: all are kept"),
  SEED_FILE: optional("a JSON file of users, events and markets"),
  LOG_LEVEL: choice("info", ["fatal", "error", "warn", "info", "debug", "trace", "silent"], "the minimum level logged"),
  RATE_LIMITS: text("on", "on, off, or a JSON object that overrides single limits"),
  MAX_SOCKETS_PER_ADDRESS: integer(SOCKETS_PER_ADDRESS, 1, MAX_WS_CONNECTIONS, "WebSockets of one address at one time"),
  MERGE_FEE: integer(0, 0, MAX_MERGE_FEE_BPS, "BPS of 1 USDC per merged set"),
  WITHDRAWAL_ADDRESS: text(EVM, "evm, or a regular expression for the whole address"),
  DEPOSIT_INSTRUCTIONS: optional("a text file that tells users how to pay money in"),
  TWO_PERSON_RULE: text("", "what a second operator must approve, with commas between the names"),
  REQUIRE_OPERATOR_SECOND_FACTOR: Type.Optional(
    Type.Enum(["on", "off"], { description: "on: operators sign in with a second factor; else off only on loopback" }),
  ),
  ACCESS_TOKEN_TTL: integer(900, 1, DAY_S, "seconds that an access token is valid"),
  REFRESH_TOKEN_TTL: integer(2_592_000, 1, YEAR_S, "seconds that a refresh token is valid"),
  SOCIAL_PROVIDERS: text("", "a JSON object of OpenID Connect providers by name"),
  SMTP_URL: optional("the mail server; without it mail goes to files of the data folder"),
  MAIL_INTERVAL: integer(
    60,
    0,
    DAY_S,
    "seconds between two mails that tell a user what happened, 15 times as long for fills; 0: none are sent",
  ),
  MAIL_FROM: optional("the From header of mail; else no-reply@ the host of PUBLIC_URL"),
  STANDBY_NATS: optional(
    "URLs of the NATS nodes that get the log, with commas, this box's own first; unset: a single box",
  ),
  STANDBY_NATS_CREDS: optional("a NATS credentials file"),
  STANDBY_NATS_CA: optional("the file of the certificate authority of the nodes"),
  STANDBY_NATS_CERT: optional("the file of this box's certificate for the nodes; together with STANDBY_NATS_KEY"),
  STANDBY_NATS_KEY: optional("the file of its key"),
  STANDBY_SECRET: optional("32 characters or more, the same on both boxes: signs and seals what they send each other"),
  STANDBY_NAME: text("exchange", "names the stream; the same on all boxes of an exchange"),
  STANDBY_BOX: optional("the name of this box; else its host name"),
  STANDBY_URL: optional("how clients reach this box directly, such as https://a.example.com"),
  STANDBY_ACK: choice(
    "standby",
    ["standby", "stream", "none"],
    "what an acknowledgement waits for: the nodes and the second box, the nodes, or neither",
  ),
  STANDBY_LOST: text("alone:10", "without a standby: wait, or alone:N: go on after N seconds with the nodes alone"),
  STANDBY_TAKEOVER: choice(
    "auto",
    ["auto", "manual"],
    "auto: the standby takes over where no box is active; manual: only by an operator's command",
  ),
  STANDBY_REPLICAS: integer(3, 1, 5, "nodes that keep a copy; 1 only for trials"),
  STANDBY_MONITOR: optional(
    "the nodes' monitoring URLs, with commas: the start then refuses nodes that don't sync each write",
  ),
  SMS_WEBHOOK_URL: optional("gets text messages; without it they go to files of the data folder"),
});
export type Environment = Static<typeof Environment>;

const validator = Compile(Environment);

/** Applies defaults and checks types and bounds; an empty value counts as unset. @throws ConfigError */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const values: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries<TSchema>(Environment.properties)) {
    const value = env[name] === "" ? undefined : env[name];
    if (value !== undefined) checkWrapping(name, value);
    // What wasn't UTF-8 is lost already.
    if (value?.includes("\ufffd")) throw new ConfigError(`${name} must be text in UTF-8`);
    const { type, default: fallback } = schema as Rule;
    if (value === undefined) {
      if (fallback !== undefined) values[name] = fallback;
    } else {
      // A number in any other form stays text: the schema rejects it.
      values[name] = type === "integer" && /^\d+$/.test(value) ? Number(value) : value;
    }
  }
  if (validator.Check(values)) return values;
  const name = validator.Errors(values)[0]?.instancePath.slice(1) ?? "";
  throw new ConfigError(explain(name, env[name]));
}

/** Values that may hold a password or a key: no message repeats them. */
const SECRETS: readonly string[] = [
  "SMTP_URL",
  "SMS_WEBHOOK_URL",
  "SOCIAL_PROVIDERS",
  "STANDBY_NATS",
  "STANDBY_MONITOR",
  "STANDBY_SECRET",
];
/** What env files, editors and word processors leave around a value: quotes, white space, line ends, invisible characters. */
const WRAPPED =
  /^[\s\p{Cf}"'`\u201c-\u201f\u2018-\u201b\u00ab\u00bb]|[\s\p{Cf}"'`\u201c-\u201f\u2018-\u201b\u00ab\u00bb]$/u;
/** A sender's name may be in quotes, its address isn't. */
const QUOTED_NAME = /^"[^"]*" <[^"]*>$/;

/** @throws ConfigError where the value has quotes or white space around it, or more than one line */
function checkWrapping(name: string, value: string): void {
  const isWrapped = WRAPPED.test(value) && !(name === "MAIL_FROM" && QUOTED_NAME.test(value));
  const isBroken = /\p{Cc}/u.test(value) && !value.startsWith("{");
  if (!isWrapped && !isBroken) return;
  const shown = SECRETS.includes(name) ? "" : `, not ${JSON.stringify(value)}`;
  throw new ConfigError(`${name} must be one line without quotes or white space around it${shown}`);
}

/** Names that look like ours and are none, with the one that they may mean; null: only our prefix says so. */
export function misspelled(env: NodeJS.ProcessEnv): { readonly name: string; readonly meant: string | null }[] {
  const known = Object.keys(Environment.properties);
  const found: { name: string; meant: string | null }[] = [];
  for (const name of Object.keys(env)) {
    if (known.includes(name)) continue;
    const bare = name.toUpperCase().replace(PREFIX, "");
    const meant = known.find((each) => distance(bare, each) <= mostLettersOff(each)) ?? null;
    if (meant !== null || PREFIX.test(name.toUpperCase())) found.push({ name, meant });
  }
  return found;
}

const PREFIX = /^(PREDICTION_)?EXCHANGE_/;

/** Few letters make another word of a short one (HOME isn't HOST), and a plural of a long one. */
const mostLettersOff = ({ length }: string): number => (length < 8 ? 1 : length < 12 ? 2 : 3);

/** The number of letters to add, leave out or change between two names. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The keywords that our schemas use. */
interface Rule {
  readonly type?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
}

function explain(name: string, value: string | undefined): string {
  const rule = (Environment.properties as Record<string, Rule>)[name] ?? {};
  const wanted =
    rule.enum === undefined ? `an integer from ${rule.minimum} to ${rule.maximum}` : `one of ${rule.enum.join(", ")}`;
  return `${name} must be ${wanted}, not "${value}"`;
}
