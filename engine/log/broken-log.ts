/** The error of a log that lacks a batch, or has one that doesn't belong there. Its message is one line for an operator. */
export class BrokenLog extends Error {}
