/** A C program that decodes and encodes the golden vectors with docs/sbe/exchange_sbe.h, and reads damaged ones. */
import { blockOf, entryOf, snakeCase } from "./layouts.ts";
import { nullOf, type Value, type Values } from "./plain.ts";
import { BYTES, type Field, type Layout, type Message, type Schema } from "./schema.ts";
import type { Vector } from "./vectors.ts";

export function checkProgram(schema: Schema, vectors: readonly Vector[]): string {
  const functions = vectors.map((vector, at) => vectorText(schema, vector, at));
  const calls = vectors.map((_, at) => `  vector_${at}();\n`);
  return `${HEAD}\n${schema.messages.map(walkText).join("\n")}
static void walk(const struct exchange_message *message) {
  switch (message->header.template_id) {
${schema.messages.map(({ name, id }) => `    case ${id}: walk_${snakeCase(name)}(message); break;\n`).join("")}  }
}
${DAMAGE}
${functions.join("\n")}
int main(void) {\n${calls.join("")}  printf("${vectors.length}\\n");\n  return 0;\n}\n`;
}

/** Reads everything in a message, as long as it can be read. */
function walkText(message: Message): string {
  const { name, groups, texts } = message;
  const block = structOf(blockOf(message));
  const readBlock = `  { struct ${block} block = ${block.replace("exchange_", "exchange_read_")}(message); use(&block, sizeof block); }`;
  const readGroups = groups.map((group) => {
    const has = hasText(group.since);
    const entry = structOf(entryOf(group.name));
    const next = entry.replace("exchange_", "exchange_next_");
    return `  if (${has}exchange_next_group(&body, &group) < 0) return;
  { struct ${entry} entry; while (${next}(&group, &entry)) use(&entry, sizeof entry); }`;
  });
  const readTexts = texts.map(
    ({ prefix, since }) =>
      `  if (${hasText(since)}exchange_next_text${prefix * 8}(&body, &text) < 0) return;\n  use(text.bytes, text.length);`,
  );
  return `static void walk_${snakeCase(name)}(const struct exchange_message *message) {
  struct exchange_body body = exchange_body_of(message);
  struct exchange_group group;
  struct exchange_text text;
  (void)body; (void)group; (void)text;
${[...(message.length === 0 ? [] : [readBlock]), ...readGroups, ...readTexts].join("\n")}
}`;
}

/** Walks end where the sender's version does. */
const hasText = (since: number): string => (since === 1 ? "" : `!exchange_has(&body, ${since}) || `);

const structOf = (name: string): string => `exchange_${snakeCase(name)}`;

function vectorText(schema: Schema, vector: Vector, at: number): string {
  const message = schema.messages.find(({ name }) => name === vector.template)!;
  const { header, name } = vector;
  const bytes = vector.hex.match(/../g)!.map((byte) => `0x${byte}`);
  const block = snakeCase(blockOf(message));
  const steps: string[] = [];
  const again: string[] = [];
  if (message.length > 0) {
    steps.push(`  block = exchange_read_${block}(&message);`, ...checks("block", message, vector.fields));
  }
  for (const group of message.groups) {
    if (isLater(group.since, steps)) continue;
    const entries = vector.groups[group.name]!;
    const entry = snakeCase(entryOf(group.name));
    steps.push("  CHECK(exchange_next_group(&body, &group) == 0);", `  CHECK(group.count == ${entries.length});`);
    again.push(`exchange_add_group(&frame, group_${group.name}, ${group.length}, ${entries.length})`);
    for (const [i, values] of entries.entries()) {
      steps.push(`  CHECK(exchange_next_${entry}(&group, &group_${group.name}[${i}]) == 1);`);
      steps.push(...checks(`group_${group.name}[${i}]`, group, values));
    }
    steps.push(`  CHECK(exchange_next_${entry}(&group, &group_${group.name}[0]) == 0);`);
  }
  for (const { name: text, prefix, since } of message.texts) {
    if (isLater(since, steps)) continue;
    const literal = [...Buffer.from(vector.texts[text] ?? "")].map(
      (byte) => `\\x${byte.toString(16).padStart(2, "0")}`,
    );
    steps.push(`  CHECK(exchange_next_text${prefix * 8}(&body, &text) == 0);`);
    steps.push(
      `  CHECK(text.length == ${literal.length} && memcmp(text.bytes, "${literal.join("")}", ${literal.length}) == 0);`,
    );
    again.push(`exchange_add_text${prefix * 8}(&frame, "${literal.join("")}", ${literal.length})`);
  }
  function isLater(since: number, into: string[]): boolean {
    if (since > 1) into.push(`  CHECK(exchange_has(&body, ${since}) == ${vector.version >= since ? 1 : 0});`);
    return since > vector.version;
  }
  const begin = `exchange_begin_${snakeCase(message.name)}(&frame, ${word("uint64", header.id)}${message.length > 0 ? ", &block" : ""})`;
  const writes = [begin, ...again, "exchange_end(&frame)"];
  const isPlain = vector.version === schema.version && vector.blockLength === message.length;
  const encode = `${writes.map((write) => `  CHECK(${write} == 0);\n`).join("")}
  patch(frame.bytes, ${word("uint16", header.index)}, ${word("uint16", header.rateRemaining)});
  CHECK(frame.length == sizeof bytes && memcmp(frame.bytes, bytes, sizeof bytes) == 0);
  frame = exchange_frame_in(room, sizeof bytes - 1);
  CHECK(${writes.map((write) => `${write} < 0`).join(" || ")});
  CHECK(frame.length == 0);`;
  return `/* ${message.name}: ${name} */
static void vector_${at}(void) {
  static const uint8_t bytes[] = { ${bytes.join(", ")} };
  static uint8_t room[sizeof bytes];
  struct exchange_frame frame = exchange_frame_in(room, sizeof room);
  struct exchange_message message;
  struct exchange_body body;
  struct exchange_group group;
  struct exchange_text text;
  size_t offset = 0;
${message.length > 0 ? `  struct exchange_${block} block = EXCHANGE_${block.toUpperCase()}_INIT;\n` : ""}${message.groups
  .map((group) => `  struct exchange_${snakeCase(entryOf(group.name))} group_${group.name}[4];\n`)
  .join("")}  CHECK(exchange_next(bytes, sizeof bytes, &offset, &message) == 1);
  CHECK(offset == sizeof bytes && message.header.template_id == ${message.id} && message.header.version == ${vector.version});
  CHECK(message.header.id == ${word("uint64", header.id)} && message.header.index == ${word("uint16", header.index)});
  CHECK(message.header.rate_remaining == ${word("uint16", header.rateRemaining)});
  body = exchange_body_of(&message);
  (void)group; (void)text; (void)body; (void)frame;
${steps.join("\n")}
${isPlain ? encode : ""}
  damage(bytes, sizeof bytes);
}
`;
}

