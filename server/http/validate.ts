/** Compiled schemas, and their errors in words: which field, which bound. */
import type { Static, TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { type ApiError, badRequest } from "../errors.ts";
import { isObject } from "../util/is-object.ts";

/** Returns the value itself, typed. @throws ApiError 40000 that names the field */
export type Check<T> = (value: unknown) => T;

/** Routes share schemas: most have an empty query. */
const compiled = new WeakMap<TSchema, Check<unknown>>();

/** Compiles a schema at its first use: that takes a millisecond, and a start would wait for two hundred. */
export function compileSchema<T extends TSchema>(schema: T): Check<Static<T>> {
  let found = compiled.get(schema);
  if (found === undefined) {
    found = compile(schema);
    compiled.set(schema, found);
  }
  return found as Check<Static<T>>;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, PropertySchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}

type PropertySchema = TSchema & {
  readonly type?: string;
  readonly maxItems?: number;
  readonly anyOf?: readonly PropertySchema[];
  readonly enum?: readonly unknown[];
};

function compile<T extends TSchema>(schema: T): Check<Static<T>> {
  let validator: Validator<Record<never, never>, T> | null = null;
  const { properties = null, additionalProperties } = schema as ObjectSchema;
  let explainFlat: ((value: object) => ApiError | null) | null = null;
  return (value) => {
    validator ??= Compile(schema);
    if (validator.Check(value)) return value as Static<T>;
    // Explaining the errors of each of sixty thousand items would take a second.
    for (const [name, { maxItems = Number.POSITIVE_INFINITY }] of Object.entries(properties ?? {})) {
      const list = (value as Record<string, unknown> | null)?.[name];
      if (Array.isArray(list) && list.length > maxItems) throw badRequest(`${name}: at most ${maxItems} items`);
    }
    // Of many unknown fields it names one: listing them all would take milliseconds.
    if (properties !== null && additionalProperties === false && isObject(value)) {
      for (const name of Object.keys(value)) {
        if (!Object.hasOwn(properties, name)) throw badRequest(`${fieldName("", name)}: unknown field`);
      }
      explainFlat ??= flatExplanation(schema as ObjectSchema);
      const error = explainFlat(value);
      if (error !== null) throw error;
    }
    throw explain(validator.Errors(value));
  };
}

/**
 * The same explanation for an object of plain values, in a third of the time: the validator's own looks at all fields, and
 * makes a pattern for each. Null where it finds nothing, or where fields may have fields of their own.
 */
function flatExplanation({ properties = {}, required = [] }: ObjectSchema): (value: object) => ApiError | null {
  if (Object.values(properties).some(isNested)) return () => null;
  const fields = Object.entries(properties).map(([name, property]) => ({
    name,
    property,
    validator: null as Validator<Record<never, never>, PropertySchema> | null,
  }));
  return (value) => {
    for (const name of required) if (!Object.hasOwn(value, name)) return badRequest(`${name}: required`);
    for (const field of fields) {
      const found = (value as Record<string, unknown>)[field.name];
      if (found === undefined) continue;
      field.validator ??= Compile(field.property);
      if (!field.validator.Check(found)) return explain(field.validator.Errors(found), field.name);
    }
    return null;
  };
}

const PLAIN_TYPES = ["integer", "number", "string", "boolean", "null"];

function isNested({ type, anyOf, enum: values }: PropertySchema): boolean {
  if (anyOf !== undefined) return anyOf.some(isNested);
  return values === undefined && !PLAIN_TYPES.includes(type ?? "");
}

interface Finding {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

/** @param field the plain field that was checked, "" for the whole body */
function explain(errors: readonly Finding[], field = ""): ApiError {
  const found = errors.find(({ keyword }) => keyword === "additionalProperties") ?? errors[0];
  if (found === undefined) return badRequest("invalid request");
  const params = found.params as Record<string, unknown>;
  const path = field === "" ? found.instancePath.slice(1).replaceAll("/", ".") : field;
  if (found.keyword === "additionalProperties") {
    const unknown = params["additionalProperties"] as string[] | undefined;
    return badRequest(`${fieldName(path, unknown?.[0])}: unknown field`);
  }
  // Of many unknown fields the validator lists some and omits the summary.
  if (found.keyword === "boolean") return badRequest(`${fieldName("", path)}: unknown field`);
  if (found.keyword === "required") {
    const missing = params["requiredProperties"] as string[] | undefined;
    return badRequest(`${fieldName(path, missing?.[0])}: required`);
  }
  if (found.keyword === "enum") {
    const allowed = params["allowedValues"] as unknown[] | undefined;
    return badRequest(`${path}: must be one of ${allowed?.join(", ") ?? "the documented values"}`);
  }
  // For an optional, nullable field, the error of the non-null branch says more than "anyOf".
  const better = errors.find((error) => error.instancePath === found.instancePath && error.keyword !== "anyOf");
  const { keyword, message, params: bounds } = better ?? found;
  const isEmpty = keyword === "minLength" && (bounds as { limit?: number }).limit === 1;
  return badRequest(`${path === "" ? "body" : path}: ${isEmpty ? "must not be empty" : message}`);
}

function fieldName(path: string, name: string | undefined): string {
  const shown = JSON.stringify(name ?? "")
    .slice(1, 65)
    .replace(/"$/, "");
  return path === "" ? shown : `${path}.${shown}`;
}

/**
 * Parses a query string into typed values by the schema's types: digits for integers, true and false for booleans. Any
 * other value stays text and fails the check, so that the message names the field.
 */
export function compileQuery<T extends TSchema>(schema: T): Check<Static<T>> {
  const validate = compileSchema(schema);
  const properties = (schema as unknown as { properties: Record<string, { type?: string }> }).properties;
  return (value) => {
    const text = value as string;
    if (text === "") return validate({});
    const found: Record<string, unknown> = Object.create(null);
    for (const [name, raw] of new URLSearchParams(text)) {
      if (name in found) throw badRequest(`${name.slice(0, 64)}: given twice`);
      found[name] = coerce(properties[name]?.type, raw);
    }
    return validate({ ...found });
  };
}

function coerce(type: string | undefined, raw: string): unknown {
  if (type === "integer" && /^-?\d{1,16}$/.test(raw)) return Number(raw);
  if (type === "boolean" && (raw === "true" || raw === "false")) return raw === "true";
  return raw;
}
