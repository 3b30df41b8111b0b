/** Writes docs/sbe/exchange_sbe.h: a struct for each block and entry, and bounded readers and writers of messages. */
import { blockOf, entryOf, layoutsOf, type NamedLayout, snakeCase } from "./layouts.ts";
import type { Field, FieldType, Message, Primitive, Schema } from "./schema.ts";

const C_TYPES: Readonly<Record<Primitive, string>> = {
  ...{ uint8: "uint8_t", uint16: "uint16_t", uint32: "uint32_t", uint64: "uint64_t", int64: "int64_t" },
};
const NULLS: Readonly<Record<Primitive, string>> = {
  ...{ uint8: "EXCHANGE_NULL_U8", uint16: "EXCHANGE_NULL_U16", uint32: "EXCHANGE_NULL_U32" },
  ...{ uint64: "EXCHANGE_NULL_U64", int64: "EXCHANGE_NULL_I64" },
};

export function cText(schema: Schema): string {
  const layouts = layoutsOf(schema);
  return [
    HEAD,
    `#define EXCHANGE_SCHEMA_ID ${schema.id}\n#define EXCHANGE_SCHEMA_VERSION ${schema.version}\n${NULL_CONSTANTS}`,
    enumText("Template ids.", schema.messages.map(({ name, id }) => [`TEMPLATE_${upper(name)}`, id])),
    ...schema.choices.map(choiceText),
    "#pragma pack(push, 1)",
    structText({ ...schema.header, name: "MessageHeader", users: [], isBlock: true, isRequest: false }, "Before each block."),
    ...layouts.map((layout) => structText(layout, commentOf(layout, schema))),
    "#pragma pack(pop)",
    READERS,
    ...layouts.map((layout) => (layout.isBlock ? blockReaderText(layout) : entryReaderText(layout))),
    WRITERS,
    ...schema.messages.map(beginText),
    "#endif",
  ].join("\n\n").concat("\n"); // biome-ignore format: one line
}

const upper = (name: string): string => snakeCase(name).toUpperCase();
const structOf = (name: string): string => `struct exchange_${snakeCase(name)}`;

function enumText(comment: string, entries: readonly (readonly [string, number])[]): string {
  const lines = entries.map(([name, value]) => `  EXCHANGE_${name} = ${value}`).join(",\n");
  return `/* ${comment} */\nenum {\n${lines}\n};`;
}

function choiceText({ name, kind, values, description }: FieldType): string {
  const text = description === "" ? name : `${name}: ${description}`;
  return enumText(
    kind === "set" ? `${name}: bits.` : `${text}.`,
    [...values].map(([word, code]) => [`${upper(name)}_${upper(word)}`, kind === "set" ? 1 << code : code]),
  );
}

/** The messages of a layout, and what follows the block in each. */
function commentOf({ name, isBlock, users }: NamedLayout, { messages }: Schema): string {
  if (!isBlock) return `An entry of ${users.map(snakeCase).join(", ")}.`;
  return messages.filter((message) => blockOf(message) === name).map(bodyOf).join("\n   "); // biome-ignore format: one line
}

function bodyOf({ name, id, description, groups, texts }: Message): string {
  const parts = [
    ...groups.map(
      ({ name: group, since }) => `group ${snakeCase(group)} of ${structOf(entryOf(group))}${sinceText(since)}`,
    ),
    ...texts.map((text) => `text${text.prefix * 8} ${snakeCase(text.name)}${sinceText(text.since)}`),
  ];
  const body = parts.length === 0 ? "" : ` Behind the block: ${parts.join(", ")}.`;
  return `${name} (${id}): ${description.replace(/\.?$/, ".")}${body}`;
}

const sinceText = (since: number): string => (since === 1 ? "" : ` (since version ${since})`);

function structText(layout: NamedLayout, comment: string): string {
  const { name, fields, length } = layout;
  const lines = fields.map((field) => `  ${C_TYPES[field.type.primitive]} ${snakeCase(field.name)};${remark(field)}\n`);
  const initial = fields.map((field) => (field.isOptional ? NULLS[field.type.primitive] : "0")).join(", ");
  return [
    `/* ${comment} */\n${structOf(name)} {\n${lines.join("")}};`,
    `EXCHANGE_ASSERT(exchange_${snakeCase(name)}_length, sizeof(${structOf(name)}) == ${length});`,
    `/* Null where null is allowed, otherwise 0. */\n#define EXCHANGE_${upper(name)}_INIT { ${initial} }`,
  ].join("\n");
}

function remark({ type, isOptional, since }: Field): string {
  if (type.kind === "padding") return "";
  const text = type.kind === "number" ? type.description.replaceAll(/;? ?null: [^;]+/g, "") : type.name;
  const later = since === 1 ? "" : `since version ${since}, null before`;
  const both = [text, isOptional ? "may be null" : "", later].filter((each) => each !== "").join("; ");
  return both === "" ? "" : ` /* ${both} */`;
}

