/**
 * The commands of the operator's command line as a table: what each takes and which request it makes. Arguments are
 * read, and the help is printed, from it. Knows no server.
 */
import { parseArgs } from "node:util";
import type { ControlRequest } from "./control-socket.ts";

/**
 * How a value is read. "user" and "application" may be an e-mail address, to be looked up; "texts" may come again; a
 * "flag" has no value.
 */
type Kind = "flag" | "text" | "texts" | "integer" | "integers" | "amount" | "time" | "user" | "application";

interface Field {
  /** Of the route: in its path, else in its query or body. */
  readonly field: string;
  readonly kind: Kind;
  /** As the help shows it. */
  readonly shown: string;
  /** The word that stands for null. */
  readonly unset?: string;
  /** The option's name, where it isn't the field's with dashes. */
  readonly option?: string;
}

export interface AdminCommand {
  readonly words: string;
  readonly summary: string;
  readonly args: readonly Field[];
  /** By name. */
  readonly options: Readonly<Record<string, Field>>;
  /** The route that it calls; else "server", which knows the command by its words, or "local". */
  readonly does: string;
}

/** A wrong command line. */
export class UsageError extends Error {
  readonly command: AdminCommand | null;

  constructor(message: string, command: AdminCommand | null = null) {
    super(message);
    this.command = command;
  }
}

const field = (shown: string, name: string, kind: Kind = "text"): Field => ({ shown, field: name, kind });
const USER = field("ID|EMAIL", "id", "user");
const APPLICATION = field("ID|EMAIL", "id", "application");
const ID = field("ID", "id");
const MARKET = field("ID|SLUG", "id");
const AMOUNT = field("AMOUNT", "amount", "amount");
const REFERENCE = field("REFERENCE", "reference");
const EMAIL = field("EMAIL", "email");

function optionsOf(...fields: Field[]): Record<string, Field> {
  return Object.fromEntries(fields.map((each) => [each.option ?? each.field.replaceAll("_", "-"), each]));
}
const LIST = [field("N", "limit"), field("CURSOR", "cursor")];
const NOTE = field("NOTE", "note");
const OF_USER = { ...field("ID|EMAIL", "user_id", "user"), option: "user" };
const STATUS = field("STATUS", "status");
const orDefault = (each: Field): Field => ({ ...each, unset: "default" });
const orNone = (each: Field): Field => ({ ...each, unset: "none" });
const DESCRIPTION = field("TEXT", "description");
const CATEGORY = field("TEXT", "category");
const CLOSES_AT = field("TIME", "closes_at", "time");

function command(words: string, does: string, summary: string, args: Field[] = [], ...options: Field[]): AdminCommand {
  return { words, does, summary, args, options: optionsOf(...options) };
}

