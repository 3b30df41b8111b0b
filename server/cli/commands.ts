/**
 * The table of the operator's commands: the arguments of each, and the request that it makes. Arguments are parsed and the
 * help is printed from this table. Talks to no server: admin-client.ts does.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { ControlRequest } from "../control/control-socket.ts";
import { MAX_PICTURE_BYTES } from "../markets/limits.ts";

/**
 * How a value is parsed. "user" and "application" may be an email address, which admin.ts resolves to an id; "texts" may be
 * repeated; a "flag" has no value; a "file", a picture, is sent in base64.
 */
type Kind = "flag" | "text" | "texts" | "file" | "integer" | "integers" | "amount" | "time" | "user" | "application";

interface Field {
  /** The name of the route's field: in its path, else in its query or body. */
  readonly field: string;
  readonly kind: Kind;
  /** The placeholder that the help shows. */
  readonly shown: string;
  /** The word that stands for null. */
  readonly unset?: string;
  /** The option's name, where it is not the field's with dashes. */
  readonly option?: string;
}

export interface AdminCommand {
  readonly words: string;
  readonly summary: string;
  readonly args: readonly Field[];
  /** By name. */
  readonly options: Readonly<Record<string, Field>>;
  /**
   * The route that it calls; else "server", a command of server-commands.ts, "running", one that is about the server that
   * runs and starts none, or "local", which needs no server.
   */
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
const BY_USER = { ...field("ID|EMAIL", "user_id", "user"), option: "user" };
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
  command("help", "local", "show this help, or the help of one command", [field("[COMMAND]", "command")]),
  command(
    "verify",
    "local",
    "check that the tables are what the log says, the log's hashes, and every invariant (default: DATA_DIR/exchange.db)",
    [field("[FILE]", "file")],
  ),
  command(
    "rebuild",
    "local",
    "build exchange.db from the log, check it and compare it; while no server runs",
    [],
    field("", "replace", "flag"),
  ),
  command(
    "log",
    "local",
    "print the events and writes of the log, live or from an archive",
    [],
    field("FILE", "file"),
    field("ID|EMAIL", "user"),
    field("ID", "order", "integer"),
    field("ID|SLUG", "market"),
    field("KIND", "kind"),
    field("BATCH|TIME", "from"),
    field("BATCH|TIME", "to"),
    field("", "json", "flag"),
    field("", "secrets", "flag"),
  ),
  command(
    "history",
    "local",
    "make the files of book history of these days (UTC) from the log or its archives, where they are missing",
    [field("FROM", "from"), field("TO", "to")],
  ),
  command(
    "backup",
    "local",
    "write consistent copies of the tables and the log, also while the server runs, and check them",
    [field("FILE", "file")],
    field("", "overwrite", "flag"),
  ),
  command(
    "keys rotate",
    "server",
    "sign with a new key from now on; tokens of the old key stay valid, and the JWKS lists both",
  ),
  command("keys rotate-second-factors", "server", "encrypt the secrets of authenticator apps with a new key"),
  command(
    "second-factor reset",
    "server",
    "remove the second factors of an account whose owner lost them, and end its sessions",
    [EMAIL],
  ),
  command(
    "second-factor approve-reset",
    "POST /admin/users/:id/second-factors/reset",
    "the same, as one of two approvals: the other is an operator's",
    [USER],
    NOTE,
  ),
  command("standby status", "running", "show this box, and the copy of its log on the NATS nodes"),
  command(
    "standby promote",
    "running",
    "make this standby the active box: the one that is hands over",
    [],
    field("", "first", "flag"),
    field("", "stream_is_lost", "flag"),
  ),
  command("standby demote", "running", "stop this active box, and let its standby go on"),
  command("operator create", "server", "create an operator's account and print its password, once", [EMAIL]),
  command("operator grant", "server", "make an existing account an operator's", [EMAIL]),
  command("operator remove", "server", "make an operator's account an ordinary user's", [EMAIL]),

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
  command(
    "user trail",
    "GET /admin/users/:id/trail",
    "show its deposits, terms and identity decisions, and who made them",
    [USER],
  ),
  command(
    "suspend",
    "POST /admin/users/:id/suspend",
    "reject the user's tokens and sign-ins, close its sockets and cancel its orders",
    [USER],
    NOTE,
  ),
  command(
    "restore",
    "POST /admin/users/:id/restore",
    "end a suspension; tokens and grants are revoked unless you restore them",
    [USER],
    field("restore|revoke", "tokens"),
    NOTE,
  ),
  command(
    "terms",
    "PATCH /admin/users/:id/terms",
    "set the user's own limits and rates: activity per day, fees in BPS, a factor of its rate limits, live orders",
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
    "list applications for KYC tier 2: pending ones, or of another status",
    [],
    STATUS,
    EMAIL,
    ...LIST,
  ),
  command(
    "identity approve",
    "POST /admin/identity-applications/:id/approve",
    "approve an application, given by its id or its user's email",
    [APPLICATION],
    NOTE,
  ),
  command(
    "identity refuse",
    "POST /admin/identity-applications/:id/refuse",
    "refuse an application",
    [APPLICATION],
    NOTE,
  ),
  command(
    "audit",
    "GET /admin/audit-log",
    "list changes of money and access, and who made them; an ACTION that ends in a dot is a prefix",
    [],
    BY_USER,
    field("ACTOR", "actor"),
    field("ACTION", "action"),
    field("TIME", "from", "time"),
    field("TIME", "to", "time"),
    ...LIST,
  ),

