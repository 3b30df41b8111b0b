/**
 * Values that a schema of the route table takes, so that what is then made wrong with them gets past the first check.
 * Names are given values that mean something in the world that is attacked (world.ts).
 */
import type { Random } from "../../support/random.ts";
import { Fields, type Tree } from "./values.ts";
import { MARKETS_TO_TRADE, OUTCOMES_TO_TRADE, UNIMPORTANT_ID } from "./world.ts";

/** What of a schema counts here. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly (string | number)[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

type Make = (random: Random) => Tree;
const oneOf =
  (...values: readonly Tree[]): Make =>
  (random) =>
    random.pick(values);
const textOf = (alphabet: string, min: number, max: number): Make => {
  return (random) => Array.from({ length: random.integer(min, max) }, () => random.pick([...alphabet])).join("");
};
const word = textOf("abcdefghijklmnopqrstuvwxyz", 5, 12);

const BY_NAME: Readonly<Record<string, Make>> = {
  market_id: oneOf(...MARKETS_TO_TRADE),
  market_ids: oneOf([...MARKETS_TO_TRADE]),
  outcome_id: oneOf(...OUTCOMES_TO_TRADE),
  user_id: oneOf(...UNIMPORTANT_ID),
  event_id: oneOf(1),
  side: oneOf(1, 2),
  price: (random) => random.integer(1, 9_999),
  quantity: (random) => random.integer(1, 20),
  amount: (random) => random.integer(1, 1_000),
  id: (random) => random.integer(1, 400),
  client_order_id: textOf("abc.:_-", 1, 2),
  email: oneOf("nobody@example.com", "fuzz0@example.com", "unimportant1@example.com"),
  // Never the right one: so that sign-ins keep working.
  password: oneOf("a guess in the dark", "another guess"),
  current: oneOf("a guess in the dark"),
  new: oneOf("a quiet harbour at dusk"),
  phone: oneOf("+14155552671", "+4915123456789"),
  code: oneOf("000000", "123456"),
  country: oneOf("DE", "US"),
  jurisdiction: oneOf("DE", "US"),
  allowed_ips: oneOf(["127.0.0.1", "10.0.0.0/8"]),
  redirect_uris: oneOf(["https://example.com/back"]),
  redirect_uri: oneOf("https://example.com/back"),
  response_type: oneOf("code"),
  grant_type: oneOf("authorization_code", "refresh_token"),
  code_challenge_method: oneOf("S256"),
  code_challenge: oneOf("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
  scope: oneOf("orders:write", "portfolio:read markets:read"),
  payouts: oneOf([10_000, 0], [5_000, 5_000]),
  outcomes: oneOf(["Yes", "No"], ["A", "B", "C"]),
  slug: word,
  interval: oneOf("1m", "1d"),
  from: oneOf(0, 1_700_000_000_000),
  to: oneOf(1_900_000_000_000),
  expires_at: oneOf(null, 1_900_000_000_000),
  closes_at: oneOf(null, 1_900_000_000_000),
  valid_until: oneOf(null, 1_900_000_000_000),
  action: oneOf("user.suspend"),
  sequence: (random) => random.integer(0, 100),
  after: (random) => random.integer(0, 100),
};

/** @param name of the field that it is for, "" for none */
export function validValue(random: Random, schema: Schema, name = ""): Tree {
  const known = BY_NAME[name];
  if (known !== undefined) return known(random);
  if (schema.anyOf !== undefined) return validValue(random, random.pick(schema.anyOf), name);
  if (schema.enum !== undefined) return random.pick(schema.enum);
  if (schema.type === "boolean") return random.chance(0.5);
  if (schema.type === "null") return null;
  if (schema.type === "integer") {
    return random.integer(Math.min(schema.minimum ?? 0, 1), Math.min(schema.maximum ?? 100, 100));
  }
  if (schema.type === "array") {
    const length = random.integer(schema.minItems ?? 0, 3);
    return Array.from({ length }, () => validValue(random, schema.items ?? {}, ""));
  }
  if (schema.type === "object") return validObject(random, schema);
  return word(random);
}

export function validObject(random: Random, { properties = {}, required = [] }: Schema): Fields {
  const names = Object.keys(properties).filter((name) => required.includes(name) || random.chance(0.4));
  return new Fields(names.map((name) => [name, validValue(random, properties[name]!, name)]));
}
