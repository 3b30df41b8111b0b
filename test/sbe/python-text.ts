/** Writes docs/sbe/exchange_sbe.py: a NamedTuple for each message, `decode` and `encode`. */
import { blockOf, entryOf, layoutsOf, type NamedLayout, snakeCase } from "./layouts.ts";
import { BYTES, type Field, type FieldType, type Message, type Primitive, type Schema } from "./schema.ts";

const FORMATS: Readonly<Record<Primitive, string>> = { uint8: "B", uint16: "H", uint32: "I", uint64: "Q", int64: "q" };

export function pythonText(schema: Schema): string {
  const layouts = layoutsOf(schema);
  const entries = layouts.filter(({ isBlock }) => !isBlock);
  return [
    HEAD,
    `SCHEMA_ID = ${schema.id}\nSCHEMA_VERSION = ${schema.version}`,
    ...schema.choices.map(choiceText),
    ...entries.map((entry) => tupleText(entry.name, `An entry of ${entry.users.join(", ")}.`, membersOf(entry))),
    ...schema.messages.map(messageText),
    TABLES_HEAD,
    `_LAYOUTS = {\n${layouts.map(layoutText).join("")}}`,
    `_MESSAGES = {\n${schema.messages.map(tableText).join("")}}`,
    CODE,
  ].join("\n\n\n").concat("\n"); // biome-ignore format: one line
}

function choiceText({ name, kind, values, description }: FieldType): string {
  const lines = [...values].map(([word, code]) => {
    return `    ${snakeCase(word).toUpperCase()} = ${kind === "set" ? 1 << code : code}\n`;
  });
  const text = description === "" ? "" : `    """${description}"""\n`;
  return `class ${name}(${kind === "set" ? "IntFlag" : "IntEnum"}):\n${text}${lines.join("")}`.trimEnd();
}

interface Member {
  readonly name: string;
  readonly type: string;
  /** Empty for a member that every message must give. */
  readonly initial: string;
}

function membersOf({ fields }: { fields: readonly Field[] }): Member[] {
  return shown(fields).map(({ name, type, isOptional }) => ({
    name: snakeCase(name),
    type: isOptional ? "Optional[int]" : "int",
    initial: isOptional ? "None" : type.kind === "set" ? "0" : "",
  }));
}

const shown = (fields: readonly Field[]): Field[] => fields.filter(({ type }) => type.kind !== "padding");

function messageText(message: Message): string {
  const { name, description, groups, texts } = message;
  const more = [
    ...groups.map((group) => ({
      name: snakeCase(group.name),
      type: `Tuple[${entryOf(group.name)}, ...]`,
      initial: "()",
    })),
    ...texts.map((text) => ({ name: snakeCase(text.name), type: "Optional[str]", initial: "None" })),
  ];
  return tupleText(name, description, [...membersOf(message), ...more]);
}

/** Members without a default come first. */
function tupleText(name: string, description: string, members: readonly Member[]): string {
  const sorted = [
    ...members.filter(({ initial }) => initial === ""),
    ...members.filter(({ initial }) => initial !== ""),
  ];
  const lines = sorted.map(({ name: member, type, initial }) => {
    return `    ${member}: ${type}${initial === "" ? "" : ` = ${initial}`}\n`;
  });
  const text = description.replace(/\.?$/, ".").replace(/^./, (letter) => letter.toUpperCase());
  return `class ${name}(NamedTuple):\n    """${text}"""\n\n${lines.join("")}`.trimEnd();
}

function layoutText({ name, fields, length, isBlock }: NamedLayout): string {
  const format = fields.map(({ type }) =>
    type.kind === "padding" ? `${BYTES[type.primitive]}x` : FORMATS[type.primitive],
  );
  const rows = shown(fields).map(({ name: field, type, isOptional }) => {
    const absent = type.kind === "set" ? "0" : `_NULL_${FORMATS[type.primitive]}`;
    return `("${snakeCase(field)}", ${absent}, ${isOptional ? "True" : "False"})`;
  });
  const lines = rows.map((row) => `        ${row},\n`).join("");
  return `    "${name}": _Layout("<${format.join("")}", ${length}, ${isBlock ? "None" : name}, (\n${lines}    )),\n`;
}

function tableText(message: Message): string {
  const { id, name, length, groups, texts } = message;
  const listed = (items: readonly string[]): string =>
    `(${items
      .map((item) => `${item}, `)
      .join("")
      .trimEnd()})`;
  const groupRows = listed(
    groups.map(({ name: group, since }) => `("${snakeCase(group)}", "${entryOf(group)}", ${since})`),
  );
  const textRows = listed(texts.map((text) => `("${snakeCase(text.name)}", ${text.prefix}, ${text.since})`));
  const block = length === 0 ? "None" : `"${blockOf(message)}"`;
  return `    ${id}: (${name}, ${block}, ${groupRows}, ${textRows}),\n`;
}