function blockReaderText({ name, fields }: NamedLayout): string {
  return `static inline ${structOf(name)} exchange_read_${snakeCase(name)}(const struct exchange_message *message) {
  static const ${structOf(name)} absent = { ${fields.map(absentOf).join(", ")} };
  ${structOf(name)} block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}`;
}

function entryReaderText({ name, fields }: NamedLayout): string {
  return `static inline int exchange_next_${snakeCase(name)}(struct exchange_group *group, ${structOf(name)} *entry) {
  static const ${structOf(name)} absent = { ${fields.map(absentOf).join(", ")} };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}`;
}

const absentOf = ({ type }: Field): string =>
  type.kind === "padding" || type.kind === "set" ? "0" : NULLS[type.primitive];

function beginText(message: Message): string {
  const { name, length } = message;
  const template = `EXCHANGE_TEMPLATE_${upper(name)}`;
  const begin = `static inline int exchange_begin_${snakeCase(name)}(struct exchange_frame *frame, uint64_t id`;
  if (length === 0) return `${begin}) {\n  return exchange_begin(frame, ${template}, id, NULL, 0);\n}`;
  return `${begin},
    const ${structOf(blockOf(message))} *block) {
  return exchange_begin(frame, ${template}, id, block, sizeof *block);
}`;
}

const HEAD = `/* Orders and market data of the exchange in binary: structs, readers and writers. C99 and C++, no dependency.
   Generated from sbe.xml by "npm run sbe"; docs/sbe.md describes the protocol. */
#ifndef EXCHANGE_SBE_H
#define EXCHANGE_SBE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the structs are little endian: swap the bytes of each field"
#endif

#define EXCHANGE_ASSERT(name, holds) typedef char name[(holds) ? 1 : -1]`;

const NULL_CONSTANTS = `#define EXCHANGE_NULL_U8 UINT8_MAX
#define EXCHANGE_NULL_U16 UINT16_MAX
#define EXCHANGE_NULL_U32 UINT32_MAX
#define EXCHANGE_NULL_U64 UINT64_MAX
#define EXCHANGE_NULL_I64 INT64_MIN`;

const READERS = `/* Reading. Structs are copied out of the frame, whose numbers needn't be aligned. */

/* One message of a frame; valid as long as the frame's bytes. */
struct exchange_message {
  struct exchange_message_header header;
  const uint8_t *block;
  const uint8_t *end;
};

/* What follows a block: its groups, then its texts, in the order of the schema. */
struct exchange_body {
  const uint8_t *at;
  const uint8_t *end;
  uint16_t version;
};

struct exchange_group {
  const uint8_t *at;
  uint16_t entry_length;
  uint16_t count;
};

/* Not terminated by a 0; length 0 stands for null. */
struct exchange_text {
  const char *bytes;
  size_t length;
};

/* Reads the message at *offset of a frame, and moves *offset behind it. Returns 1, 0 at the frame's end, and -1 for bytes
   that are no message. Skip messages with a schema_id or a template_id that you don't know. */
static inline int exchange_next(const void *frame, size_t length, size_t *offset, struct exchange_message *message) {
  const uint8_t *start = (const uint8_t *)frame + *offset;
  size_t left = length - *offset;
  uint32_t message_length;
  if (left == 0) return 0;
  if (left < sizeof message->header) return -1;
  memcpy(&message->header, start, sizeof message->header);
  message_length = message->header.message_length;
  if (message_length % 8 != 0 || message_length > left) return -1;
  if (message_length < sizeof message->header + message->header.block_length) return -1;
  message->block = start + sizeof message->header;
  message->end = start + message_length;
  *offset += message_length;
  return 1;
}

/* Copies what the sender's version has of a struct, and leaves the rest null. */
static inline void exchange_copy(void *into, const void *absent, size_t size, const uint8_t *bytes, size_t length) {
  memcpy(into, absent, size);
  memcpy(into, bytes, length < size ? length : size);
}

static inline struct exchange_body exchange_body_of(const struct exchange_message *message) {
  struct exchange_body body;
  body.at = message->block + message->header.block_length;
  body.end = message->end;
  body.version = message->header.version;
  return body;
}

/* 1 where the sender's version has the next group or text: ask before reading one that is marked "since version". */
static inline int exchange_has(const struct exchange_body *body, uint16_t since) {
  return body->version >= since;
}

/* Reads the next group's size; its entries follow by exchange_next_..., all of them before the next group or text.
   Returns 0, or -1 for bytes that are no group. */
static inline int exchange_next_group(struct exchange_body *body, struct exchange_group *group) {
  uint16_t sizes[2];
  if ((size_t)(body->end - body->at) < sizeof sizes) return -1;
  memcpy(sizes, body->at, sizeof sizes);
  group->at = body->at + sizeof sizes;
  group->entry_length = sizes[0];
  group->count = sizes[1];
  if ((size_t)(body->end - group->at) < (size_t)sizes[0] * sizes[1]) return -1;
  body->at = group->at + (size_t)sizes[0] * sizes[1];
  return 0;
}

static inline int exchange_next_entry(struct exchange_group *group, void *into, const void *absent, size_t size) {
  if (group->count == 0) return 0;
  exchange_copy(into, absent, size, group->at, group->entry_length);
  group->at += group->entry_length;
  group->count--;
  return 1;
}

static inline int exchange_next_text(struct exchange_body *body, size_t prefix, struct exchange_text *text) {
  size_t left = (size_t)(body->end - body->at);
  if (left < prefix) return -1;
  text->length = prefix == 1 ? body->at[0] : (size_t)(body->at[0] | body->at[1] << 8);
  if (left - prefix < text->length) return -1;
  text->bytes = (const char *)body->at + prefix;
  body->at += prefix + text->length;
  return 0;
}

/* Read the next text. Return 0, or -1 for bytes that are no text. */
static inline int exchange_next_text8(struct exchange_body *body, struct exchange_text *text) {
  return exchange_next_text(body, 1, text);
}

static inline int exchange_next_text16(struct exchange_body *body, struct exchange_text *text) {
  return exchange_next_text(body, 2, text);
}

/* Blocks of messages, and entries: exchange_next_... returns 1, or 0 behind a group's last entry. */`;

