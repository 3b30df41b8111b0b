/**
 * What the boxes of an exchange tell each other ten times a second over core NATS: nothing of it is stored, and nothing of it
 * decides who is active. The expected sequence does; beats are hints.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "@nats-io/transport-node";
import Type from "typebox";
import { systemClock } from "../../engine/util/clock.ts";
import type { NatsLink } from "./connection.ts";
import { contentOf } from "./core-message.ts";
import { RefusedSetup } from "./errors.ts";
import { BEAT_MS, CALL_TIMEOUT_MS, SUSPICION_MS, UNHEARD_MS } from "./limits.ts";
import { differing, type SettingPrints } from "./setting-prints.ts";
import { namesOf } from "./settings.ts";
import { BEAT_ROLES, type OtherBox, type ReplicationSettings } from "./types.ts";

const Content = Type.Object({
  /** Random, of the process. */
  instance: Type.String({ maxLength: 32 }),
  box: Type.String({ maxLength: 32 }),
  role: Type.Enum(BEAT_ROLES),
  epoch: Type.Integer({ minimum: 0 }),
  /** Of an active: the last batch that the stream has. Of a standby: the last one in its log. */
  batch: Type.Integer({ minimum: 0 }),
  /** The beginning of the batch's SHA-256, in hex; "" for none. */
  hash: Type.String({ maxLength: 64 }),
  /** Of its keys: KeyFiles.fingerprint. */
  keys: Type.String({ maxLength: 64 }),
  /** Its time when it sent this, ms since the epoch. */
  at: Type.Integer(),
  /** How clients reach the box directly. */
  url: Type.Union([Type.String({ maxLength: 200, pattern: "^https?://" }), Type.Null()]),
  /** The NATS node that it uses. */
  node: Type.String({ maxLength: 200 }),
  /** Of a standby: false where it hears no box that leads. */
  hears: Type.Optional(Type.Boolean()),
  /** Of the program, and fingerprints of the settings that both boxes must have alike. */
  version: Type.Optional(Type.String({ maxLength: 32 })),
  settings: Type.Optional(Type.Unknown()),
});
/** What a box says of itself. */
export type Beat = Type.Static<typeof Content>;
export type OwnBeat = Omit<Beat, "instance" | "box" | "keys" | "at" | "url" | "node" | "version" | "settings">;

/** How a hash is written in a beat. */
export const shortHash = (hash: Buffer | null): string => hash?.toString("hex", 0, 8) ?? "";

/** A box whose own beats come later than this hears nobody reliably, ms. */
const MAX_GAP_MS = 5 * BEAT_MS;

interface Heard {
  readonly beat: Beat;
  /** ms, monotonic */
  readonly at: number;
  /** How far its clock is ahead of ours, ms. */
  readonly clockMs: number;
}

interface BeatsOptions {
  readonly link: NatsLink;
  readonly settings: Pick<ReplicationSettings, "name" | "box" | "url" | "version">;
  /** What this box says of itself; null while it says nothing. */
  readonly own: () => OwnBeat | null;
  /** The fingerprint of its keys, and those of its settings. */
  readonly keys: () => string;
  readonly prints: SettingPrints;
  /** Called with each beat of another box. */
  readonly onBeat: (beat: Beat) => void;
}

export class Beats {
  /** Of the latest beat of each other process; an old one goes with its box. */
  private readonly heard = new Map<string, Heard>();
  private readonly instance = randomBytes(8).toString("hex");
  private readonly timer: NodeJS.Timeout;
  private readonly link: NatsLink;
  private readonly box: string;
  private readonly url: string | null;
  private readonly version: string;
  private readonly subject: string;
  private readonly callSubject: string;
  private readonly own: () => OwnBeat | null;
  private readonly keys: () => string;
  private readonly prints: SettingPrints;
  private readonly onBeat: (beat: Beat) => void;
  /** When this process heard itself, ms: its connection works. */
  private echoAt = Number.NEGATIVE_INFINITY;
  /** True where this process has heard another box, which hasn't said that it leaves. */
  hasCompany = false;
  /** Since when it has heard itself without a gap. */
  private heardSince = Number.POSITIVE_INFINITY;

  constructor({ link, settings, own, keys, prints, onBeat }: BeatsOptions) {
    const { name, box, url, version } = settings;
    this.link = link;
    this.version = version;
    this.keys = keys;
    this.prints = prints;
    this.box = box;
    this.url = url;
    this.own = own;
    this.onBeat = onBeat;
    const { beat, call } = namesOf(name);
    this.subject = `${beat}.${box}`;
    this.callSubject = call;
    link.nc.subscribe(`${beat}.*`, {
      callback: (error, message) => {
        if (error === null) this.receive(message);
      },
    });
    this.timer = setInterval(() => this.send(), BEAT_MS);
  }