const HEAD = `"""Orders and market data of the exchange in binary: messages, decode and encode. Python 3.8 or later, no dependency.

Generated from sbe.xml by "npm run sbe"; docs/sbe.md describes the protocol. Numbers of enumerations are ints, equal to
the members of the classes below: a later version of the exchange may send others. None stands for null.
"""
import struct
from enum import IntEnum, IntFlag
from typing import Iterator, NamedTuple, Optional, Tuple`;

const TABLES_HEAD = `class Header(NamedTuple):
    """What precedes a message. id: the request's number in responses, the sequence in events."""

    template_id: int
    version: int
    index: Optional[int]
    rate_remaining: Optional[int]
    id: Optional[int]


_NULL_B = 2**8 - 1
_NULL_H = 2**16 - 1
_NULL_I = 2**32 - 1
_NULL_Q = 2**64 - 1
_NULL_q = -(2**63)
_HEADER = struct.Struct("<HHHHIHHQ")
_DIMENSION = struct.Struct("<HH")


class _Layout:
    def __init__(self, form, length, entry, fields):
        self.struct = struct.Struct(form)
        self.entry = entry
        self.names = [name for name, _, _ in fields]
        self.nulls = [null if optional else None for _, null, optional in fields]
        self.absent = self.struct.pack(*[null for _, null, _ in fields])
        self.required = [(name, null) for name, null, optional in fields if not optional and null != 0]
        assert self.struct.size == length

    def values(self, data, start, length):
        size = self.struct.size
        raw = bytes(data[start:start + min(length, size)])
        fields = self.struct.unpack(raw + self.absent[len(raw):])
        found = {name: None if value == null else value for name, value, null in zip(self.names, fields, self.nulls)}
        if length < size:
            for name, null in self.required:
                if found[name] == null:
                    found[name] = None
        return found

    def pack(self, value):
        given = [getattr(value, name) for name in self.names]
        return self.struct.pack(*[null if each is None and null is not None else each
                                  for each, null in zip(given, self.nulls)])`;

const CODE = `_TEMPLATES = {message: template for template, (message, _, _, _) in _MESSAGES.items()}


class _Body:
    def __init__(self, data, at, end):
        self.data, self.at, self.end = data, at, end

    def take(self, length):
        start = self.at
        if start + length > self.end:
            raise ValueError("a message ends in the middle of a field")
        self.at += length
        return start


def decode(frame) -> Iterator[Tuple[Header, tuple]]:
    """Yields the header and the message of each message of a frame, and skips templates that it doesn't know.

    Raises ValueError for bytes that are no such frame.
    """
    at = 0
    while at < len(frame):
        if at + _HEADER.size > len(frame):
            raise ValueError("the frame ends in the middle of a header")
        block, template, schema, version, length, index, rate, number = _HEADER.unpack_from(frame, at)
        end = at + length
        if length % 8 != 0 or length < _HEADER.size + block or end > len(frame):
            raise ValueError("the lengths of the frame don't add up")
        if schema == SCHEMA_ID and template in _MESSAGES:
            header = Header(template, version, None if index == _NULL_H else index,
                            None if rate == _NULL_H else rate, None if number == _NULL_Q else number)
            yield header, _message(template, version, block, _Body(frame, at + _HEADER.size, end))
        at = end


def _message(template, version, block, body):
    message, layout, groups, texts = _MESSAGES[template]
    start = body.take(block)
    fields = {} if layout is None else _LAYOUTS[layout].values(body.data, start, block)
    for name, entry, since in groups:
        if since > version:
            continue
        size, count = _DIMENSION.unpack_from(body.data, body.take(_DIMENSION.size))
        form = _LAYOUTS[entry]
        fields[name] = tuple(form.entry(**form.values(body.data, body.take(size), size)) for _ in range(count))
    for name, prefix, since in texts:
        if since > version:
            continue
        start = body.take(prefix)
        length = int.from_bytes(body.data[start:start + prefix], "little")
        start = body.take(length)
        fields[name] = bytes(body.data[start:start + length]).decode() or None
    return message(**fields)


def encode(message, id: Optional[int] = None, index: Optional[int] = None, rate_remaining: Optional[int] = None) -> bytes:
    """Returns the bytes of a message; a frame is one or more of them, joined."""
    template = _TEMPLATES[type(message)]
    _, layout, groups, texts = _MESSAGES[template]
    block = b"" if layout is None else _LAYOUTS[layout].pack(message)
    parts = [block]
    for name, entry, _ in groups:
        entries = getattr(message, name)
        form = _LAYOUTS[entry]
        parts.append(_DIMENSION.pack(form.struct.size, len(entries)))
        parts.extend(form.pack(each) for each in entries)
    for name, prefix, _ in texts:
        text = (getattr(message, name) or "").encode()
        parts.append(len(text).to_bytes(prefix, "little") + text)
    body = b"".join(parts)
    body += bytes(-len(body) % 8)
    return _HEADER.pack(len(block), template, SCHEMA_ID, SCHEMA_VERSION, _HEADER.size + len(body),
                        _NULL_H if index is None else index, _NULL_H if rate_remaining is None else rate_remaining,
                        _NULL_Q if id is None else id) + body`;
