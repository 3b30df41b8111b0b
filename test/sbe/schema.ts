/** The schema of the binary protocol, read from sbe.xml. It rejects what a client could not rely on. */
import { parseXml, XmlElement } from "@rgrove/parse-xml";

export type Primitive = "uint8" | "uint16" | "uint32" | "uint64" | "int64";
export const BYTES: Readonly<Record<Primitive, number>> = { uint8: 1, uint16: 2, uint32: 4, uint64: 8, int64: 8 };

/** What a field holds. */
export interface FieldType {
  readonly name: string;
  readonly kind: "number" | "enum" | "set" | "padding";
  readonly primitive: Primitive;
  readonly isOptional: boolean;
  readonly description: string;
  /** Of an enumeration its values, of a set the numbers of its bits, by name; otherwise empty. */
  readonly values: ReadonlyMap<string, number>;
}

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  /** From the start of its block or entry. */
  readonly offset: number;
  readonly isOptional: boolean;
  /** The first version that has it. */
  readonly since: number;
}

/** The fields of a block, or of one entry of a group. */
export interface Layout {
  readonly length: number;
  readonly fields: readonly Field[];
}

interface Group extends Layout {
  readonly name: string;
  readonly since: number;
}

interface Text {
  readonly name: string;
  /** Bytes of its length. */
  readonly prefix: 1 | 2;
  readonly since: number;
}

export interface Message extends Layout {
  readonly name: string;
  readonly id: number;
  readonly description: string;
  readonly groups: readonly Group[];
  readonly texts: readonly Text[];
}

export interface Schema {
  readonly id: number;
  readonly version: number;
  readonly header: Layout;
  /** Enumerations and sets. */
  readonly choices: readonly FieldType[];
  readonly messages: readonly Message[];
}

/** Blocks are multiples of 8 bytes, so that each begins at one. */
const BLOCK_UNIT = 8;
const MAX_BLOCK_LENGTH = 64;
const HEADER = "messageHeader";
const NO_VALUES: ReadonlyMap<string, number> = new Map();

/** @throws Error for XML that is no such schema, saying where */
export function readSchema(xml: string): Schema {
  const { root } = parseXml(xml);
  if (root === null || root.name !== "sbe:messageSchema") throw new Error("the root must be an sbe:messageSchema");
  if (attribute(root, "byteOrder") !== "littleEndian") throw new Error("byteOrder: must be littleEndian");
  const types = readTypes(childrenOf(root, ["types", "sbe:message"]).find(({ name }) => name === "types"));
  const messages = childrenOf(root, ["types", "sbe:message"])
    .filter(({ name }) => name === "sbe:message")
    .map((element) => readMessage(element, types.byName));
  const version = integer(root, "version");
  for (const message of messages) checkVersions(message, version);
  assertDistinct("messages", messages.map(({ name }) => name), messages.map(({ id }) => id)); // biome-ignore format: one line
  return {
    id: integer(root, "id"),
    version,
    header: types.header,
    choices: [...types.byName.values()].filter(({ values }) => values.size > 0),
    messages,
  };
}

interface Types {
  readonly header: Layout;
  readonly byName: ReadonlyMap<string, FieldType>;
}

function readTypes(element: XmlElement | undefined): Types {
  if (element === undefined) throw new Error("the schema has no types");
  const byName = new Map<string, FieldType>();
  let header: Layout | null = null;
  for (const each of childrenOf(element, ["composite", "type", "enum", "set"])) {
    const name = attribute(each, "name");
    // The generators know the layout of groups and texts; the header's fields they read.
    if (each.name === "composite") {
      if (name === HEADER) header = readHeader(each);
      continue;
    }
    if (byName.has(name)) throw new Error(`${name}: two types have this name`);
    byName.set(name, each.name === "type" ? readType(each) : readChoices(each));
  }
  if (header === null) throw new Error(`the schema has no ${HEADER}`);
  return { header, byName };
}

function readHeader(element: XmlElement): Layout {
  let offset = 0;
  const fields = childrenOf(element, ["type"]).map((each) => {
    const type = readType(each);
    const field = { name: type.name, type, offset, isOptional: type.isOptional, since: 1 };
    offset += BYTES[type.primitive];
    return field;
  });
  return { fields, length: checkedLength(HEADER, fields) };
}

