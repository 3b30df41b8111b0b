/** What a client can get wrong in a field, by its schema: texts of queries and JSON texts of bodies. */

interface FieldSchema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly FieldSchema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: ObjectSchema;
}
export type ObjectSchema = { readonly properties: Readonly<Record<string, FieldSchema>>; readonly required?: string[] };

/** Texts of a query that are no value of the field. */
export const wrongTexts = ({ type, minimum, maximum, maxLength, pattern, enum: names }: FieldSchema): string[] => {
  if (type === "integer") {
    const edges = [Number(minimum) - 1, Number(maximum) + 1].filter((edge) => !Number.isNaN(edge)).map(String);
    return ["", "abc", "1.5", "1e3", "0x1", "+1", " 1", "1,2", "NaN", "9".repeat(30), "\0", ...edges];
  }
  if (type === "boolean") return ["", "1", "yes", "TRUE", "null"];
  if (names !== undefined) return ["", "x", String(names[0]).toUpperCase(), `${String(names[0])} `];
  const texts = maxLength === undefined ? [] : ["a".repeat(maxLength + 1)];
  return pattern === undefined ? texts : [...texts, "", "a b", "a".repeat(129), "ü", "a\n"];
};

/** The fields as JSON text, in which the value of one field may be any text, JSON or not. */
export const textWith = (fields: Readonly<Record<string, unknown>>, name: string, value: string): string => {
  const rest = Object.entries(fields).filter(([key]) => key !== name);
  return `{${[...rest.map(([key, v]) => `"${key}":${JSON.stringify(v)}`), `"${name}":${value}`].join(",")}}`;
};

/** Containers within containers. */
export const deep = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);

/** JSON texts that are no value of the field. */
export function wrongValues(schema: FieldSchema): string[] {
  const nullable = schema.anyOf?.some(({ type }) => type === "null") === true;
  const given = schema.anyOf?.[0] ?? schema;
  const { type, minimum, maximum, minItems, maxItems, minLength = 0, maxLength, pattern, enum: names } = given;
  if (type === "array") {
    const few = Number(minItems) > 0 ? ["[]"] : [];
    const many = `[${Array(Number(maxItems) + 1)
      .fill("{}")
      .join(",")}]`;
    const elements = ["[1]", "[null]", '["x"]', "[true]", "[[]]", deep("[", "]", 500)];
    return [
      ...few,
      many,
      ...elements,
      ...(nullable ? [] : ["null"]),
      "{}",
      '{"0":{},"length":1}',
      '""',
      '"[]"',
      "0",
      "true",
    ];
  }
  const notText = ["[]", "{}", "[1]", '{"a":1}', deep("[", "]", 500), ...(nullable ? [] : ["null"])];
  if (type === "integer") {
    const edges = [Number(minimum) - 1, Number(maximum) + 1];
    const numbers = ["1.5", "1e400", "-1e400", "9007199254740992", "1e-7", "0.1", "-2147483649", ...edges];
    if (Number(minimum) > 0) numbers.push("-0", "0");
    if (Number(maximum) < 2 ** 31) numbers.push("2147483648", "4294967297");
    return [...numbers.map(String), '"1"', '""', "true", "false", ...notText];
  }
  if (type === "boolean") return ["0", "1", '"true"', '""', ...notText];
  if (names !== undefined) return ['""', '"x"', `"${String(names[0]).toUpperCase()}"`, "0", "true", ...notText];
  const others = ["1", "true", ...notText];
  if (maxLength !== undefined) {
    const long = `"${"a".repeat(maxLength + 1)}"`;
    const unfit = pattern === undefined ? [] : ['"\\u0000"', '"a\\n"', '"\\ud800"'];
    return [...(minLength > 0 ? ['""'] : []), long, ...unfit, ...others];
  }
  return ['""', `"${"a".repeat(65)}"`, '"a b"', '"ü"', '"\\u0000"', '"\\ud800"', '"a\\n"', ...others];
}
