/** The blocks and entries of the schema under one name each: messages and groups with the same fields share theirs. */
import type { Field, Layout, Message, Schema } from "./schema.ts";

export interface NamedLayout extends Layout {
  readonly name: string;
  /** Messages that have it as their block, or groups as their entry. */
  readonly users: readonly string[];
  readonly isBlock: boolean;
  /** Clients send it. */
  readonly isRequest: boolean;
}

/** Templates below it are requests. */
export const FIRST_RESPONSE = 101;

const BLOCKS: Readonly<Record<string, string>> = {
  ...{ OrderAccepted: "Order", OrderUpdated: "Order" },
  ...{ Subscribe: "Subscription", Unsubscribe: "Subscription" },
};
const ENTRIES: Readonly<Record<string, string>> = {
  ...{ quotes: "Quote", markets: "SubscribedMarket", orders: "CanceledOrder", fills: "Fill" },
  ...{ bids: "Level", asks: "Level", impliedBids: "Level", impliedAsks: "Level", subscriptions: "Subscribed" },
};

/** @throws Error where a group has no name here, or two layouts under one name differ */
export function layoutsOf(schema: Schema): NamedLayout[] {
  const layouts = new Map<string, NamedLayout>();
  const add = (name: string, user: string, layout: Layout, isBlock: boolean, isRequest: boolean): void => {
    const known = layouts.get(name);
    if (known !== undefined && shapeOf(known) !== shapeOf(layout)) throw new Error(`${user} is no ${name}`);
    const users = [...(known?.users ?? []), user];
    layouts.set(name, { name, fields: layout.fields, length: layout.length, users, isBlock, isRequest });
  };
  for (const message of schema.messages) {
    const isRequest = message.id < FIRST_RESPONSE;
    if (message.length > 0) add(blockOf(message), message.name, message, true, isRequest);
    for (const group of message.groups)
      add(entryOf(group.name), `${message.name}.${group.name}`, group, false, isRequest);
  }
  return [...layouts.values()];
}

export const blockOf = ({ name }: Message): string => BLOCKS[name] ?? name;

export function entryOf(group: string): string {
  const name = ENTRIES[group];
  if (name === undefined) throw new Error(`the entries of ${group} have no name`);
  return name;
}

/** What must be equal under one name: the numbers of fields may differ. */
const shapeOf = ({ fields }: Layout): string =>
  fields
    .map(({ name, type, offset, isOptional, since }: Field) => `${name} ${type.name} ${offset} ${isOptional} ${since}`)
    .join();

/** `OrderUpdated` as `order_updated`. */
export const snakeCase = (name: string): string =>
  name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

export const camelCase = (name: string): string => name[0]!.toLowerCase() + name.slice(1);
