/**
 * Shapes that every room's schemas share: ids, times, money, pages, the envelope. The server validates with the schemas,
 * the tests check responses against them, and the API documents are generated from them. Imports no other room.
 */
import Type, { type TProperties, type TSchema, type TSchemaOptions } from "typebox";
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from "./limits.ts";

/** An object without further fields: the server rejects unknown ones. */
export const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** The same schema with another description. */
export function about<T extends TSchema>(schema: T, description: string): T {
  const clone = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) as T;
  return Object.assign(clone, { description });
}

/** One of these words. Client generators need the type as well. */
export const names = <Word extends string>(values: readonly (Word | null)[], options: TSchemaOptions = {}) =>
  Type.Enum(
    values.filter((value) => value !== null),
    { type: "string", ...options },
  );

export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

export const Time = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "ms since the Unix epoch",
});

export const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const Money = Type.Integer({ description: "micro-USDC" });

export const money = (description: string) => Type.Integer({ description: `micro-USDC: ${description}` });

export const shares = (description: string) => Type.Integer({ minimum: 0, description: `shares: ${description}` });

export const page = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT, description: "items per page" }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: "next_cursor of the previous page, unchanged" }),
  ),
};

export const NoQuery = closed({});

export const PageQuery = closed(page);

export const span = {
  from: Type.Optional(about(Time, "ms since the Unix epoch: created at or after this time")),
  to: Type.Optional(about(Time, "ms since the Unix epoch: created at or before this time")),
};

export const Nothing = Type.Null();

export const NextCursor = Type.String({ description: "of the next page; null on the last page" });

/** One page of `item`, newest first. */
export function pageOf<T extends TSchema>(item: T) {
  return closed({ items: Type.Array(item), next_cursor: nullable(NextCursor) });
}

export const rateState = {
  limit: Type.Integer({ minimum: 1, description: "requests a minute" }),
  remaining: Type.Integer({ minimum: 0 }),
  reset: Type.Integer({ minimum: 0, description: "seconds until the full limit is available again" }),
};

export const Rate = closed(rateState);

export const Now = closed({ now: Time });

/** A body other than JSON. */
export const Text = Type.String();

/** A JSON document in a format of its own. */
export const JsonDocument = Type.Object({}, { additionalProperties: true });

/** Every JSON response: `data` is null on errors; only 5xx have a trace_id. */
export function envelopeOf(data: TSchema) {
  return closed({ code: Type.Integer(), msg: Type.String(), data, trace_id: Type.Optional(Type.String()) });
}