function readType(element: XmlElement): FieldType {
  const name = attribute(element, "name");
  return {
    name,
    kind: name.startsWith("Padding") ? "padding" : "number",
    primitive: primitiveOf(attribute(element, "primitiveType"), name),
    isOptional: element.attributes["presence"] === "optional",
    description: element.attributes["description"] ?? "",
    values: NO_VALUES,
  };
}

function readChoices(element: XmlElement): FieldType {
  const isSet = element.name === "set";
  const values = childrenOf(element, [isSet ? "choice" : "validValue"]).map(
    (each) => [attribute(each, "name"), Number(each.text)] as const,
  );
  const name = attribute(element, "name");
  const highest = isSet ? 7 : 254;
  for (const [value, number] of values) {
    const fits = Number.isInteger(number) && number >= 0 && number <= highest;
    if (!fits) throw new Error(`${name}.${value}: must be an integer between 0 and ${highest}`);
  }
  assertDistinct(name, values.map(([value]) => value), values.map(([, number]) => number)); // biome-ignore format: one line
  return {
    name,
    kind: isSet ? "set" : "enum",
    primitive: primitiveOf(attribute(element, "encodingType"), name),
    isOptional: false,
    description: element.attributes["description"] ?? "",
    values: new Map(values),
  };
}

function readMessage(element: XmlElement, types: ReadonlyMap<string, FieldType>): Message {
  const name = attribute(element, "name");
  const children = childrenOf(element, ["field", "group", "data"]);
  const kinds = children.map((each) => each.name);
  const inOrder = [...kinds].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  if (kinds.join() !== inOrder.join()) throw new Error(`${name}: fields come first, then groups, then texts`);
  const named = (kind: string): XmlElement[] => children.filter((each) => each.name === kind);
  const fields = readFields(name, named("field"), types);
  const length = checkedLength(name, fields);
  if (length !== integer(element, "blockLength")) throw new Error(`${name}: its fields take ${length} bytes`);
  if (length % BLOCK_UNIT !== 0 || length > MAX_BLOCK_LENGTH) {
    throw new Error(`${name}: blockLength must be a multiple of ${BLOCK_UNIT} up to ${MAX_BLOCK_LENGTH}`);
  }
  const groups = named("group").map((group) => readGroup(name, group, types));
  const texts = named("data").map((text) => readText(name, text));
  const entries = named("group").flatMap((group) => childrenOf(group, ["field"]));
  const numbered = [...children, ...entries].map((each) => integer(each, "id"));
  assertDistinct(name, [...fields, ...groups, ...texts].map((each) => each.name), numbered); // biome-ignore format: one line
  const description = element.attributes["description"] ?? "";
  return { name, id: integer(element, "id"), description, fields, length, groups, texts };
}

const ORDER = ["field", "group", "data"];

function readGroup(message: string, element: XmlElement, types: ReadonlyMap<string, FieldType>): Group {
  const name = attribute(element, "name");
  const path = `${message}.${name}`;
  if (attribute(element, "dimensionType") !== "groupSizeEncoding") throw new Error(`${path}: unknown dimensionType`);
  const fields = readFields(path, childrenOf(element, ["field"]), types);
  const length = checkedLength(path, fields);
  if (length !== integer(element, "blockLength")) throw new Error(`${path}: its fields take ${length} bytes`);
  // Numbers of 4 bytes in an entry are aligned to 4.
  if (length % 4 !== 0) throw new Error(`${path}: blockLength must be a multiple of 4`);
  return { name, fields, length, since: sinceOf(element) };
}

function readText(message: string, element: XmlElement): Text {
  const name = attribute(element, "name");
  const type = attribute(element, "type");
  if (type !== "Text8" && type !== "Text16") throw new Error(`${message}.${name}: unknown type ${type}`);
  return { name, prefix: type === "Text8" ? 1 : 2, since: sinceOf(element) };
}