  command("deposit", "POST /admin/deposits", "credit a user; each reference is credited once", [
    { ...USER, field: "user_id" },
    AMOUNT,
    REFERENCE,
  ]),
  command(
    "deposit reverse",
    "POST /admin/deposits/:id/reverse",
    "take back a deposit, or a part of it",
    [ID, AMOUNT, REFERENCE],
    NOTE,
  ),
  command("deposits", "GET /admin/deposits", "list deposits", [], BY_USER, ...LIST),
  command("house deposit", "POST /admin/house/deposits", "fund the house account", [AMOUNT, REFERENCE]),
  command("house withdraw", "POST /admin/house/withdrawals", "withdraw from the house account", [AMOUNT, REFERENCE]),
  command("withdrawals", "GET /admin/withdrawals", "list withdrawals", [], STATUS, BY_USER, ...LIST),
  command("withdrawal show", "GET /admin/withdrawals/:id", "show one withdrawal", [ID]),
  command("withdrawal pay", "POST /admin/withdrawals/:id/pay", "record that it was paid", [ID], REFERENCE, NOTE),
  command(
    "withdrawal refuse",
    "POST /admin/withdrawals/:id/refuse",
    "refuse it: the user gets the money back",
    [ID],
    NOTE,
  ),
  command("approvals", "GET /admin/approvals", "list first approvals that wait for the second", [], ...LIST),
  command("approvals revoke", "DELETE /admin/approvals/:id", "withdraw a first approval", [ID]),

  command("proposals", "GET /admin/proposals", "list proposed markets", [], STATUS, ...LIST),
  command("proposal approve", "POST /admin/proposals/:id/approve", "open the proposed market", [ID], NOTE),
  command("proposal refuse", "POST /admin/proposals/:id/refuse", "refuse the proposed market", [ID], NOTE),
  command(
    "event create",
    "POST /admin/events",
    "create an event, a group of markets",
    [field("SLUG", "slug"), field("TITLE", "title")],
    CATEGORY,
    CLOSES_AT,
  ),
  command(
    "market create",
    "POST /admin/markets",
    "create a market, open at once; repeat --outcome for each outcome",
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
    "change its description, category, closing time or picture",
    [MARKET],
    orNone(DESCRIPTION),
    orNone(CATEGORY),
    orNone(CLOSES_AT),
    orNone(field("FILE", "picture", "file")),
  ),
  command("market halt", "POST /admin/markets/:id/halt", "stop trading for now", [MARKET], NOTE),
  command("market resume", "POST /admin/markets/:id/resume", "resume trading", [MARKET], NOTE),
  command("market open", "POST /admin/markets/:id/open", "open a proposed or halted market", [MARKET], NOTE),
  command("market close", "POST /admin/markets/:id/close", "end trading and cancel all orders", [MARKET], NOTE),
  command(
    "market resolve",
    "POST /admin/markets/:id/resolve",
    "pay the holders: one outcome wins, or each pays its BPS of 1 USDC",
    [MARKET],
    field("ID", "outcome_id", "integer"),
    field("BPS,BPS,...", "payouts", "integers"),
    NOTE,
  ),
  command("market void", "POST /admin/markets/:id/void", "pay equal parts to all outcomes", [MARKET], NOTE),
];

/** Every command takes it. */
export const JSON_OPTION = "--json";

// ---------------------------------------------------------------- help

export const HELP = `Usage: npm run admin -- COMMAND

${COMMANDS.map(helpOf).join("\n")}

AMOUNT is an integer of micro-USDC, or USDC as in 12.5usdc. TIME is ISO 8601 or ms since the epoch. A user is given by
ID or EMAIL. If no server runs on DATA_DIR, the command starts one that opens no port. At a terminal the result is for
people; into a pipe or a file, or with ${JSON_OPTION}, it is JSON.
`;

export function helpOf({ words, args, options, summary }: AdminCommand): string {
  const shownOptions = Object.entries(options).map(([name, { kind, shown, unset }]) => {
    const value = kind === "flag" ? "" : ` ${shown}${unset === undefined ? "" : `|${unset}`}`;
    return `[--${name}${value}]`;
  });
  return `  ${[words, ...args.map(({ shown }) => shown), ...shownOptions].join(" ")}\n      ${summary}`;
}

// ---------------------------------------------------------------- parsing

