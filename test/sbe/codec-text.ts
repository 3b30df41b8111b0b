/** Writes server/websocket/sbe/codec/: reads and writes of 32-bit words at constant places, which V8 inlines. */
import { camelCase, FIRST_RESPONSE, layoutsOf, type NamedLayout } from "./layouts.ts";
import { BYTES, type Field, type FieldType, type Message, type Schema } from "./schema.ts";

const WORD_BYTES = 4;
/** Types of which all 64 bits count: two words, since a number holds 53 bits. */
const WORD_PAIRS = new Set(["ClientOrderId"]);

const GENERATED = "generated from sbe.xml by `npm run sbe`";
const WORDS = " * `at` is the first word's index. Null is -1, of money NULL_MONEY.\n";

/** The engine's constants have the others. */
const OWN_CHOICES = new Set(["Channel", "OrderFlags", "ShutdownReason"]);

/** The files' texts by their names, unformatted. */
export function codecTexts(schema: Schema): Record<string, string> {
  const layouts = layoutsOf(schema);
  for (const message of schema.messages.filter(({ id }) => id < FIRST_RESPONSE)) checkFirstVersion(message);
  const requests = layouts.filter(({ isRequest }) => isRequest);
  const responses = layouts.filter(({ isRequest }) => !isRequest);
  return {
    "constants.ts": `/** Numbers of the binary protocol, ${GENERATED}. */\n${constantsText(schema, layouts)}`,
    "requests.ts":
      `/**\n * Blocks and entries that clients send, as 32-bit words, ${GENERATED}.\n${WORDS}` +
      ` * A number of 64 bits beyond 2^53 is inexact, yet never between -1 and 2^53.\n */\n${joined(requests)}`,
    "responses.ts":
      `/**\n * Blocks and entries that the server sends, as 32-bit words, ${GENERATED}.\n${WORDS} */\n` +
      joined(responses),
  };
}

/** The server reads a request's whole block, and all that follows it. @throws Error where an earlier version has less */
function checkFirstVersion({ name, fields, groups, texts }: Message): void {
  const parts = [...fields, ...groups, ...groups.flatMap((group) => group.fields), ...texts];
  const later = parts.find(({ since }) => since > 1);
  if (later !== undefined)
    throw new Error(`${name}.${later.name}: the server doesn't read requests by their version yet`);
}

const joined = (layouts: readonly NamedLayout[]): string =>
  layouts.map((layout) => `\n${layoutText(layout)}\n`).join("");

function constantsText(schema: Schema, layouts: readonly NamedLayout[]): string {
  const entries = layouts.filter(({ isBlock }) => !isBlock);
  return [
    `export const SCHEMA_ID = ${schema.id};\nexport const SCHEMA_VERSION = ${schema.version};`,
    "export const NULL_MONEY = -(2 ** 63);",
    constant(
      "Template",
      schema.messages.map(({ name, id }) => [camelCase(name), id]),
    ),
    `/** Bytes; a later version's are longer. */\n${constant("BlockLength", schema.messages.map(lengthOf))}`,
    `/** Bytes of a group's entry. */\n${constant("EntryLength", entries.map(lengthOf))}`,
    ...schema.choices.filter(({ name }) => OWN_CHOICES.has(name)).map(choiceText),
  ].join("\n\n");
}

const lengthOf = ({ name, length }: { name: string; length: number }) => [camelCase(name), length] as const;

const constant = (name: string, entries: readonly (readonly [string, number])[]): string =>
  `export const ${name} = {\n${entries.map(([key, value]) => `${key}: ${value},\n`).join("")}} as const;`;

/** Sets as bits. */
const choiceText = ({ name, kind, values }: FieldType): string =>
  constant(
    name,
    [...values].map(([word, code]) => [word, kind === "set" ? 1 << code : code]),
  );

/** A field's values in the interface: two for a pair of words. */
interface Slot {
  readonly name: string;
  readonly field: Field;
  /** Byte offset of what the slot holds. */
  readonly offset: number;
  readonly isHalf: boolean;
}

function slotsOf(field: Field): Slot[] {
  const { name, type, offset } = field;
  if (!WORD_PAIRS.has(type.name)) return [{ name, field, offset, isHalf: false }];
  return [
    { name: `${name}Low`, field, offset, isHalf: true },
    { name: `${name}High`, field, offset: offset + WORD_BYTES, isHalf: true },
  ];
}