export const COMMANDS: readonly AdminCommand[] = [
  command("help", "local", "this text, or that of one command", [field("[COMMAND]", "command")]),
  command("verify", "local", "check every invariant of a database file (default: DATA_DIR/exchange.db)", [
    field("[FILE]", "file"),
  ]),
  command(
    "backup",
    "local",
    "write a consistent copy of the database, also while the server runs, and check it",
    [field("FILE", "file")],
    field("", "overwrite", "flag"),
  ),
  command(
    "keys rotate",
    "server",
    "sign with a new key from now on; tokens of the old one live on, the JWKS lists both",
  ),
  command("keys rotate-second-factors", "server", "seal the secrets of authenticator apps with a new key"),
  command(
    "second-factor reset",
    "server",
    "remove the second factors of an account that lost them, and end its sessions",
    [EMAIL],
  ),
  command(
    "second-factor approve-reset",
    "POST /admin/users/:id/second-factors/reset",
    "the same as one of two persons, of whom the other is an operator",
    [USER],
    NOTE,
  ),
  command("operator create", "server", "make an operator's account; its password is shown this once", [EMAIL]),
  command("operator grant", "server", "make an account an operator's", [EMAIL]),
  command("operator remove", "server", "make an operator's account a user's", [EMAIL]),

  command(
    "users",
    "GET /admin/users",
    "list users",
    [],
    EMAIL,
    field("user|operator", "role"),
    field("0|1|2", "kyc_tier"),
    field("true|false", "suspended"),
    ...LIST,
  ),
  command("user", "GET /admin/users/:id", "show one user", [USER]),
  command("user trail", "GET /admin/users/:id/trail", "its deposits, terms and identity, and who gave them", [USER]),
  command(
    "suspend",
    "POST /admin/users/:id/suspend",
    "refuse the user's tokens and sign-ins, end its sockets and cancel its orders",
    [USER],
    NOTE,
  ),
  command("restore", "POST /admin/users/:id/restore", "end that", [USER], NOTE),
  command(
    "terms",
    "PATCH /admin/users/:id/terms",
    "set the user's own limit of activity a day, rates in BPS, by what its rate limits are multiplied, and its live orders",
    [USER],
    orDefault(field("AMOUNT", "daily_limit", "amount")),
    orDefault(field("BPS", "trading_fee", "integer")),
    orDefault(field("BPS", "maker_rebate", "integer")),
    orDefault(field("BPS", "pat_rebate", "integer")),
    orDefault(field("BPS", "merge_fee", "integer")),
    orDefault(field("N", "rate_limit_factor", "integer")),
    orDefault(field("N", "max_live_orders", "integer")),
  ),
  command(
    "identity list",
    "GET /admin/identity-applications",
    "list applications for KYC tier 2: those that wait, or of another status",
    [],
    STATUS,
    EMAIL,
    ...LIST,
  ),
  command(
    "identity approve",
    "POST /admin/identity-applications/:id/approve",
    "approve an application, named by its id or its user's address",
    [APPLICATION],
    NOTE,
  ),
  command("identity refuse", "POST /admin/identity-applications/:id/refuse", "refuse it", [APPLICATION], NOTE),
  command(
    "audit",
    "GET /admin/audit-log",
    "who changed what of money or access; an ACTION that ends in a dot means all that begin so",
    [],
    OF_USER,
    field("ACTOR", "actor"),
    field("ACTION", "action"),
    field("TIME", "from", "time"),
    field("TIME", "to", "time"),
    ...LIST,
  ),

  command("deposit", "POST /admin/deposits", "credit a user; a reference counts once", [
    { ...USER, field: "user_id" },
    AMOUNT,
    REFERENCE,
  ]),
  command("deposits", "GET /admin/deposits", "list deposits", [], OF_USER, ...LIST),
  command("house deposit", "POST /admin/house/deposits", "fund the house account", [AMOUNT, REFERENCE]),
  command("house withdraw", "POST /admin/house/withdrawals", "take out of the house account", [AMOUNT, REFERENCE]),
  command("withdrawals", "GET /admin/withdrawals", "list withdrawals", [], STATUS, OF_USER, ...LIST),
  command("withdrawal show", "GET /admin/withdrawals/:id", "show one withdrawal", [ID]),
  command("withdrawal pay", "POST /admin/withdrawals/:id/pay", "note that it was paid", [ID], REFERENCE, NOTE),
  command(
    "withdrawal refuse",
    "POST /admin/withdrawals/:id/refuse",
    "refuse it: the user has the money back",
    [ID],
    NOTE,
  ),
  command("approvals", "GET /admin/approvals", "list first approvals that wait for a second", [], ...LIST),
  command("approvals take-back", "DELETE /admin/approvals/:id", "take a first approval back", [ID]),

  command("proposals", "GET /admin/proposals", "list proposals of markets", [], STATUS, ...LIST),
  command("proposal approve", "POST /admin/proposals/:id/approve", "open the proposed market", [ID], NOTE),
  command("proposal refuse", "POST /admin/proposals/:id/refuse", "refuse it", [ID], NOTE),
  command(
    "event create",
    "POST /admin/events",
    "make an event, a group of markets",
    [field("SLUG", "slug"), field("TITLE", "title")],
    CATEGORY,
    CLOSES_AT,
  ),
  command(
    "market create",
    "POST /admin/markets",
    "make a market, open at once; --outcome comes once for each",
    [field("QUESTION", "question")],
    { ...field("NAME", "outcomes", "texts"), option: "outcome" },
    field("SLUG", "slug"),
    DESCRIPTION,
    CATEGORY,
    field("ID", "event_id", "integer"),
    CLOSES_AT,
  ),
  command("market show", "GET /admin/markets/:id", "show one market", [MARKET]),
  command(
    "market describe",
    "PATCH /admin/markets/:id",
    "change its description, category or end",
    [MARKET],
    orNone(DESCRIPTION),
    orNone(CATEGORY),
    orNone(CLOSES_AT),
  ),
  command("market halt", "POST /admin/markets/:id/halt", "stop trading for now", [MARKET], NOTE),
  command("market resume", "POST /admin/markets/:id/resume", "let trading go on", [MARKET], NOTE),
  command("market open", "POST /admin/markets/:id/open", "open a proposed or halted market", [MARKET], NOTE),
  command("market close", "POST /admin/markets/:id/close", "end trading and cancel the orders", [MARKET], NOTE),
  command(
    "market resolve",
    "POST /admin/markets/:id/resolve",
    "pay the holders: one outcome wins, or each pays its BPS",
    [MARKET],
    field("ID", "outcome_id", "integer"),
    field("BPS,BPS,...", "payouts", "integers"),
    NOTE,
  ),
  command("market void", "POST /admin/markets/:id/void", "pay equal parts to all outcomes", [MARKET], NOTE),
];

