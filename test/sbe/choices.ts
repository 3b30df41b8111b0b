/** The enumerations of the schema are the engine's: the same words with the same numbers. */
import {
  MarketStatus,
  MatchType,
  OrderStatus,
  OrderType,
  Reason,
  Role,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "../../engine/constants.ts";
import type { Schema } from "./schema.ts";

type Words = Readonly<Record<string, number>>;

/** `operator` is a keyword of C++. */
const { operator: byOperator, ...reasons } = Reason;
/** An order without a bound is a market order with a null price. */
const { unboundMarket: _, ...types } = OrderType;
/** Type and time in force of the orders that exist, in one byte. */
const TERMS: Words = Object.fromEntries(
  Object.entries(types).flatMap(([type, typeCode]) =>
    Object.entries(TimeInForce)
      .filter(([, code]) => typeCode === OrderType.limit || code >= TimeInForce.ioc)
      .map(([time, code]) => [`${type}${time[0]!.toUpperCase()}${time.slice(1)}`, typeCode * 16 + code]),
  ),
);

const ENGINE: Readonly<Record<string, Words>> = {
  Side,
  OrderType: types,
  TimeInForce,
  SelfTradePrevention,
  OrderStatus,
  Reason: { ...reasons, byOperator },
  MatchType,
  Role,
  MarketStatus,
  OrderTerms: TERMS,
};

/** @throws Error naming the first difference */
export function checkChoices({ choices }: Schema): void {
  for (const [name, words] of Object.entries(ENGINE)) {
    const choice = choices.find((each) => each.name === name);
    if (choice === undefined) throw new Error(`the schema has no ${name}`);
    for (const word of new Set([...choice.values.keys(), ...Object.keys(words)])) {
      const [there, here] = [choice.values.get(word), words[word]];
      if (there !== here) throw new Error(`${name}.${word} is ${there} in the schema, ${here} in the engine`);
    }
  }
}