  /** Says once more what this box is, and nothing from then on. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    this.send();
    await this.link.nc.flush();
  }

  /**
   * Resolves with the box that is active or about to be, or with null once this box would have heard it.
   * @throws RefusedSetup where another process has this box's name
   */
  async listen(): Promise<Beat | null> {
    const isAlone = await this.isAlone();
    this.answer();
    for (;;) {
      await this.link.connected();
      const namesake = [...this.heard.values()].find(({ beat }) => beat.box === this.box);
      if (namesake !== undefined) {
        throw new RefusedSetup(`another box runs under the name ${this.box}: give each one its own STANDBY_BOX`);
      }
      const heardMs = systemClock.elapsed() - this.heardSince;
      // Every box has said by then what it is.
      const leading = heardMs > 2 * BEAT_MS ? this.leading() : null;
      if (leading !== null) return leading;
      if (isAlone || heardMs > SUSPICION_MS) return null;
      await delay(BEAT_MS / 2);
    }
  }

  /** The active box with the latest epoch; null where none was heard for SUSPICION_MS. */
  active(): Beat | null {
    const active = this.current().filter(({ beat }) => beat.role === "active");
    return active.map(({ beat }) => beat).sort((a, b) => b.epoch - a.epoch)[0] ?? null;
  }

  /** The active box, or one that is about to be. */
  leading(): Beat | null {
    return this.active() ?? this.current().find(({ beat }) => beat.role === "taking_over")?.beat ?? null;
  }

  /** True once this box would have heard a box that leads, and heard none. */
  get isSilent(): boolean {
    const now = systemClock.elapsed();
    const hears = now - this.echoAt < MAX_GAP_MS && now - this.heardSince > SUSPICION_MS;
    return hears && this.leading() === null;
  }

  /** True where a standby was heard a moment ago, and heard a box that leads. */
  get hearsStandby(): boolean {
    return this.current(UNHEARD_MS).some(({ beat }) => beat.role === "standby" && beat.hears !== false);
  }

  /** True where a box that leads was heard a moment ago. */
  get hearsLeading(): boolean {
    return this.current(UNHEARD_MS).some(({ beat: { role } }) => role === "active" || role === "taking_over");
  }

  private current(ms = SUSPICION_MS): readonly Heard[] {
    const since = systemClock.elapsed() - ms;
    return [...this.heard.values()].filter(({ at }) => at > since);
  }

  /** The other boxes that are heard now. */
  others(): readonly OtherBox[] {
    const own = this.keys();
    return this.current().map(({ beat, clockMs }) => {
      const { box, role, url, node, epoch, batch, keys, version = null, settings } = beat;
      const settings_differ = differing(this.prints, settings);
      return {
        box,
        role,
        url,
        node,
        epoch,
        batch,
        version,
        keys_equal: keys === own,
        settings_differ,
        clock_ms: clockMs,
      };
    });
  }

  /** True while this box hears itself: what it doesn't hear isn't there. */
  get hearsItself(): boolean {
    return systemClock.elapsed() - this.echoAt < SUSPICION_MS;
  }

  /** Resolves with whether this box hears itself, now or soon. */
  async echo(): Promise<boolean> {
    for (let ms = 0; ms < SUSPICION_MS && !this.hearsItself; ms += BEAT_MS) await delay(BEAT_MS);
    return this.hearsItself;
  }

  /** Nobody takes calls: the nodes say so at once, where no box is connected to any of them. */
  private async isAlone(): Promise<boolean> {
    try {
      await this.link.nc.request(this.callSubject, "", { timeout: CALL_TIMEOUT_MS });
      return false;
    } catch (error) {
      return /no responders/i.test((error as Error).message);
    }
  }

  private answer(): void {
    this.link.nc.subscribe(this.callSubject, { callback: (_error, message) => void message.respond(this.box) });
  }

  private send(): void {
    if (this.link.nc.isClosed()) return;
    const own = this.own();
    if (own === null) return;
    const { instance, box, url, version, prints: settings } = this;
    const { node } = this.link;
    const beat: Beat = {
      instance,
      box,
      url,
      node,
      version,
      settings,
      keys: this.keys(),
      at: systemClock.now(),
      ...own,
    };
    this.link.nc.publish(this.subject, JSON.stringify(beat));
  }

  private receive(message: Msg): void {
    const beat = contentOf(Content, message);
    if (beat === null) return;
    const now = systemClock.elapsed();
    if (beat.instance === this.instance) {
      // What was said in a gap may have been missed.
      if (now - this.echoAt > MAX_GAP_MS) this.heardSince = now;
      this.echoAt = now;
      return;
    }
    for (const [instance, { at }] of this.heard) if (now - at > SUSPICION_MS) this.heard.delete(instance);
    // Whoever else is there is heard again.
    this.hasCompany = beat.role !== "leaving";
    this.heard.set(beat.instance, { beat, at: now, clockMs: beat.at - systemClock.now() });
    this.onBeat(beat);
  }
}
