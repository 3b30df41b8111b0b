/**
 * The shapes of requests and answers, written once: the server validates with them, the tests check answers against
 * them, and the API document is made of them. Money is in micro-USDC, prices in BPS, times in ms since the epoch.
 */

/**
 * The shapes of requests and answers, written once: the server validates with them, the tests check answers against
 * them, and the API document is made of them. Money is in micro-USDC, prices in BPS, times in ms since the epoch.
 */
import Type, { type TProperties, type TSchema, type TSchemaOptions } from "typebox";
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from "./limits.ts";

/** An object whose fields are all there is: anything else is refused. */
export const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** The same schema in words of its own. */
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
    Type.Integer({ minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT, description: "items of a page" }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: "next_cursor of the page before, as it was given" }),
  ),
};

export const NoQuery = closed({});

export const PageQuery = closed(page);

export const span = {
  from: Type.Optional(about(Time, "ms since the Unix epoch: made at that time or later")),
  to: Type.Optional(about(Time, "ms since the Unix epoch: made at that time or before")),
};

export const Nothing = Type.Null();

/** One page of `item`, newest first. */
export function pageOf<T extends TSchema>(item: T) {
  const NextCursor = Type.String({ description: "of the next page; null at the end" });
  return closed({ items: Type.Array(item), next_cursor: nullable(NextCursor) });
}

export const rateState = {
  limit: Type.Integer({ minimum: 1, description: "requests a minute" }),
  remaining: Type.Integer({ minimum: 0 }),
  reset: Type.Integer({ minimum: 0, description: "seconds until the whole limit is free again" }),
};

export const Rate = closed(rateState);

export const Now = closed({ now: Time });

/** A body that is no JSON. */
export const Text = Type.String();

/** A document of another format that is JSON. */
export const JsonDocument = Type.Object({}, { additionalProperties: true });

/** Every JSON answer: `data` on success, null on an error; trace_id on 5xx only. */
export function envelopeOf(data: TSchema) {
  return closed({ code: Type.Integer(), msg: Type.String(), data, trace_id: Type.Optional(Type.String()) });
}