function checks(path: string, layout: Layout, values: Values): string[] {
  return layout.fields
    .filter(({ type }) => type.kind !== "padding")
    .map((field) => `  CHECK(${path}.${snakeCase(field.name)} == ${valueText(field, values[field.name]!)});`);
}

function valueText({ type }: Field, value: Value): string {
  if (type.kind === "number" || value === null)
    return word(type.primitive, value as string | null, String(nullOf(type)));
  const words = typeof value === "string" ? [value] : value;
  return (
    words
      .map((each) => `EXCHANGE_${snakeCase(type.name).toUpperCase()}_${snakeCase(each).toUpperCase()}`)
      .join(" + ") || "0"
  );
}

function word(primitive: keyof typeof BYTES, value: string | null, whenNull?: string): string {
  const text = value ?? whenNull ?? String(2n ** BigInt(8 * BYTES[primitive]) - 1n);
  if (text === String(-(2n ** 63n))) return "INT64_MIN";
  return primitive === "int64" ? `INT64_C(${text})` : `UINT64_C(${text})`;
}

const HEAD = `#include <stdio.h>
#include <stdlib.h>
#include "exchange_sbe.h"
#define CHECK(holds) do { if (!(holds)) { fprintf(stderr, "%s:%d: %s\\n", __func__, __LINE__, #holds); exit(1); } } while (0)
static volatile uint8_t sink;
static void use(const void *bytes, size_t length) {
  size_t i;
  for (i = 0; i < length; i++) sink ^= ((const uint8_t *)bytes)[i];
}`;

const DAMAGE = `static void patch(uint8_t *bytes, uint16_t index, uint16_t rate_remaining) {
  memcpy(bytes + offsetof(struct exchange_message_header, index), &index, sizeof index);
  memcpy(bytes + offsetof(struct exchange_message_header, rate_remaining), &rate_remaining, sizeof rate_remaining);
}
/* Reads every shorter frame, and the frame with each byte changed, from memory of exactly that size. */
static void damage(const uint8_t *bytes, size_t length) {
  size_t i, offset;
  struct exchange_message message;
  for (i = 1; i < length; i++) {
    uint8_t *copy = (uint8_t *)malloc(i);
    memcpy(copy, bytes, i);
    offset = 0;
    CHECK(exchange_next(copy, i, &offset, &message) == -1);
    free(copy);
  }
  for (i = 0; i < length; i++) {
    uint8_t *copy = (uint8_t *)malloc(length);
    memcpy(copy, bytes, length);
    copy[i] ^= 0xff;
    for (offset = 0; exchange_next(copy, length, &offset, &message) == 1;) walk(&message);
    free(copy);
  }
}`;
