/** The golden vectors: messages as values and as bytes, which every decoder and encoder must agree on. */
import { encodeMessage, nullOf, type PlainMessage, type Value, type Values, type Variant } from "./plain.ts";
import { BYTES, type Field, type Layout, lengthIn, type Message, type Schema } from "./schema.ts";

export interface Vector extends PlainMessage {
  readonly name: string;
  readonly version: number;
  /** As in its header: not the schema's where another version sent it. */
  readonly blockLength: number;
  readonly hex: string;
}

/** The bytes that a later version's block has more, or an earlier one's fewer. */
const BLOCK_CHANGE = 8;
/** The only types whose values use all 64 bits. */
const WHOLE_RANGE = new Set(["ClientOrderId"]);
const ID_LIMIT = 2n ** 53n - 1n;
const TEXT = "Ab0_-.:Z";

export function vectorsOf(schema: Schema): Vector[] {
  return schema.messages.flatMap((message) => {
    const vector = (name: string, plain: PlainMessage, variant: Variant = {}): Vector => {
      const { version = schema.version, blockChange = 0 } = variant;
      const hex = encodeMessage(schema, plain, variant).toString("hex");
      return { name, version, blockLength: lengthIn(message, version) + blockChange, ...plain, hex };
    };
    const greatest = plainOf(message, greatestOf, 3, 64, {
      index: "65534",
      rateRemaining: "65534",
      id: String(nullId - 1n),
    });
    const vectors = [
      vector(
        "all that may be null is",
        plainOf(message, nullOrLeast, 0, 0, { index: null, rateRemaining: null, id: null }),
      ),
      vector("least values", plainOf(message, leastOf, 1, 1, { index: "0", rateRemaining: "0", id: "0" })),
      vector("greatest values", greatest),
      vector("a later version's block", greatest, { version: schema.version + 1, blockChange: BLOCK_CHANGE }),
    ];
    if (message.length > BLOCK_CHANGE) {
      const fields = cut(message, greatest.fields, message.length - BLOCK_CHANGE);
      const bytes = vector("a block cut short", greatest, { blockChange: -BLOCK_CHANGE });
      vectors.push({ ...bytes, fields });
    }
    for (let version = 1; version < schema.version; version++) {
      if (!isOf(message, version))
        vectors.push(vector(`version ${version}`, olderOf(message, greatest, version), { version }));
    }
    return vectors;
  });
}

/** True where a version has the whole message. */
function isOf({ fields, groups, texts }: Message, version: number): boolean {
  return [...fields, ...groups, ...groups.flatMap((group) => group.fields), ...texts].every(
    ({ since }) => since <= version,
  );
}

/** What is left of a message in an earlier version. */
function olderOf(message: Message, plain: PlainMessage, version: number): PlainMessage {
  const fields = cut(message, plain.fields, lengthIn(message, version));
  const groups = Object.entries(plain.groups).map(([name, entries]) => {
    const group = message.groups.find((each) => each.name === name)!;
    const left = group.since > version ? [] : entries.map((entry) => cut(group, entry, lengthIn(group, version)));
    return [name, left] as const;
  });
  const texts = message.texts.map(({ name, since }) => [name, since > version ? null : plain.texts[name]!] as const);
  return { ...plain, fields, groups: Object.fromEntries(groups), texts: Object.fromEntries(texts) };
}

const nullId = 2n ** 64n - 1n;

function plainOf(
  message: Message,
  value: (field: Field) => Value,
  entries: number,
  characters: number,
  header: PlainMessage["header"],
): PlainMessage {
  const { name: template, groups, texts } = message;
  return {
    template,
    header,
    fields: valuesOf(message, value),
    groups: Object.fromEntries(groups.map((group) => [group.name, Array(entries).fill(valuesOf(group, value))])),
    texts: Object.fromEntries(texts.map(({ name, prefix }) => [name, textOf(characters, prefix)])),
  };
}

const valuesOf = (layout: Layout, value: (field: Field) => Value): Values =>
  Object.fromEntries(
    layout.fields.filter(({ type }) => type.kind !== "padding").map((field) => [field.name, value(field)]),
  );

/** Texts with a long prefix are UTF-8; the others are ids and codes. */
function textOf(characters: number, prefix: number): string | null {
  if (characters === 0) return null;
  const text = TEXT.repeat(Math.ceil(characters / TEXT.length)).slice(0, characters);
  return prefix === 1 || characters < 8 ? text : `${text.slice(0, -3)}é €`;
}

function nullOrLeast(field: Field): Value {
  return field.isOptional ? null : leastOf(field);
}

function leastOf({ type }: Field): Value {
  if (type.kind === "set") return [];
  if (type.kind === "enum") return [...type.values.keys()][0]!;
  return type.primitive === "int64" ? String(-ID_LIMIT) : "0";
}

function greatestOf({ type }: Field): Value {
  if (type.kind === "set") return [...type.values.keys()];
  if (type.kind === "enum") return [...type.values.keys()].at(-1)!;
  const isLimited = BYTES[type.primitive] === 8 && !WHOLE_RANGE.has(type.name);
  return String(isLimited ? ID_LIMIT : nullOf(type) - 1n);
}

/** What is left of values when the block ends at `length`. */
function cut(layout: Layout, values: Values, length: number): Values {
  const isCut = ({ type, offset }: Field): boolean => offset + BYTES[type.primitive] > length;
  const lost = layout.fields.filter((field) => field.type.kind !== "padding" && isCut(field));
  return { ...values, ...Object.fromEntries(lost.map(({ name, type }) => [name, type.kind === "set" ? [] : null])) };
}
