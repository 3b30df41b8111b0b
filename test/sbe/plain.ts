/**
 * Messages of the binary protocol as plain objects, encoded and decoded by the schema alone: the slow, obvious counterpart
 * of the generated code.
 */
import { BYTES, type Field, type FieldType, type Layout, lengthIn, type Message, type Schema } from "./schema.ts";

/** A number in decimal digits, an enumeration's word, a set's words, or null. */
export type Value = string | null | readonly string[];
export type Values = Readonly<Record<string, Value>>;

export interface PlainMessage {
  readonly template: string;
  readonly header: { readonly index: string | null; readonly rateRemaining: string | null; readonly id: string | null };
  readonly fields: Values;
  readonly groups: Readonly<Record<string, readonly Values[]>>;
  readonly texts: Readonly<Record<string, string | null>>;
}

/** What an encoder of another version sends. */
export interface Variant {
  readonly version?: number;
  /** Bytes more or fewer than the block has. */
  readonly blockChange?: number;
}

const UNIT = 8;
const DIMENSION_BYTES = 4;

export function messageNamed(schema: Schema, name: string): Message {
  const found = schema.messages.find((message) => message.name === name);
  if (found === undefined) throw new Error(`no message is called ${name}`);
  return found;
}

export function encodeMessage(schema: Schema, plain: PlainMessage, variant: Variant = {}): Buffer {
  const message = messageNamed(schema, plain.template);
  const { version = schema.version, blockChange = 0 } = variant;
  const has = ({ since }: { readonly since: number }): boolean => since <= version;
  const block = encodeLayout(message, plain.fields, version);
  const length = block.length + blockChange;
  const parts = [blockChange > 0 ? Buffer.concat([block, Buffer.alloc(blockChange, 0xa5)]) : block.subarray(0, length)];
  for (const group of message.groups.filter(has)) {
    const entries = plain.groups[group.name] ?? [];
    const dimension = Buffer.alloc(DIMENSION_BYTES);
    dimension.writeUInt16LE(lengthIn(group, version), 0);
    dimension.writeUInt16LE(entries.length, 2);
    parts.push(dimension, ...entries.map((entry) => encodeLayout(group, entry, version)));
  }
  for (const { name, prefix } of message.texts.filter(has)) {
    const text = Buffer.from(plain.texts[name] ?? "");
    const size = Buffer.alloc(prefix);
    size.writeUIntLE(text.length, 0, prefix);
    parts.push(size, text);
  }
  const bytes = schema.header.length + parts.reduce((sum, part) => sum + part.length, 0);
  const messageLength = Math.ceil(bytes / UNIT) * UNIT;
  const head = {
    ...{ blockLength: String(length), templateId: String(message.id), schemaId: String(schema.id) },
    ...{ version: String(version), messageLength: String(messageLength), ...plain.header },
  };
  const header = encodeLayout(schema.header, head, version);
  return Buffer.concat([header, ...parts, Buffer.alloc(messageLength - bytes)]);
}

/** Every message of a frame. @throws Error for a frame that isn't a row of whole messages of the schema */
export function decodeFrame(schema: Schema, frame: Buffer): PlainMessage[] {
  const messages: PlainMessage[] = [];
  for (let at = 0; at < frame.length; ) {
    const { fields, end } = decodeAt(schema, frame, at);
    messages.push(fields);
    at = end;
  }
  return messages;
}

