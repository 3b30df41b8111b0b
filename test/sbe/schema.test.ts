/** What the schema's reader rejects: a layout that clients can't copy, and words that the engine doesn't know. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ROOT } from "../../bench/support/root.ts";
import { checkChoices } from "./choices.ts";
import { readSchema } from "./schema.ts";

const XML = readFileSync(fileURLToPath(new URL("server/websocket/sbe/sbe.xml", ROOT)), "utf8");
const QUANTITY = '<field name="quantity" id="3" type="Quantity" offset="8"/>';

/** The schema with one passage replaced, which must be there. */
function changed(passage: string, by: string): string {
  expect(XML).toContain(passage);
  return XML.replace(passage, by);
}

describe("a schema is rejected that", () => {
  test.each([
    ["leaves a gap", QUANTITY, "", "PlaceOrder.marketId: leaves 4 bytes unnamed"],
    [
      "has overlapping fields",
      QUANTITY,
      QUANTITY.replace("8", "6"),
      "PlaceOrder.quantity: overlaps the field before it",
    ],
    [
      "has an unaligned field",
      '<field name="price" id="2" type="OptionalPriceWord" offset="4"/>',
      '<field name="price" id="2" type="OptionalId" offset="4"/>',
      "PlaceOrder.price: must be at a multiple of 8 bytes",
    ],
    [
      "states another length",
      'id="1" blockLength="48"',
      'id="1" blockLength="56"',
      "PlaceOrder: its fields take 48 bytes",
    ],
    [
      "has a block that isn't a multiple of 8",
      '<field name="padding2" id="14" type="Padding16" offset="46"/>',
      "",
      "PlaceOrder: its fields take 46 bytes",
    ],
    [
      "uses a type that it doesn't define",
      'type="Quantity" offset="8"',
      'type="Amount" offset="8"',
      "PlaceOrder.quantity: unknown type Amount",
    ],
    ["gives two fields one id", 'name="quantity" id="3"', 'name="quantity" id="2"', "PlaceOrder: 2 stands twice"],
    ["gives two fields one name", 'name="quantity" id="3"', 'name="price" id="3"', "PlaceOrder: price stands twice"],
    [
      "gives two messages one template",
      'name="CancelOrder" id="2"',
      'name="CancelOrder" id="1"',
      "messages: 1 stands twice",
    ],
    ["is big endian", 'byteOrder="littleEndian"', 'byteOrder="bigEndian"', "byteOrder: must be littleEndian"],
    [
      "has a block above 64 bytes",
      'blockLength="64" description="response',
      'blockLength="72" description="response',
      "OrderAccepted: its fields take 64 bytes",
    ],
  ])("%s", (_, passage, by, message) => {
    expect(() => readSchema(changed(passage, by))).toThrow(message);
  });

  test("has a block of 72 bytes", () => {
    const longer = changed(
      '<field name="flags" id="16" type="OrderFlags" offset="63"/>',
      '<field name="flags" id="16" type="OrderFlags" offset="63"/><field name="more" id="17" type="Id" offset="64"/>',
    );
    const stated = longer.replace(
      'name="OrderAccepted" id="102" blockLength="64"',
      'name="OrderAccepted" id="102" blockLength="72"',
    );
    expect(() => readSchema(stated)).toThrow("OrderAccepted: blockLength must be a multiple of 8 up to 64");
  });

  test("has a block of 4 bytes", () => {
    const shorter = changed(
      '<field name="timeout" id="1" type="Milliseconds" offset="0"/>\n    <field name="padding" id="2" type="Padding32" offset="4"/>',
      '<field name="timeout" id="1" type="Milliseconds" offset="0"/>',
    );
    const stated = shorter.replace(
      'name="CancelAfter" id="5" blockLength="8"',
      'name="CancelAfter" id="5" blockLength="4"',
    );
    expect(() => readSchema(stated)).toThrow("CancelAfter: blockLength must be a multiple of 8 up to 64");
  });

  test("differs from the engine in a number, a word more or a word less", () => {
    const check = (passage: string, by: string) => () => checkChoices(readSchema(changed(passage, by)));
    const late = '<validValue name="tooLate">10</validValue>';
    expect(check(late, late.replace("10", "14"))).toThrow("Reason.tooLate is 14 in the schema, 10 in the engine");
    expect(check(late, "")).toThrow("Reason.tooLate is undefined in the schema, 10 in the engine");
    expect(check(late, `${late}<validValue name="other">14</validValue>`)).toThrow(
      "Reason.other is 14 in the schema, undefined in the engine",
    );
    expect(check('<validValue name="marketIoc">18', '<validValue name="marketIoc">17')).toThrow(
      "OrderTerms.marketIoc is 17",
    );
  });
});

test("the project's schema is one", () => {
  const schema = readSchema(XML);
  checkChoices(schema);
  expect(schema.header.length).toBe(24);
});