/** A value from the command line. Where `isEmail`, admin.ts replaces it with an id. */
export interface Given {
  readonly field: Field;
  readonly value: unknown;
  readonly isEmail: boolean;
}

/** The command with the most words that the line begins with, and the rest of the line. @throws UsageError */
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

/** The values in the rest of the line. @throws UsageError */
export function readArguments(command: AdminCommand, rest: readonly string[]): Given[] {
  const { positionals, values } = parse(command, rest);
  const { args, options } = command;
  const missing = args.filter(({ shown }) => !shown.startsWith("["))[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing.shown}: missing`, command);
  // To help, the words of a command are one argument.
  if (positionals.length > args.length && command.words !== "help") {
    throw new UsageError(`${positionals[args.length]}: unexpected argument`, command);
  }
  const given: Given[] = [];
  const add = (each: Field | undefined, name: string, texts: readonly string[]): void => {
    const [text] = texts;
    if (each === undefined || text === undefined) return;
    const isEmail = (each.kind === "user" || each.kind === "application") && text.includes("@");
    const value = text === each.unset ? null : readValue(each.kind, text, texts);
    if (value === undefined) throw new UsageError(`${name}: ${text} is ${NOT_OF_KIND[each.kind]}`, command);
    given.push({ field: each, value, isEmail });
  };
  for (const [i, text] of positionals.entries()) add(args[i], args[i]?.shown ?? "", [text]);
  for (const [name, texts] of Object.entries(values)) add(options[name], `--${name}`, (texts as unknown[]).map(String));
  return given;
}

function parse(command: AdminCommand, rest: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, { kind }]) => {
      return [name, { type: kind === "flag" ? "boolean" : "string", multiple: true } as const];
    }),
  );
  const json = { type: "boolean", multiple: true } as const;
  try {
    const parsed = parseArgs({ args: [...rest], options: { json, ...options }, allowPositionals: true });
    for (const [name, texts] of Object.entries(parsed.values)) {
      const isSingle = command.options[name]?.kind !== "texts";
      if (isSingle && (texts as unknown[]).length > 1) throw new TypeError(`--${name}: given twice`);
    }
    return parsed;
  } catch (error) {
    throw new UsageError((error as Error).message, command);
  }
}

/** The end of the error for a text that is not of the kind. */
const NOT_OF_KIND: Readonly<Record<Kind, string>> = {
  flag: "not a flag",
  text: "not a text",
  texts: "not a text",
  file: `not a file of at most ${MAX_PICTURE_BYTES} bytes that can be read`,
  integer: "not an integer",
  integers: "not a list of integers",
  amount: "neither an integer of micro-USDC nor USDC as in 12.5usdc",
  time: "not a time",
  user: "neither a user's id nor an email address",
  application: "neither an application's id nor an email address",
};

/** Undefined where the text is not of the kind. @param texts all values of a repeated option, `text` first */
function readValue(kind: Kind, text: string, texts: readonly string[]): unknown {
  switch (kind) {
    case "flag":
      return true;
    case "text":
      return text;
    case "texts":
      return texts;
    case "file":
      return fileOf(text);
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

function fileOf(path: string): string | undefined {
  try {
    const bytes = readFileSync(path);
    return bytes.length > MAX_PICTURE_BYTES ? undefined : bytes.toString("base64");
  } catch {
    return undefined;
  }
}

function integerOf(text: string): number | undefined {
  return /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

/** A number with a decimal point and no unit is ambiguous, so it is rejected. */
function amountOf(text: string): number | undefined {
  const [, whole, fraction = ""] = /^(\d{1,10})(?:\.(\d{1,6}))?usdc$/i.exec(text) ?? [];
  return integerOf(whole === undefined ? text : whole + fraction.padEnd(6, "0"));
}

function timeOf(text: string): number | undefined {
  const time = integerOf(text) ?? (/^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN);
  return Number.isNaN(time) ? undefined : time;
}

// ---------------------------------------------------------------- requests

/** The request of a command whose email addresses are already replaced with ids. */
export function requestOf({ words, does }: AdminCommand, given: readonly Given[]): ControlRequest {
  const values = new Map(given.map(({ field, value }) => [field.field, value]));
  if (does === "server" || does === "running") return { command: words, args: given.map(argumentOf) };
  const [method, template] = does.split(" ") as [string, string];
  const path = template.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values.get(name);
    values.delete(name);
    return encodeURIComponent(String(value));
  });
  if (method === "GET") {
    return { method, path, query: queryOf(values) };
  }
  return method === "DELETE" ? { method, path } : { method, path, body: Object.fromEntries(values) };
}

/** A flag is sent by its name. */
const argumentOf = ({ field: { field: name, kind }, value }: Given): string =>
  kind === "flag" ? name.replaceAll("_", "-") : String(value);

function queryOf(values: ReadonlyMap<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of values) query.set(name, String(value));
  return query.toString();
}