// ---------------------------------------------------------------- help

export const HELP = `Usage: npm run admin -- COMMAND

${COMMANDS.map(helpOf).join("\n")}

AMOUNT is an integer of micro-USDC, or USDC as in 12.5usdc. TIME is ISO 8601 or ms since the epoch. EMAIL names a user
as ID does. Where no server runs on DATA_DIR, one that opens no port is started for the command.
`;

export function helpOf({ words, args, options, summary }: AdminCommand): string {
  const shownOptions = Object.entries(options).map(([name, { kind, shown, unset }]) => {
    const value = kind === "flag" ? "" : ` ${shown}${unset === undefined ? "" : `|${unset}`}`;
    return `[--${name}${value}]`;
  });
  return `  ${[words, ...args.map(({ shown }) => shown), ...shownOptions].join(" ")}\n      ${summary}`;
}

// ---------------------------------------------------------------- reading

/** A value that a command was given; `text` is still to be looked up where `isEmail`. */
export interface Given {
  readonly field: Field;
  readonly value: unknown;
  readonly isEmail: boolean;
}

/** The command that the words begin with, the longest that fits, and the rest. @throws UsageError */
export function findCommand(argv: readonly string[]): { command: AdminCommand; rest: string[] } {
  let found: AdminCommand | null = null;
  for (const each of COMMANDS) {
    const words = each.words.split(" ");
    if (words.every((word, i) => word === argv[i]) && words.length > (found?.words.split(" ").length ?? 0))
      found = each;
  }
  if (found === null) throw new UsageError(`unknown command "${argv.join(" ")}"`);
  return { command: found, rest: argv.slice(found.words.split(" ").length) };
}

