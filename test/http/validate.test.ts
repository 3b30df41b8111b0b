/**
 * How a schema explains what is wrong with a value. The explanation of an object of plain values is found field by field:
 * it must be the one that the validator gives, which a schema around it still takes. Texts over HTTP: bad-input.test.ts.
 */
import fc from "fast-check";
import type { TSchema } from "typebox";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { ApiError } from "../../server/errors.ts";
import { compileSchema } from "../../server/http/validate.ts";
import { AmendOrder, CancelOrder, OrdersQuery, PlaceOrder } from "../../server/trading/schemas.ts";
import { EFFORT } from "../support/projects.ts";
import { type ObjectSchema, wrongValues } from "./wrong-values.ts";

const PLACEMENT = { market_id: 1, outcome_id: 1, side: 1, price: 5000, quantity: 10 };

/** The rejection's message; "" where the schema accepts the value. */
function messageOf(schema: TSchema, value: unknown): string {
  try {
    compileSchema(schema)(value);
    return "";
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).kind.code).toBe(40000);
    return (error as ApiError).message;
  }
}

test.each([
  [{ ...PLACEMENT, price: 0 }, "price: must be >= 1"],
  [{ ...PLACEMENT, price: 1.5 }, "price: must be integer"],
  [{ ...PLACEMENT, side: 7, quantity: 0 }, "side: must be <= 2"],
  [{ market_id: 1, price: 0 }, "outcome_id: required"],
  [{ ...PLACEMENT, price: 0, colour: 1 }, "colour: unknown field"],
  [{ ...PLACEMENT, client_order_id: "" }, "client_order_id: must not be empty"],
  [
    { ...PLACEMENT, client_order_id: ".." },
    'client_order_id: must match pattern "^(\\.*[A-Za-z0-9_:-][A-Za-z0-9._:-]*|\\.{3,})$"',
  ],
  [null, "body: must be object"],
  [[PLACEMENT], "body: must be object"],
  [[], "body: must be object"],
])("of %j the explanation is %j", (value, message) => {
  expect(messageOf(PlaceOrder, value)).toBe(message);
});

test("an object's explanation is the same as inside another object", () => {
  const wrong = (schema: TSchema): fc.Arbitrary<object> => {
    const { properties } = schema as unknown as ObjectSchema;
    const fields = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => {
        const texts = wrongValues(field).filter((text) => isJson(text));
        const good = (PLACEMENT as Record<string, unknown>)[name];
        const values = texts.map((text) => JSON.parse(text) as unknown);
        return [name, fc.constantFrom(...values, ...(good === undefined ? [] : Array(2 * values.length).fill(good)))];
      }),
    );
    return fc.record({ ...fields, unknown: fc.constant(1) }, { requiredKeys: [] });
  };
  for (const schema of [PlaceOrder, AmendOrder, CancelOrder, OrdersQuery]) {
    const around = Type.Object({ around: schema }, { additionalProperties: false });
    fc.assert(
      fc.property(wrong(schema), (value) => {
        const inside = messageOf(around, { around: value });
        expect(messageOf(schema, value)).toBe(inside.replace(/^around\./, ""));
      }),
      { numRuns: 300 * EFFORT },
    );
  }
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
