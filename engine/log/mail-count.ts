/**
 * How many messages the gateway has posted to the log stage, and how many of them the stage has dealt with, in memory that
 * both share. Each word has one writer; they are 128 bytes apart.
 */
const POSTED = 0;
const DONE = 32;

export class MailCount {
  readonly buffer: SharedArrayBuffer;
  private readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(256)) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer);
  }

  /** Counts of messages; they wrap, only their differences have a meaning. */
  get posted(): number {
    return Atomics.load(this.words, POSTED);
  }

  /** Called only by the gateway, after it has posted a message. */
  post(): void {
    Atomics.add(this.words, POSTED, 1);
  }

  /** Messages that the log stage hasn't dealt with: written to the log, whether or not anybody may see it. */
  get waiting(): number {
    return (this.posted - Atomics.load(this.words, DONE)) | 0;
  }

  /** Called only by the log stage. @param done the messages that it has received */
  finish(done: number): void {
    Atomics.store(this.words, DONE, done);
  }
}
