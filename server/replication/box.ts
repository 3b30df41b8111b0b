/** The connection, the stream and the other boxes, in either role. Owned by the replication thread. */

import { answerAsks, fetchKeys } from "./asks.ts";
import { type Beat, Beats, type OwnBeat } from "./beats.ts";
import type { NatsLink } from "./connection.ts";
import { Fenced } from "./errors.ts";
import { KeyFiles } from "./key-files.ts";
import { KEYS_CHECK_MS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import { Seal } from "./seal.ts";
import { LogStream } from "./stream.ts";
import type { ReplicationSettings } from "./types.ts";

const STARTING: OwnBeat = { role: "starting", epoch: 0, batch: 0, hash: "" };

export class Box {
  readonly link: NatsLink;
  readonly stream: LogStream;
  readonly beats: Beats;
  /** Rejects with Fenced once another box is active in a later epoch than this one. */
  readonly fenced: Promise<never>;
  private own: () => OwnBeat = () => STARTING;
  private onActive: (beat: Beat) => void = () => {};
  private onStandby: (beat: Beat) => void = () => {};
  private fence: (error: Fenced) => void = () => {};

  /** Its fingerprint, as of the last second. */
  keysPrint = "";
  readonly keys: KeyFiles;
  private readonly seal: Seal;
  private readonly say: Say;
  private readonly settings: ReplicationSettings;

  /** @param keyFolder with the files of keys/ */
  constructor(link: NatsLink, settings: ReplicationSettings, keyFolder: string, say: Say) {
    this.settings = settings;
    this.say = say;
    this.seal = new Seal(settings.secret, settings.name);
    this.keys = new KeyFiles(keyFolder, this.seal);
    this.lookAtKeys();
    setInterval(() => this.lookAtKeys(), KEYS_CHECK_MS).unref();
    this.link = link;
    this.stream = new LogStream(link, settings.name, settings.replicas, say);
    this.fenced = new Promise((_resolve, reject) => {
      this.fence = reject;
    });
    // It is awaited once this box is active.
    this.fenced.catch(() => {});
    this.beats = new Beats({
      ...{ link, settings },
      own: () => this.own(),
      keys: () => this.keysPrint,
      onBeat: (beat) => this.receive(beat),
    });
    answerAsks({ link, settings, seal: this.seal, keys: this.keys });
  }

  /** Replaces this box's keys with those of another. @throws Error with the reason, for an operator */
  async fetchKeys(from: string): Promise<void> {
    const { link, settings, seal, keys } = this;
    await fetchKeys({ link, settings, seal, keys }, from);
    this.lookAtKeys();
  }

  /** A file may go while the folder is read. */
  private lookAtKeys(): void {
    try {
      this.keysPrint = this.keys.fingerprint();
    } catch (error) {
      this.say("warn", `keys/ can't be read: ${(error as Error).message}`);
    }
  }

  /** This box is a standby. @param own what it says of itself @param onActive called with each beat of an active box */
  beStandby(own: () => OwnBeat, onActive: (beat: Beat) => void): void {
    this.own = own;
    this.onActive = onActive;
  }

  /** This box is about to be active. */
  beStarting(): void {
    this.beStandby(
      () => STARTING,
      () => {},
    );
  }

  /** This box is active. @param own what it says of itself @param onStandby called with each beat of a standby */
  beActive(own: () => OwnBeat, onStandby: (beat: Beat) => void): void {
    this.own = own;
    this.onStandby = onStandby;
  }

  private receive(beat: Beat): void {
    const { role, epoch } = this.own();
    if (beat.role === "standby") this.onStandby(beat);
    if (beat.role !== "active") return;
    if (role !== "active") this.onActive(beat);
    else if (beat.epoch > epoch) this.fence(new Fenced(`the box ${beat.box} is active, in epoch ${beat.epoch}`));
  }
}
