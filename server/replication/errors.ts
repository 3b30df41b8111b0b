/** Why the log can't be copied any further: an operator has to know which. */

/** Something has to be set up differently before a start. */
export class RefusedSetup extends Error {}

/** The stream has another log than this box: they went on separately. */
export class OtherLog extends RefusedSetup {}

/** Another box became active while this one began to. */
export class Overtaken extends RefusedSetup {}

/** A message that the stream had: it was the oldest, and the stream is full. */
export class RemovedMessage extends RefusedSetup {}

/** Another box has written to the stream: this one may acknowledge nothing more. */
export class Fenced extends Error {}

/** The place that a message was to have has another one. */
export class OtherMessage extends Error {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    super("the stream has another message there");
    this.bytes = bytes;
  }
}

/** The stream lost what it had acknowledged, or is gone. */
export class BrokenStream extends Error {}