function layoutText(layout: NamedLayout): string {
  const slots = layout.fields.filter(({ type }) => type.kind !== "padding").flatMap(slotsOf);
  const { name, users, isBlock, isRequest } = layout;
  const owners = users.join(", ");
  const members = slots.map(({ name: member, field, isHalf }) => `${commentOf(field, isHalf)}${member} = 0;\n`);
  const shape = `/** The ${isBlock ? "block" : "entry"} of ${owners}. */\nexport class ${name} {\n${members.join("")}}`;
  return `${shape}\n\n${isRequest ? readerText(name, slots) : writerText(layout, slots)}`;
}

/** Units; what a word of a choice means stands in the schema. */
function commentOf({ type }: Field, isHalf: boolean): string {
  const text = isHalf || type.kind !== "number" ? "" : type.description.replaceAll(/;? ?null: [^;]+/g, "");
  return text === "" ? "" : `/** ${text[0]!.toUpperCase()}${text.slice(1)}. */\n`;
}

function readerText(name: string, slots: readonly Slot[]): string {
  const lines = slots.map((slot) => `  into.${slot.name} = ${readOf(slot)};\n`);
  return `export function read${name}(words: Int32Array, at: number, into: ${name}): void {\n${lines.join("")}}`;
}

const wordAt = (offset: number): string => {
  const index = Math.floor(offset / WORD_BYTES);
  return `words[at${index === 0 ? "" : ` + ${index}`}]`;
};

function readOf({ field, offset, isHalf }: Slot): string {
  const { type, isOptional } = field;
  const word = `${wordAt(offset)}!`;
  const size = isHalf ? WORD_BYTES : BYTES[type.primitive];
  if (isHalf) return word;
  if (size === 8) return `${wordAt(offset + WORD_BYTES)}! * 2 ** 32 + (${word} >>> 0)`;
  if (size === WORD_BYTES) return isOptional ? `((${word} + 1) >>> 0) - 1` : `${word} >>> 0`;
  const shift = (offset % WORD_BYTES) * 8;
  const mask = size === 1 ? "0xff" : "0xffff";
  const bits = shift === 0 ? word : `(${word} >>> ${shift})`;
  return isOptional ? `((${bits} + 1) & ${mask}) - 1` : `${bits.replace(/^\((.*)\)$/, "($1)")} & ${mask}`;
}

function writerText({ name, length }: NamedLayout, slots: readonly Slot[]): string {
  const byWord = new Map<number, Slot[]>();
  for (const slot of slots) {
    const index = Math.floor(slot.offset / WORD_BYTES);
    byWord.set(index, [...(byWord.get(index) ?? []), slot]);
  }
  const lines: string[] = [];
  for (let index = 0; index * WORD_BYTES < length; index++) lines.push(...writesOf(index, byWord));
  return `export function write${name}(words: Int32Array, at: number, from: ${name}): void {\n${lines.join("")}}`;
}

/** The lines that write one word, or two. */
function writesOf(index: number, byWord: ReadonlyMap<number, readonly Slot[]>): string[] {
  const slots = byWord.get(index);
  const line = (value: string, word = index): string => `  ${wordAt(word * WORD_BYTES)} = ${value};\n`;
  // The upper half of a number of 64 bits, written with its lower one, or padding.
  const isUpperHalf = byWord.get(index - 1)?.some(({ field, isHalf }) => BYTES[field.type.primitive] === 8 && !isHalf);
  if (slots === undefined) return isUpperHalf === true ? [] : [line("0")];
  const [first] = slots;
  const { name, field, isHalf } = first!;
  const { type, isOptional } = field;
  if (!isHalf && BYTES[type.primitive] === 8) {
    const upper = `from.${name} * 2 ** -32`;
    const isSigned = isOptional || type.primitive === "int64";
    return [line(`from.${name}`), line(isSigned ? `Math.floor(${upper})` : upper, index + 1)];
  }
  return [line(slots.map((slot) => bitsOf(slot)).join(" | "))];
}

/** A slot's bits in their place of the word. */
function bitsOf({ name, field, offset, isHalf }: Slot): string {
  const size = isHalf ? WORD_BYTES : BYTES[field.type.primitive];
  const shift = (offset % WORD_BYTES) * 8;
  if (size === WORD_BYTES) return `from.${name}`;
  // Bits beyond the word's end fall off.
  if (shift + size * 8 === 32) return `(from.${name} << ${shift})`;
  const masked = `(from.${name} & ${size === 1 ? "0xff" : "0xffff"})`;
  return shift === 0 ? masked : `(${masked} << ${shift})`;
}