function decodeAt(schema: Schema, frame: Buffer, start: number): { fields: PlainMessage; end: number } {
  const { header } = schema;
  const head = decodeLayout(header, frame.subarray(start, start + header.length));
  const end = start + Number(head["messageLength"]);
  const message = schema.messages.find(({ id }) => String(id) === head["templateId"]);
  if (message === undefined) throw new Error(`unknown template ${head["templateId"]}`);
  if (head["schemaId"] !== String(schema.id)) throw new Error(`unknown schema ${head["schemaId"]}`);
  if (end > frame.length || end % UNIT !== 0) throw new Error(`${message.name} ends at ${end} of ${frame.length}`);
  let at = start + header.length;
  const take = (length: number): Buffer => {
    if (at + length > end) throw new Error(`${message.name} needs ${at + length} bytes of ${end}`);
    at += length;
    return frame.subarray(at - length, at);
  };
  const fields = decodeLayout(message, take(Number(head["blockLength"])));
  const groups: Record<string, Values[]> = {};
  const version = Number(head["version"]);
  for (const group of message.groups) {
    if (group.since > version) {
      groups[group.name] = [];
      continue;
    }
    const dimension = take(DIMENSION_BYTES);
    const length = dimension.readUInt16LE(0);
    groups[group.name] = Array.from({ length: dimension.readUInt16LE(2) }, () => decodeLayout(group, take(length)));
  }
  const texts: Record<string, string | null> = {};
  for (const { name, prefix, since } of message.texts) {
    texts[name] = since > version ? null : take(take(prefix).readUIntLE(0, prefix)).toString() || null;
  }
  if (end - at >= UNIT || frame.subarray(at, end).some((byte) => byte !== 0)) throw new Error("a message ends with 0s");
  const { index = null, rateRemaining = null, id = null } = head as Record<string, string | null>;
  return { fields: { template: message.name, header: { index, rateRemaining, id }, fields, groups, texts }, end };
}

function encodeLayout(layout: Layout, values: Values, version: number): Buffer {
  const bytes = Buffer.alloc(lengthIn(layout, version));
  for (const field of layout.fields) {
    const { type, offset, since } = field;
    if (type.kind === "padding" || since > version) continue;
    const number = numberOf(field, values[field.name] ?? null);
    bytes.set(bytesOf(type, number), offset);
  }
  const unknown = Object.keys(values).find((name) => !layout.fields.some((field) => field.name === name));
  if (unknown !== undefined) throw new Error(`no field is called ${unknown}`);
  return bytes;
}

/** Fields beyond the end of `bytes` are null. */
function decodeLayout(layout: Layout, bytes: Buffer): Values {
  const values: Record<string, Value> = {};
  for (const field of layout.fields) {
    const { name, type, offset } = field;
    if (type.kind === "padding") continue;
    const end = offset + BYTES[type.primitive];
    values[name] = end > bytes.length ? absent(type) : readValue(field, bytes.subarray(offset, end));
  }
  return values;
}

const absent = ({ kind }: FieldType): Value => (kind === "set" ? [] : null);

export const nullOf = ({ primitive }: FieldType): bigint =>
  primitive === "int64" ? -(2n ** 63n) : 2n ** BigInt(8 * BYTES[primitive]) - 1n;

function numberOf({ name, type, isOptional }: Field, value: Value): bigint {
  const { kind, values } = type;
  if (kind === "set") return ((value ?? []) as readonly string[]).reduce((bits, word) => bits | (1n << bit(word)), 0n);
  if (value === null) {
    if (!isOptional) throw new Error(`${name}: can't be null`);
    return nullOf(type);
  }
  return kind === "enum" ? bit(value as string) : BigInt(value as string);

  function bit(word: string): bigint {
    const number = values.get(word);
    if (number === undefined) throw new Error(`${name}: ${word} is no ${type.name}`);
    return BigInt(number);
  }
}

function readValue({ name, type, isOptional }: Field, bytes: Buffer): Value {
  const unsigned = [...bytes].reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const number = type.primitive === "int64" ? BigInt.asIntN(64, unsigned) : unsigned;
  const words = [...type.values];
  if (type.kind === "set") return words.filter(([, bit]) => (number >> BigInt(bit)) & 1n).map(([word]) => word);
  if (isOptional && number === nullOf(type)) return null;
  if (type.kind === "number") return String(number);
  const word = words.find(([, code]) => BigInt(code) === number);
  if (word === undefined) throw new Error(`${name}: ${number} is no ${type.name}`);
  return word[0];
}

function bytesOf({ primitive }: FieldType, number: bigint): Buffer {
  const length = BYTES[primitive];
  const unsigned = BigInt.asUintN(8 * length, number);
  return Buffer.from(Array.from({ length }, (_, i) => Number((unsigned >> BigInt(8 * i)) & 255n)));
}