function readFields(path: string, elements: readonly XmlElement[], types: ReadonlyMap<string, FieldType>): Field[] {
  const fields = elements.map((element) => {
    const name = attribute(element, "name");
    const type = types.get(attribute(element, "type"));
    if (type === undefined) throw new Error(`${path}.${name}: unknown type ${attribute(element, "type")}`);
    const isOptional = type.isOptional || element.attributes["presence"] === "optional";
    return { name, type, offset: integer(element, "offset"), isOptional, since: sinceOf(element) };
  });
  assertDistinct(path, fields.map(({ name }) => name), fields.map(({ offset }) => offset)); // biome-ignore format: one line
  return fields;
}

/** The bytes that a version has of a block or an entry. */
export function lengthIn({ fields }: Layout, version: number): number {
  const last = fields.findLast(({ since }) => since <= version);
  return last === undefined ? 0 : last.offset + BYTES[last.type.primitive];
}

/** What a later version has comes last, and each version's lengths are such as a schema's must be. */
function checkVersions(message: Message, version: number): void {
  const { name, fields, groups, texts } = message;
  for (const parts of [fields, [...groups, ...texts], ...groups.map((group) => group.fields)]) {
    parts.reduce((before, part: { readonly name: string; readonly since: number }) => {
      const path = `${name}.${part.name}`;
      if (part.since < before) throw new Error(`${path}: what an earlier version has comes first`);
      if (part.since > version) throw new Error(`${path}: sinceVersion must be at most ${version}`);
      return part.since;
    }, 1);
  }
  for (let each = 1; each <= version; each++) {
    if (lengthIn(message, each) % BLOCK_UNIT !== 0) {
      throw new Error(`${name}: blockLength must be a multiple of ${BLOCK_UNIT} in version ${each}`);
    }
    const odd = groups.find((group) => lengthIn(group, each) % 4 !== 0);
    if (odd !== undefined)
      throw new Error(`${name}.${odd.name}: blockLength must be a multiple of 4 in version ${each}`);
  }
}

/** The bytes that the fields take, which must follow one another, each at a multiple of its own size. */
function checkedLength(path: string, fields: readonly Field[]): number {
  let end = 0;
  for (const { name, type, offset } of fields) {
    const size = BYTES[type.primitive];
    if (offset < end) throw new Error(`${path}.${name}: overlaps the field before it`);
    if (offset > end) throw new Error(`${path}.${name}: leaves ${offset - end} bytes unnamed`);
    if (offset % size !== 0) throw new Error(`${path}.${name}: must be at a multiple of ${size} bytes`);
    end = offset + size;
  }
  return end;
}

function assertDistinct(path: string, names: readonly string[], numbers: readonly number[]): void {
  for (const each of [names, numbers]) {
    const twice = (each as readonly unknown[]).find((value, at) => (each as readonly unknown[]).indexOf(value) !== at);
    if (twice !== undefined) throw new Error(`${path}: ${twice} stands twice`);
  }
}

/** The elements in an element. @throws Error for others than the allowed ones, and for text */
function childrenOf(element: XmlElement, allowed: readonly string[]): XmlElement[] {
  const elements = element.children.filter((child) => child instanceof XmlElement);
  const other = elements.find(({ name }) => !allowed.includes(name));
  if (other !== undefined) throw new Error(`${element.name}: unknown element ${other.name}`);
  return elements;
}

function attribute(element: XmlElement, name: string): string {
  const value = element.attributes[name];
  if (value === undefined) throw new Error(`${element.name} ${element.attributes["name"] ?? ""}: ${name} is missing`);
  return value;
}

function integer(element: XmlElement, name: string): number {
  const text = attribute(element, name);
  if (!/^\d+$/.test(text)) throw new Error(`${element.attributes["name"]}: ${name} must be an integer`);
  return Number(text);
}

function sinceOf(element: XmlElement): number {
  const since = element.attributes["sinceVersion"] === undefined ? 1 : integer(element, "sinceVersion");
  if (since < 1) throw new Error(`${element.attributes["name"]}: sinceVersion must be at least 1`);
  return since;
}

function primitiveOf(text: string, path: string): Primitive {
  if (!(text in BYTES)) throw new Error(`${path}: unknown primitiveType ${text}`);
  return text as Primitive;
}
