/**
 * The open port. An app of uWebSockets.js can't change its certificate, so a renewed one gets an app of its own, which takes
 * the port over; the connections of the one before go on. Knows no routes: whoever has some registers them on each app.
 */
import type * as Uws from "uWebSockets.js";
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { MS_PER_DAY } from "../../engine/money.ts";
import { systemClock } from "../../engine/util/clock.ts";
import type { Logger } from "../logger.ts";
import type { Config } from "./config.ts";
import { createApp, findFreePort, listen } from "./listen.ts";

/** How often the certificate's files are read, ms: a renewal is served within this. */
const CHECK_MS = 5_000;
/** A certificate that ends within this is a warning, once a day, ms. */
const WARNED_MS = 14 * MS_PER_DAY;

interface Certificate {
  /** Of both files. */
  readonly hash: string;
  /** ms */
  readonly endsAt: number;
}

export class Port {
  /** The open port; 0 with NETWORK=off. */
  number = 0;
  private readonly config: Config;
  private readonly uws: typeof Uws;
  private readonly logger: Logger;
  private readonly apps: Uws.TemplatedApp[] = [];
  private readonly registrations: ((app: Uws.TemplatedApp) => void)[] = [];
  private socket: Uws.us_listen_socket | null = null;
  private timer: NodeJS.Timeout | null = null;
  private isOpen = false;
  /** What is served; null without TLS. */
  private certificate: Certificate | null = null;
  /** Why the files can't be used, as the last line said. */
  private refused = "";
  private warnedAt = Number.NEGATIVE_INFINITY;

  /** @throws ConfigError where the certificate or its key is invalid */
  constructor(config: Config, uws: typeof Uws, logger: Logger) {
    this.config = config;
    this.uws = uws;
    this.logger = logger;
    this.apps.push(createApp(config, uws));
  }

  /** Registers routes on the app, and on each that follows. */
  onApp(register: (app: Uws.TemplatedApp) => void): void {
    this.registrations.push(register);
    for (const app of this.apps) register(app);
  }

  /** @throws ConfigError where the address or the port is unavailable */
  async open(): Promise<void> {
    const { config } = this;
    const isShared = config.tls !== null && config.network;
    await this.listen(this.apps[0]!, isShared ? { ...config, port: await findFreePort(config) } : config);
    this.isOpen = true;
    if (!isShared) return;
    await this.check();
    this.checkLater();
  }

  /** When the certificate ends, ms; null without one. */
  get certificateEndsAt(): number | null {
    return this.certificate?.endsAt ?? null;
  }

  /** Sends the message to the topic's subscribers, whichever app they are connected to. */
  publish(topic: string, message: string | Uint8Array, isBinary: boolean): void {
    for (const app of this.apps) app.publish(topic, message, isBinary);
  }

  /** Accepts no connection any more; those that are open go on. */
  stopListening(): void {
    this.isOpen = false;
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.socket !== null) this.uws.us_listen_socket_close(this.socket);
    this.socket = null;
  }

  /** Ends all connections. */
  close(): void {
    this.stopListening();
    for (const app of this.apps) app.close();
  }

  private async listen(app: Uws.TemplatedApp, config: Config): Promise<void> {
    const { socket, port } = await listen(config, this.uws, app, config.tls !== null);
    this.socket = socket;
    this.number = port;
  }

  private checkLater(): void {
    if (!this.isOpen) return;
    this.timer = setTimeout(() => void this.check().then(() => this.checkLater()), CHECK_MS);
    this.timer.unref();
  }

  private async check(): Promise<void> {
    const found = await this.read().catch((error: Error) => this.refuse(error));
    if (!this.isOpen || found === null) return;
    this.certificate ??= found;
    if (found.hash !== this.certificate.hash) await this.renew(found);
    this.warn(this.certificate);
  }

  /** @throws Error where the files aren't a certificate and its key: they may be written just now */
  private async read(): Promise<Certificate> {
    const { certFile, keyFile } = this.config.tls!;
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    const hash = createHash("sha256").update(cert).update(key).digest("hex");
    if (hash !== this.certificate?.hash) createSecureContext({ cert, key });
    return { hash, endsAt: Date.parse(new X509Certificate(cert).validTo) };
  }

  private refuse({ message }: Error): null {
    if (message !== this.refused) this.logger.warn({ error: message }, "the certificate's files can't be used");
    this.refused = message;
    return null;
  }

  /** A new app takes the port over: for a moment both listen. */
  private async renew(found: Certificate): Promise<void> {
    try {
      const app = createApp(this.config, this.uws);
      for (const register of this.registrations) register(app);
      const before = this.socket;
      await this.listen(app, { ...this.config, port: this.number });
      this.apps.push(app);
      if (before !== null) this.uws.us_listen_socket_close(before);
      if (!this.isOpen) return this.stopListening();
      this.certificate = found;
      this.refused = "";
      this.logger.info({ ends_at: new Date(found.endsAt).toISOString() }, "the renewed certificate is served");
    } catch (error) {
      this.refuse(error as Error);
    }
  }

  private warn({ endsAt }: Certificate): void {
    const now = systemClock.now();
    if (endsAt > now + WARNED_MS || systemClock.elapsed() < this.warnedAt + MS_PER_DAY) return;
    this.warnedAt = systemClock.elapsed();
    const text =
      endsAt > now ? "the certificate ends soon: renew it" : "the certificate has expired: clients refuse it";
    this.logger.warn({ ends_at: new Date(endsAt).toISOString() }, text);
  }
}
