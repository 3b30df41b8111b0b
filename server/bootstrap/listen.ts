/** Opens the port, and says where clients find the server. */
import type * as Uws from "uWebSockets.js";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { API_BASE } from "../http/route.ts";
import { namesOf } from "../replication/settings.ts";
import { type Config, urlOf } from "./config.ts";

/** Where clients find the server. With PORT=0 the port is part of it only once the server listens. */
export class PublicUrl {
  private url: string;

  /** @param url without a slash at its end */
  constructor(url: string) {
    this.url = url;
  }

  /** The site's URL. */
  readonly site = (): string => this.url;

  /** The base of the API's paths, which is also the audience of access tokens. */
  readonly api = (): string => this.url + API_BASE;

  /** Puts the port that the system chose in the place of port 0. */
  resolvePort(port: number): void {
    this.url = this.url.replace(/:0$/, `:${port}`);
  }
}

/** @throws ConfigError where the certificate or its key is invalid */
export function createApp({ tls }: Config, uws: typeof Uws): Uws.TemplatedApp {
  if (tls === null) return uws.App();
  try {
    return uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
  } catch {
    throw new ConfigError("TLS_CERT, TLS_KEY: not a certificate and its key in PEM");
  }
}

export interface Listening {
  /** Null with NETWORK=off: only the control socket accepts requests. */
  readonly socket: Uws.us_listen_socket | null;
  /** The open port, 0 with NETWORK=off. */
  readonly port: number;
}

/**
 * @param isShared another app of this user may listen on the port, too: `findFreePort` looks for one before the first
 * @throws ConfigError where the address or the port is unavailable
 */
export async function listen(
  config: Config,
  uws: typeof Uws,
  app: Uws.TemplatedApp,
  isShared = false,
): Promise<Listening> {
  if (!config.network) return { socket: null, port: 0 };
  const socket = await openPort(config, uws, app, isShared);
  return { socket, port: uws.us_socket_local_port(socket) };
}

const cannotListen = ({ host, port }: Config): ConfigError =>
  new ConfigError(`HOST, PORT: cannot listen on ${host}:${port}`);

/**
 * Resolves with the port, or the one that the system chose for 0.
 * @throws ConfigError where another program listens on it, which a shared one doesn't notice
 */
export function findFreePort(config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", () => reject(cannotListen(config)));
    probe.listen({ host: config.host, port: config.port, exclusive: true }, () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function openPort(
  config: Config,
  uws: typeof Uws,
  app: Uws.TemplatedApp,
  isShared: boolean,
): Promise<Uws.us_listen_socket> {
  const { host, port } = config;
  return new Promise((resolve, reject) => {
    const opened = (socket: Uws.us_listen_socket | false): void => {
      if (socket) resolve(socket);
      else reject(cannotListen(config));
    };
    // Without the exclusive option two servers would share the port and each respond to some of the requests. The
    // published types lack both the option and the call that takes it with a host.
    const { LIBUS_LISTEN_EXCLUSIVE_PORT } = uws as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number };
    const options = isShared ? 0 : LIBUS_LISTEN_EXCLUSIVE_PORT;
    type Listen = (host: string, port: number, options: number, opened: (socket: Uws.us_listen_socket) => void) => void;
    (app.listen as unknown as Listen).call(app, host, port, options, opened);
  });
}

/** Prints the addresses and paths that an operator needs after a start by hand, to stderr: stdout has the log's JSON lines. */
export function printGreeting(config: Config, publicUrl: string, port: number): void {
  const base = urlOf(config.tls !== null, config.host, port) + API_BASE;
  const token = join(config.dataDir, "demo-token-1");
  const lines = [
    `page       ${publicUrl}/   (operators: ${publicUrl}/desk)`,
    `API        ${base}   (try ${base}/markets)`,
    `WebSocket  ${base.replace(/^http/, "ws")}/ws`,
    `data       ${config.dataDir}   durability ${config.durability}`,
    ...copyLines(config),
    `mail       ${config.smtpUrl === null ? join(config.dataDir, "outbox") : "sent by SMTP"}`,
  ];
  if (existsSync(token)) lines.push(`tokens     cat ${token}   (demo-token-2: a second user to trade with)`);
  else lines.push('tokens     list users with their tokens in a SEED_FILE: docs/operations.md, "Configuration"');
  process.stderr.write(`\n${lines.join("\n")}\n\n`);
}

/** Where the log is copied to, and whether anything waits for that; none on a single box. */
function copyLines({ standby }: Config): string[] {
  if (standby === null) return [];
  const { ack, name, replicas } = standby;
  const wait = ack === "none" ? "acknowledgements don't wait for it" : "acknowledgements wait for it";
  return [`copy       stream ${namesOf(name).stream} on ${replicas} of ${standby.nodes.length} nodes   ${wait}`];
}
