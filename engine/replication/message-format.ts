/**
 * The layout of a message that carries the log to other boxes, and the only place that knows its offsets. No I/O.
 *
 * Little-endian. Doubles hold integers below 2^53.
 *
 *   byte  0        4         6      7       8       16            24           32       36     38    40
 *         "PXS1"   version   kind   flags   epoch   first batch   last batch   bodies   part   of    then each body:
 *         u32      u16       u8     u8      f64     f64           f64          u32      u16    u16   u32 length, bytes
 *
 *   kind 0  base: an epoch begins, or goes on without a batch; exchange number (f64), the last batch in the stream (f64) and its
 *           SHA-256, and 16 random bytes of the process, so that no two boxes send the same
 *        1  batches: whole batches in ascending order
 *        2  part: a slice of one batch that is larger than a message. Parts that the rest doesn't follow are void
 *        3  resign: the epoch is over, and nothing of it follows; as a base, and 32 bytes with the name of the box that is to
 *           begin the next one, in ASCII, filled up with zeros
 *
 * A body is a batch as journal.db has it (log/batch-format.ts).
 */
import { HASH_BYTES } from "../log/batch-format.ts";
import { assert } from "../util/assert.ts";

const MAGIC = 0x31535850;
const VERSION = 1;
export const MESSAGE_HEADER_BYTES = 40;
const AT_VERSION = 4;
const AT_KIND = 6;
const AT_FLAGS = 7;
const AT_EPOCH = 8;
const AT_FIRST = 16;
const AT_LAST = 24;
const AT_BODIES = 32;
const AT_PART = 36;
const AT_PARTS = 38;
/** Of a base: what only one process sends. */
export const NONCE_BYTES = 16;
const BASE_BYTES = 16 + HASH_BYTES + NONCE_BYTES;
/** Of a resignation: the longest name of a box. */
const NAME_BYTES = 32;

export const MessageKind = { base: 0, batches: 1, part: 2, resign: 3 } as const;
export type MessageKind = (typeof MessageKind)[keyof typeof MessageKind];

/** A message is at most this long, unless a node would take less. */
export const MAX_MESSAGE_BYTES = 512 * 1024;
/** The most parts that a batch may have. */
const MAX_PARTS = 0xffff;

/** What came from elsewhere is no message of this format. */
export class BadMessage extends Error {}

/** Where a log begins or ends. */
export interface LogPosition {
  readonly exchange: number;
  readonly batch: number;
  /** The SHA-256 of its body. */
  readonly hash: Buffer;
}

export interface Message {
  readonly kind: MessageKind;
  /** Rises by 1 with each takeover. */
  readonly epoch: number;
  /** The first and the last batch that it has anything of. */
  readonly first: number;
  readonly last: number;
  /** The slice and the number of slices of the batch; 1 of 1 for any other kind. */
  readonly part: number;
  readonly parts: number;
  /** Whole batches, or the one slice. Views of the message. */
  readonly bodies: readonly Buffer[];
  /** Where the stream is with it; null but for a base and a resignation. */
  readonly base: LogPosition | null;
  /** The box that is to begin the next epoch; null but for a resignation. */
  readonly successor: string | null;
}

/** How the layout's constants relate. Called once at startup. */
export function assertMessageLayout(): void {
  const doubles = [AT_EPOCH, AT_FIRST, AT_LAST, AT_BODIES];
  assert(
    doubles.every((at, i) => at === AT_EPOCH + 8 * i),
    "the header's doubles follow each other",
  );
  assert(AT_FLAGS === AT_KIND + 1 && AT_EPOCH === AT_FLAGS + 1, "the header has no gap before its doubles");
  assert(AT_PARTS + 2 === MESSAGE_HEADER_BYTES && AT_PART + 2 === AT_PARTS, "the parts end the header");
}

/** The message that an epoch begins with. @param nonce of the process */
export function packBase(epoch: number, { exchange, batch, hash }: LogPosition, nonce: Buffer): Buffer {
  assert(hash.length === HASH_BYTES && nonce.length === NONCE_BYTES, "a position has a hash, a process a nonce");
  const message = header(MessageKind.base, epoch, batch, batch, BASE_BYTES);
  message.writeDoubleLE(exchange, MESSAGE_HEADER_BYTES);
  message.writeDoubleLE(batch, MESSAGE_HEADER_BYTES + 8);
  hash.copy(message, MESSAGE_HEADER_BYTES + 16);
  nonce.copy(message, MESSAGE_HEADER_BYTES + 16 + HASH_BYTES);
  return message;
}

/** The message that an epoch ends with. @param successor the box that is to begin the next one */
export function packResign(epoch: number, end: LogPosition, nonce: Buffer, successor: string): Buffer {
  assert(successor.length > 0 && successor.length <= NAME_BYTES, "a box has a short name");
  const name = Buffer.alloc(NAME_BYTES);
  name.write(successor, "latin1");
  const message = Buffer.concat([packBase(epoch, end, nonce), name]);
  message.writeUInt8(MessageKind.resign, AT_KIND);
  return message;
}

/** @param bodies of batches that follow each other, from `first` on */
export function packBatches(epoch: number, first: number, bodies: readonly Buffer[]): Buffer {
  assert(bodies.length > 0, "a message has a batch");
  const length = bodies.reduce((sum, body) => sum + 4 + body.length, 0);
  const message = header(MessageKind.batches, epoch, first, first + bodies.length - 1, length);
  message.writeUInt32LE(bodies.length, AT_BODIES);
  let at = MESSAGE_HEADER_BYTES;
  for (const body of bodies) at = writeBody(message, body, at);
  assert(at === message.length, "a message is the sum of its bodies");
  return message;
}

