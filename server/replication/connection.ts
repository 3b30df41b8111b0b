/**
 * The connection to the NATS nodes, which comes back by itself for as long as the thread runs. Only this file, stream.ts
 * and publisher.ts know the NATS packages.
 */
import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { BlockList, isIPv6 } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, credsAuthenticator, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { RefusedSetup } from "./errors.ts";
import { API_TIMEOUT_MS, CONNECT_TIMEOUT_MS, MIN_PAYLOAD_BYTES, PING_MS, RECONNECT_MS } from "./limits.ts";
import { Reminder, type Say } from "./reminder.ts";
import type { ReplicationSettings } from "./types.ts";

export class NatsLink {
  readonly nc: NatsConnection;
  readonly manager: JetStreamManager;
  private isUp = true;
  private readonly listeners = new Set<() => void>();
  private readonly say: Say;

  private constructor(nc: NatsConnection, manager: JetStreamManager, say: Say) {
    this.nc = nc;
    this.manager = manager;
    this.say = say;
    void this.follow();
  }

  /** Resolves once a node accepts the connection. @throws RefusedSetup */
  static async open(settings: ReplicationSettings, say: Say): Promise<NatsLink> {
    if (settings.tls === null) await requirePrivate(settings.nodes);
    const options = optionsOf(settings);
    const reminder = new Reminder(say, false);
    for (;;) {
      try {
        const nc = await connect(options);
        const payload = nc.info?.max_payload ?? 0;
        if (payload < MIN_PAYLOAD_BYTES) {
          await nc.close();
          throw new RefusedSetup(`the nodes' max_payload is ${payload}: ${MIN_PAYLOAD_BYTES} or more is needed`);
        }
        say("info", `connected to the node ${nc.info?.server_name} at ${nc.getServer()}`);
        const manager = await jetstreamManager(nc, { checkAPI: false, timeout: API_TIMEOUT_MS });
        return new NatsLink(nc, manager, say);
      } catch (error) {
        if (error instanceof RefusedSetup) throw error;
        const { message } = error as Error;
        if (/authorization|authentication|credential/i.test(message) && !/timeout/i.test(message))
          throw new RefusedSetup(`the nodes refuse us: ${message}`);
        reminder.remind(`waiting for a NATS node: ${message} (${settings.nodes.join(", ")})`);
        await delay(RECONNECT_MS);
      }
    }
  }

  /** The node that the connection goes to. */
  get node(): string {
    return this.nc.info?.server_name ?? "";
  }

  /** Calls back whenever the connection breaks or is back, until the returned function is called. */
  onTurn(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Resolves while the connection stands, or once it does again. */
  async connected(): Promise<void> {
    while (!this.isUp) {
      await new Promise<void>((resolve) => {
        const forget = this.onTurn(() => {
          forget();
          resolve();
        });
      });
    }
  }

  /** Resolves with the reason once the connection has ended for good. */
  async ended(): Promise<string> {
    const error = await this.nc.closed();
    return error instanceof Error ? error.message : "it was closed";
  }

  private async follow(): Promise<void> {
    for await (const { type } of this.nc.status()) {
      if (type === "disconnect") this.turn(false);
      else if (type === "reconnect") this.turn(true);
    }
  }

  private turn(isUp: boolean): void {
    if (isUp === this.isUp) return;
    this.isUp = isUp;
    this.say(
      isUp ? "info" : "warn",
      isUp ? `connected to the node ${this.node} again` : "the connection to NATS broke",
    );
    for (const listener of [...this.listeners]) listener();
  }
}

function optionsOf({ nodes, user, password, credsFile, tls, box }: ReplicationSettings): NodeConnectionOptions {
  return {
    servers: [...nodes],
    name: `exchange ${box}`,
    // The box's own node is the first one: its leader's place is compared with it.
    noRandomize: true,
    // The nodes tell addresses of their own network, which this box may not reach.
    ignoreClusterUpdates: true,
    maxReconnectAttempts: -1,
    // A node that is slow to log us in counts as one that refuses us: two of these, days apart, would end the connection.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: 0,
    reconnectJitterTLS: 0,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: CONNECT_TIMEOUT_MS,
    ...(user === null ? {} : { user, pass: password ?? "" }),
    ...(credsFile === null ? {} : { authenticator: credsAuthenticator(readFileSync(credsFile)) }),
    ...(tls === null ? {} : { tls: tlsOf(tls) }),
  };
}

function tlsOf({ caFile, certFile, keyFile }: NonNullable<ReplicationSettings["tls"]>) {
  return {
    ...(caFile === null ? {} : { caFile }),
    ...(certFile === null ? {} : { certFile }),
    ...(keyFile === null ? {} : { keyFile }),
  };
}

/** Loopback, private, link-local and carrier-grade networks. */
const PRIVATE = new BlockList();
for (const [network, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
] as const) {
  PRIVATE.addSubnet(network, bits, "ipv4");
}
PRIVATE.addAddress("::1", "ipv6");
PRIVATE.addSubnet("fc00::", 7, "ipv6");
PRIVATE.addSubnet("fe80::", 10, "ipv6");

/** @throws RefusedSetup where a node's address is public: the log has every user's data */
async function requirePrivate(nodes: readonly string[]): Promise<void> {
  for (const node of nodes) {
    const host = node.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
    // A name that isn't known yet is looked up again at each attempt to connect.
    const addresses = await lookup(host, { all: true }).catch(() => []);
    const open = addresses.find(({ address }) => !PRIVATE.check(address, isIPv6(address) ? "ipv6" : "ipv4"));
    if (open === undefined) continue;
    throw new RefusedSetup(`${host} is the public address ${open.address}: use tls:// there`);
  }
}
