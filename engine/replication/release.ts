/**
 * Up to which batch the log may be shown: the last one that every place has which the policy asks for. Pure; whoever owns it
 * says what happened, and when.
 */

/** Where an acknowledgement's batch must be, besides this box: in the stream and on the standby, in the stream, nowhere. */
export type AckPolicy = "standby" | "stream" | "none";

export interface ReleaseOptions {
  readonly policy: AckPolicy;
  /** How long a batch waits for the standby alone, ms; null: for ever. */
  readonly lostMs: number | null;
  /** Where the stream ends at the beginning. */
  readonly batch: number;
}

export class Release {
  private readonly options: ReleaseOptions;
  /** What the stream has now, and had before its last message. */
  private shipped: number;
  private shippedBefore: number;
  /** What the standby has, as far as it has the same. */
  private copied = 0;
  /** Since when the standby lacks something that the stream has, ms; null while it doesn't. */
  private lackingSince: number | null = null;
  private released: number;
  private isAlone: boolean;

  constructor(options: ReleaseOptions) {
    this.options = options;
    this.shipped = options.batch;
    this.shippedBefore = options.batch;
    this.released = options.batch;
    // Nobody has seen a standby yet.
    this.isAlone = options.policy === "standby" && options.lostMs !== null;
  }

  /** The last batch that may be shown. Never falls. */
  get batch(): number {
    const needed =
      this.options.policy === "standby" && !this.isAlone ? Math.min(this.shipped, this.copied) : this.shipped;
    this.released = Math.max(this.released, needed);
    return this.released;
  }

  /** True while the standby counts for nothing, because it is lost or hasn't caught up yet. */
  get alone(): boolean {
    return this.isAlone;
  }

  /** The last batch that the standby has. */
  get standby(): number {
    return this.copied;
  }

  /** The stream has the batches up to this one. @param now ms */
  ship(batch: number, now: number): void {
    this.shippedBefore = this.shipped;
    this.shipped = batch;
    if (this.copied < batch) this.lackingSince ??= now;
  }

  /** The standby has the batches up to this one, and they are the same. @param now ms */
  copy(batch: number, now: number): void {
    if (batch <= this.copied) return;
    this.copied = batch;
    this.lackingSince = batch < this.shipped ? now : null;
    // While messages follow each other, the standby is at the one before the last.
    if (batch >= this.shippedBefore) this.isAlone = false;
  }

  /** The standby stops in order: nothing waits for it, unless it must; returns true if that changed. */
  leave(): boolean {
    const { policy, lostMs } = this.options;
    if (policy !== "standby" || lostMs === null) return false;
    // Another one counts once it has caught up, even where nothing new comes.
    this.copied = 0;
    if (this.isAlone) return false;
    this.isAlone = true;
    return true;
  }

  /** Goes on alone where the standby has lacked something for too long; returns true if that changed. @param now ms */
  check(now: number): boolean {
    const { policy, lostMs } = this.options;
    const { lackingSince } = this;
    if (policy !== "standby" || lostMs === null || this.isAlone || lackingSince === null) return false;
    this.isAlone = now - lackingSince >= lostMs;
    return this.isAlone;
  }
}