/** The messages of one batch that is larger than a message. @param most bytes of a message */
export function packParts(epoch: number, batch: number, body: Buffer, most: number): Buffer[] {
  const room = most - MESSAGE_HEADER_BYTES - 4;
  const parts = Math.ceil(body.length / room);
  assert(room > 0 && parts > 1 && parts <= MAX_PARTS, "a batch has few parts");
  return Array.from({ length: parts }, (_, i) => {
    const slice = body.subarray(i * room, (i + 1) * room);
    const message = header(MessageKind.part, epoch, batch, batch, 4 + slice.length);
    message.writeUInt32LE(1, AT_BODIES);
    message.writeUInt16LE(i + 1, AT_PART);
    message.writeUInt16LE(parts, AT_PARTS);
    writeBody(message, slice, MESSAGE_HEADER_BYTES);
    return message;
  });
}

/** The bytes that a body takes of a message. */
export const bytesOfBody = (body: Buffer): number => 4 + body.length;

/** @throws BadMessage */
export function readMessage(message: Buffer): Message {
  if (message.length < MESSAGE_HEADER_BYTES || message.readUInt32LE(0) !== MAGIC) {
    throw new BadMessage("not a message of an exchange's log");
  }
  const version = message.readUInt16LE(AT_VERSION);
  if (version !== VERSION) throw new BadMessage(`the message has format ${version}, this program reads ${VERSION}`);
  const kind = message.readUInt8(AT_KIND) as MessageKind;
  if (!(Object.values(MessageKind) as number[]).includes(kind)) {
    throw new BadMessage(`this program knows no message of kind ${kind}: a newer one wrote it`);
  }
  const [epoch, first, last] = [AT_EPOCH, AT_FIRST, AT_LAST].map((at) => message.readDoubleLE(at));
  const part = message.readUInt16LE(AT_PART);
  const parts = message.readUInt16LE(AT_PARTS);
  const isPosition = kind === MessageKind.base || kind === MessageKind.resign;
  const bodies = isPosition ? [] : bodiesOf(message);
  const read = { kind, epoch: epoch!, first: first!, last: last!, part, parts, bodies };
  checkMessage(read);
  const successor = kind === MessageKind.resign ? successorOf(message) : null;
  return { ...read, base: isPosition ? baseOf(message, successor !== null) : null, successor };
}

type Checked = Omit<Message, "base" | "successor">;

function checkMessage({ kind, epoch, first, last, part, parts, bodies }: Checked): void {
  const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
  const isWhole = [epoch, first, last].every(isCount) && first <= last;
  const isPart =
    kind === MessageKind.part ? part <= parts && first === last && bodies.length === 1 : part === 1 && parts === 1;
  const hasAll = kind !== MessageKind.batches || bodies.length === last - first + 1;
  if (!isWhole || !isPart || part < 1 || !hasAll) throw new BadMessage("the message contradicts itself");
}

function bodiesOf(message: Buffer): Buffer[] {
  const bodies: Buffer[] = [];
  let at = MESSAGE_HEADER_BYTES;
  for (let left = message.readUInt32LE(AT_BODIES); left > 0; left--) {
    if (at + 4 > message.length) throw new BadMessage("the message is cut short");
    const end = at + 4 + message.readUInt32LE(at);
    if (end > message.length) throw new BadMessage("the message is cut short");
    bodies.push(message.subarray(at + 4, end));
    at = end;
  }
  if (at !== message.length) throw new BadMessage("the message is longer than its bodies");
  return bodies;
}

/** @param isResign true where a name follows */
function baseOf(message: Buffer, isResign: boolean): LogPosition {
  const bytes = BASE_BYTES + (isResign ? NAME_BYTES : 0);
  if (message.length !== MESSAGE_HEADER_BYTES + bytes) throw new BadMessage("the message is no base");
  const at = MESSAGE_HEADER_BYTES;
  const hash = Buffer.from(message.subarray(at + 16, at + 16 + HASH_BYTES));
  return { exchange: message.readDoubleLE(at), batch: message.readDoubleLE(at + 8), hash };
}

function successorOf(message: Buffer): string {
  const text = message.toString(
    "latin1",
    MESSAGE_HEADER_BYTES + BASE_BYTES,
    MESSAGE_HEADER_BYTES + BASE_BYTES + NAME_BYTES,
  );
  const name = /^([a-z0-9-]{1,32})\0*$/.exec(text)?.[1];
  if (name === undefined) throw new BadMessage("the message names no box");
  return name;
}

function header(kind: MessageKind, epoch: number, first: number, last: number, bytes: number): Buffer {
  const message = Buffer.alloc(MESSAGE_HEADER_BYTES + bytes);
  message.writeUInt32LE(MAGIC, 0);
  message.writeUInt16LE(VERSION, AT_VERSION);
  message.writeUInt8(kind, AT_KIND);
  message.writeDoubleLE(epoch, AT_EPOCH);
  message.writeDoubleLE(first, AT_FIRST);
  message.writeDoubleLE(last, AT_LAST);
  message.writeUInt16LE(1, AT_PART);
  message.writeUInt16LE(1, AT_PARTS);
  return message;
}

/** Returns the body's end. */
function writeBody(message: Buffer, body: Buffer, at: number): number {
  message.writeUInt32LE(body.length, at);
  body.copy(message, at + 4);
  return at + 4 + body.length;
}