const WRITERS = `/* Writing: begin a message, add its groups and texts in the order of the schema, and end it. All return 0, or -1 when
   the frame is full: its length is then that of the whole messages before. */

struct exchange_frame {
  uint8_t *bytes;
  size_t capacity;
  /* Bytes of whole messages: what to send. */
  size_t length;
  /* End of the message that was begun; 0 once it failed. */
  size_t end;
};

static inline struct exchange_frame exchange_frame_in(void *bytes, size_t capacity) {
  struct exchange_frame frame;
  frame.bytes = (uint8_t *)bytes;
  frame.capacity = capacity;
  frame.length = 0;
  frame.end = 0;
  return frame;
}

static inline int exchange_add(struct exchange_frame *frame, const void *bytes, size_t length) {
  if (frame->end == 0 || length > frame->capacity - frame->end) {
    frame->end = 0;
    return -1;
  }
  if (length > 0) memcpy(frame->bytes + frame->end, bytes, length);
  frame->end += length;
  return 0;
}

static inline int exchange_begin(struct exchange_frame *frame, uint16_t template_id, uint64_t id, const void *block,
    size_t block_length) {
  struct exchange_message_header header = EXCHANGE_MESSAGE_HEADER_INIT;
  header.block_length = (uint16_t)block_length;
  header.template_id = template_id;
  header.schema_id = EXCHANGE_SCHEMA_ID;
  header.version = EXCHANGE_SCHEMA_VERSION;
  header.id = id;
  if (frame->capacity - frame->length < sizeof header) {
    frame->end = 0;
    return -1;
  }
  memcpy(frame->bytes + frame->length, &header, sizeof header);
  frame->end = frame->length + sizeof header;
  return exchange_add(frame, block, block_length);
}

static inline int exchange_add_group(struct exchange_frame *frame, const void *entries, uint16_t entry_length,
    uint16_t count) {
  uint16_t sizes[2];
  sizes[0] = entry_length;
  sizes[1] = count;
  if (exchange_add(frame, sizes, sizeof sizes) < 0) return -1;
  return exchange_add(frame, entries, (size_t)entry_length * count);
}

/* Adds a text of up to 254 bytes; 0 bytes are null. */
static inline int exchange_add_text8(struct exchange_frame *frame, const char *bytes, uint8_t length) {
  if (exchange_add(frame, &length, 1) < 0) return -1;
  return exchange_add(frame, bytes, length);
}

static inline int exchange_add_text16(struct exchange_frame *frame, const char *bytes, uint16_t length) {
  if (exchange_add(frame, &length, sizeof length) < 0) return -1;
  return exchange_add(frame, bytes, length);
}

static inline int exchange_end(struct exchange_frame *frame) {
  static const uint8_t zeros[8] = { 0 };
  uint32_t message_length;
  if (frame->end == 0) return -1;
  if (exchange_add(frame, zeros, (8 - (frame->end - frame->length) % 8) % 8) < 0) return -1;
  message_length = (uint32_t)(frame->end - frame->length);
  memcpy(frame->bytes + frame->length + offsetof(struct exchange_message_header, message_length), &message_length,
      sizeof message_length);
  frame->length = frame->end;
  return 0;
}`;
