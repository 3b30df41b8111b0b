/** The connection, the stream and the other boxes, in either role. Owned by the replication thread. */

import { answerAsks, ask, type Granter } from "./asks.ts";
import { type Beat, Beats, type OwnBeat } from "./beats.ts";
import type { NatsLink } from "./connection.ts";
import { Fenced } from "./errors.ts";
import { KeyFiles } from "./key-files.ts";
import { KEYS_CHECK_MS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import { Seal } from "./seal.ts";
import { printSettings } from "./setting-prints.ts";
import { LogStream } from "./stream.ts";
import type { ReplicationSettings } from "./types.ts";

const STARTING: OwnBeat = { role: "starting", epoch: 0, batch: 0, hash: "" };

/** What an active does with beats. */
interface ActiveSide {
  /** What it says of itself; null while it is silent. */
  readonly own: () => OwnBeat | null;
  /** Called with each beat of a standby. */
  readonly onStandby: (beat: Beat) => void;
  /** Called with each beat of a box that stops in order. */
  readonly onLeaving: (beat: Beat) => void;
  /** Called when a standby asks this box to resign, or to make a copy of its files. */
  readonly resign: Granter;
  readonly copy: Granter;
}

const refuse: Granter = () => {
  throw new Error("it isn't active");
};

export class Box {
  readonly link: NatsLink;
  readonly stream: LogStream;
  readonly beats: Beats;
  /** Rejects with Fenced once another box is active in a later epoch than this one. */
  readonly fenced: Promise<never>;
  /** That this box leads; null where it doesn't. */
  private epoch: number | null = null;
  private own: () => OwnBeat | null = () => STARTING;
  private onActive: (beat: Beat) => void = () => {};
  private onStandby: (beat: Beat) => void = () => {};
  private onLeaving: (beat: Beat) => void = () => {};
  private fence: (error: Fenced) => void = () => {};
  private grantResign: Granter = refuse;
  private grantCopy: Granter = refuse;

  /** What speaks against the standby's taking over, for an operator; null where nothing does. */
  obstacle: () => string | null = () => "this box is starting";
  /** Its fingerprint, as of the last second. */
  keysPrint = "";
  readonly keys: KeyFiles;
  readonly seal: Seal;
  readonly settings: ReplicationSettings;
  private readonly say: Say;

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
      prints: printSettings(settings.shared, this.seal),
      onBeat: (beat) => this.receive(beat),
    });
    answerAsks({ link, settings, seal: this.seal }, "ask", {
      keys: (_ask, context) => this.sealedKeys(context),
      resign: (resign, context) => this.grantResign(resign, context),
      copy: (copy, context) => this.grantCopy(copy, context),
    });
  }

  /** Replaces this box's keys with those of another. @throws Error with the reason, for an operator */
  async fetchKeys({ box, epoch }: Pick<Beat, "box" | "epoch">): Promise<void> {
    const { response, context } = await ask(this, { what: "keys", box, epoch });
    const aside = this.keys.replace(response, context);
    for (const path of aside)
      this.say("warn", `the box ${box} lacks a key of second factors that this box had: it is kept in ${path}`);
    this.lookAtKeys();
  }

  /** Asks the active box to resign in favor of this one. @throws Error with why it doesn't, for an operator */
  async askToResign({ box, epoch }: Pick<Beat, "box" | "epoch">): Promise<void> {
    await ask(this, { what: "resign", box, epoch });
  }

  private sealedKeys(context: string): Buffer {
    try {
      return this.keys.sealed(context);
    } catch (error) {
      throw new Error(`its keys/ can't be read: ${(error as Error).message}`);
    }
  }

  /** A file may go while the folder is read. */
  lookAtKeys(): void {
    try {
      this.keysPrint = this.keys.fingerprint();
    } catch (error) {
      this.say("warn", `keys/ can't be read: ${(error as Error).message}`);
    }
  }

  /** This box is a standby. @param own what it says of itself @param onActive called with each beat of an active box */
  beStandby(own: () => OwnBeat | null, onActive: (beat: Beat) => void): void {
    this.own = own;
    this.onActive = onActive;
    this.onStandby = () => {};
    this.onLeaving = () => {};
    this.grantResign = refuse;
    this.grantCopy = refuse;
    this.epoch = null;
  }

  /** This box is about to be active. @param isThere false while its gateway hangs: then it says nothing */
  beTakingOver(isThere: () => boolean): void {
    this.beNothing(() => (isThere() ? { ...STARTING, role: "taking_over" } : null));
  }

  /** This box has resigned, or stops following. */
  beGone(): void {
    this.beNothing(() => ({ ...STARTING, role: "leaving" }));
  }

  private beNothing(own: () => OwnBeat | null): void {
    this.beStandby(own, () => {});
  }

  /** This box leads, in this epoch. */
  beActive(epoch: number, { own, onStandby, onLeaving, resign, copy }: ActiveSide): void {
    this.epoch = epoch;
    this.own = own;
    this.onStandby = onStandby;
    this.onLeaving = onLeaving;
    this.grantResign = resign;
    this.grantCopy = copy;
  }

  private receive(beat: Beat): void {
    if (beat.role === "standby") this.onStandby(beat);
    else if (beat.role === "leaving") this.onLeaving(beat);
    if (beat.role !== "active") return;
    if (this.epoch === null) this.onActive(beat);
    else if (beat.epoch > this.epoch) this.fence(new Fenced(`the box ${beat.box} is active, in epoch ${beat.epoch}`));
  }
}
