/** Why the log can't be copied any further: an operator has to know which. */

/** Something has to be set up differently before a start. */
export class RefusedSetup extends Error {}

/** Another box has written to the stream: this one may acknowledge nothing more. */
export class Fenced extends Error {}

/** The stream lost what it had acknowledged, or is gone. */
export class BrokenStream extends Error {}