/** What the rest of the line gives the command. @throws UsageError */
export function readArguments(command: AdminCommand, rest: readonly string[]): Given[] {
  const { positionals, values } = parse(command, rest);
  const { args, options } = command;
  const needed = args.filter(({ shown }) => !shown.startsWith("["));
  if (positionals.length < needed.length)
    throw new UsageError(`${needed[positionals.length]!.shown}: missing`, command);
  // The words of a command are one argument to help.
  if (positionals.length > args.length && command.words !== "help") {
    throw new UsageError(`${positionals[args.length]}: one argument too many`, command);
  }
  const read = (each: Field, name: string, texts: string[]): Given => {
    const isEmail = (each.kind === "user" || each.kind === "application") && texts[0]!.includes("@");
    const value = texts[0] === each.unset ? null : readValue(each.kind, texts);
    if (value === undefined) throw new UsageError(`${name}: ${texts[0]} is ${KINDS[each.kind]}`, command);
    return { field: each, value, isEmail };
  };
  return [
    ...args.slice(0, positionals.length).map((each, i) => read(each, each.shown, [positionals[i]!])),
    ...Object.entries(values).map(([name, texts]) =>
      read(options[name]!, `--${name}`, (texts as unknown[]).map(String)),
    ),
  ];
}

function parse(command: AdminCommand, rest: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, { kind }]) => {
      return [name, { type: kind === "flag" ? "boolean" : "string", multiple: true } as const];
    }),
  );
  try {
    const parsed = parseArgs({ args: [...rest], options, allowPositionals: true });
    for (const [name, texts] of Object.entries(parsed.values)) {
      const isSingle = command.options[name]!.kind !== "texts";
      if (isSingle && (texts as unknown[]).length > 1) throw new TypeError(`--${name}: given twice`);
    }
    return parsed;
  } catch (error) {
    throw new UsageError((error as Error).message, command);
  }
}

/** What a text that can't be read is not. */
const KINDS: Readonly<Record<Kind, string>> = {
  flag: "no flag",
  text: "no text",
  texts: "no text",
  integer: "no integer",
  integers: "no list of integers",
  amount: "neither an integer of micro-USDC nor USDC as in 12.5usdc",
  time: "no time",
  user: "neither a user's id nor an e-mail address",
  application: "neither an application's id nor an e-mail address",
};

/** Undefined where the text is not of the kind. */
function readValue(kind: Kind, texts: readonly string[]): unknown {
  const text = texts[0]!;
  switch (kind) {
    case "flag":
      return true;
    case "text":
      return text;
    case "texts":
      return texts;
    case "integer":
      return integerOf(text);
    case "integers": {
      const numbers = text.split(",").map(integerOf);
      return numbers.includes(undefined) ? undefined : numbers;
    }
    case "amount":
      return amountOf(text);
    case "time":
      return timeOf(text);
    case "user":
    case "application":
      return text.includes("@") ? text : integerOf(text);
  }
}

function integerOf(text: string): number | undefined {
  return /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

/** A number with a point and no unit could mean either: it is refused. */
function amountOf(text: string): number | undefined {
  const [, whole, fraction = ""] = /^(\d{1,10})(?:\.(\d{1,6}))?usdc$/i.exec(text) ?? [];
  return integerOf(whole === undefined ? text : whole + fraction.padEnd(6, "0"));
}

function timeOf(text: string): number | undefined {
  const time = integerOf(text) ?? (/^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN);
  return Number.isNaN(time) ? undefined : time;
}

// ---------------------------------------------------------------- requests

/** The request that the command makes; no value is an e-mail address any more where an id is wanted. */
export function requestOf({ words, does }: AdminCommand, given: readonly Given[]): ControlRequest {
  const values = new Map(given.map(({ field, value }) => [field.field, value]));
  if (does === "server") return { command: words, args: [...values.values()].map(String) };
  const [method, template] = does.split(" ") as [string, string];
  const path = template.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values.get(name);
    values.delete(name);
    return encodeURIComponent(String(value));
  });
  if (method === "GET") {
    return {
      method,
      path,
      query: queryOf(values),
    };
  }
  return method === "DELETE" ? { method, path } : { method, path, body: Object.fromEntries(values) };
}

function queryOf(values: ReadonlyMap<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of values) query.set(name, String(value));
  return query.toString();
}
