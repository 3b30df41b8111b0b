/** The settings of a second box, STANDBY_*: checks what environment.ts can't. Without STANDBY_NATS there is none. */
import { hostname } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { ConfigError } from "../errors.ts";
import type { ReplicationSettings } from "../replication/types.ts";
import { Environment } from "./environment.ts";
import { readFileName } from "./file-name.ts";

const NAME = /^[a-z0-9-]{1,32}$/;
const NAME_RULE = "must have 1 to 32 characters of a-z, 0-9 and -";
const DEFAULT_PORT = 4222;
const MIN_SECRET = 32;

/** What is in force where the environment alone doesn't say it: it depends on others, or is in a file. */
export type InForce = Readonly<
  Record<"PUBLIC_URL" | "REQUIRE_OPERATOR_SECOND_FACTOR" | "DEPOSIT_INSTRUCTIONS", string | null>
>;

/** Null on a single box. @throws ConfigError */
export function readStandby(given: Environment, inForce: InForce): ReplicationSettings | null {
  if (given.STANDBY_NATS === undefined) return null;
  const { nodes, isTls, user, password } = readNodes(given.STANDBY_NATS);
  const [caFile, certFile, keyFile, credsFile] = FILES.map((name) => readFileName(name, given[name]));
  if ((certFile === null) !== (keyFile === null)) {
    throw new ConfigError("STANDBY_NATS_CERT and STANDBY_NATS_KEY go together: set both");
  }
  if (!isTls && (caFile ?? certFile) !== null) {
    throw new ConfigError("STANDBY_NATS must begin with tls:// where a certificate is set");
  }
  if (credsFile !== null && user !== null) {
    throw new ConfigError("STANDBY_NATS must have no user where STANDBY_NATS_CREDS is set");
  }
  return {
    nodes,
    user,
    password,
    credsFile: credsFile ?? null,
    tls: isTls ? { caFile: caFile ?? null, certFile: certFile ?? null, keyFile: keyFile ?? null } : null,
    secret: readSecret(given.STANDBY_SECRET),
    name: readName("STANDBY_NAME", given.STANDBY_NAME),
    box: given.STANDBY_BOX === undefined ? nameOfHost() : readName("STANDBY_BOX", given.STANDBY_BOX),
    url: readUrl(given.STANDBY_URL),
    ack: given.STANDBY_ACK,
    lostMs: readLost(given.STANDBY_LOST),
    takeover: given.STANDBY_TAKEOVER,
    replicas: given.STANDBY_REPLICAS,
    monitors: readMonitors(given.STANDBY_MONITOR),
    version: packageJson.version,
    shared: sharedOf(given, inForce),
  };
}

/** What a box has for itself. The boxes compare all others. */
const OF_A_BOX: ReadonlySet<string> = new Set<keyof Environment>([
  ...(["NETWORK", "HOST", "PORT", "TLS_CERT", "TLS_KEY", "DATA_DIR", "ENGINE_THREADS", "SEED_FILE"] as const),
  ...(["STANDBY_NATS", "STANDBY_NATS_CREDS", "STANDBY_NATS_CA", "STANDBY_NATS_CERT", "STANDBY_NATS_KEY"] as const),
  ...(["STANDBY_SECRET", "STANDBY_NAME", "STANDBY_BOX", "STANDBY_URL", "STANDBY_MONITOR", "LOG_LEVEL"] as const),
]);

/** By name; "" for what isn't set. */
function sharedOf(given: Environment, inForce: InForce): Record<string, string> {
  const values = { ...given, ...inForce };
  const names = Object.keys(Environment.properties).filter((name) => !OF_A_BOX.has(name));
  return Object.fromEntries(names.map((name) => [name, String(values[name as keyof Environment] ?? "")]));
}

const FILES = ["STANDBY_NATS_CA", "STANDBY_NATS_CERT", "STANDBY_NATS_KEY", "STANDBY_NATS_CREDS"] as const;

function readName(variable: string, value: string): string {
  if (!NAME.test(value)) throw new ConfigError(`${variable} ${NAME_RULE}, not "${value}"`);
  return value;
}

/** No message repeats it. */
function readSecret(value: string | undefined): string {
  if (value === undefined) {
    throw new ConfigError(
      "STANDBY_SECRET is required with STANDBY_NATS, the same on both boxes: openssl rand -base64 33 makes one",
    );
  }
  if (value.length < MIN_SECRET) throw new ConfigError(`STANDBY_SECRET must have ${MIN_SECRET} characters or more`);
  return value;
}

/** How long a batch may wait for the standby, ms; null: for ever. */
function readLost(value: string): number | null {
  if (value === "wait") return null;
  const seconds = Number(/^alone:(\d{1,4})$/.exec(value)?.[1] ?? 0);
  if (seconds < 1 || seconds > 3_600) {
    throw new ConfigError('STANDBY_LOST must be "wait", or "alone:N" with a number of seconds from 1 to 3600');
  }
  return seconds * 1_000;
}

/** Without a slash at its end. */
function readUrl(value: string | undefined): string | null {
  if (value === undefined) return null;
  const url = /^https?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null;
  if (url === null || url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new ConfigError(`STANDBY_URL must be the address of this box alone, such as https://a.example.com`);
  }
  return url.origin;
}

/** The name of the machine, as far as a box may have it. */
function nameOfHost(): string {
  const name = hostname()
    .toLowerCase()
    .split(".")[0]!
    .replaceAll(/[^a-z0-9-]/g, "-")
    .slice(0, 32);
  return name === "" ? "box" : name;
}

/** The value may hold a password: no message repeats it. */
function readNodes(value: string) {
  const fail = (what: string): ConfigError => new ConfigError(`STANDBY_NATS ${what}`);
  const urls = value.split(",").map((url) => url.trim());
  const parsed = urls.map((url) => {
    const text = url.includes("://") ? url : `nats://${url}`;
    // A scheme of its own would hide the port from URL's checks.
    const generic = text.replace(/^(nats|tls):\/\//, "http://");
    if (!/^(nats|tls):\/\//.test(text) || !URL.canParse(generic)) {
      throw fail(
        "must be URLs of NATS nodes with commas between them, such as nats://10.0.0.1:4222,nats://10.0.0.2:4222",
      );
    }
    const { hostname: host, port, username, password, pathname, search, hash } = new URL(generic);
    if (pathname !== "/" || search !== "" || hash !== "") throw fail("must have nothing behind the ports");
    const explicit = port === "" ? (/:80$/.test(text) ? 80 : DEFAULT_PORT) : port;
    const [user, secret] = [decoded(username), decoded(password)];
    if (user === null || secret === null)
      throw fail("has a % in its user or password that begins no escape: write %25");
    const isTls = text.startsWith("tls:");
    return { node: `${host}:${explicit}`, isTls, user: user === "" ? null : user, password: secret };
  });
  const [first] = parsed;
  for (const { isTls, user, password } of parsed) {
    if (isTls !== first!.isTls) throw fail("must use tls:// for all nodes or for none");
    if (user !== first!.user || password !== first!.password) throw fail("must have the same user for all nodes");
  }
  if (new Set(parsed.map(({ node }) => node)).size < parsed.length) throw fail("names a node twice");
  const { isTls, user, password } = first!;
  return { nodes: parsed.map(({ node }) => node), isTls, user, password: user === null ? null : password };
}

/** Null where an escape is wrong. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function readMonitors(value: string | undefined): readonly string[] {
  if (value === undefined) return [];
  return value.split(",").map((url) => {
    const text = url.trim();
    if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
      throw new ConfigError(
        `STANDBY_MONITOR must be the nodes' monitoring URLs with commas between them, such as http://10.0.0.1:8222`,
      );
    }
    if (new URL(text).username !== "") throw new ConfigError("STANDBY_MONITOR must have no user names");
    return text;
  });
}
