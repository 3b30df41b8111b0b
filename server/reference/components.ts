/**
 * The named schemas of the API documents, and how a schema is written into a document: verbatim, with references to named
 * schemas. A schema object has one name, so that nothing is described twice.
 */

import Type, { type TSchema } from "typebox";
import * as accounts from "../accounts/schemas.ts";
import { TermsChange } from "../accounts/terms.ts";
import * as http from "../http/schemas.ts";
import * as texts from "../http/text-schemas.ts";
import * as markets from "../markets/schemas.ts";
import * as oauth from "../oauth/schemas.ts";
import * as operators from "../operators/schemas.ts";
import * as service from "../service/schemas.ts";
import * as trading from "../trading/schemas.ts";
import * as wallet from "../wallet/schemas.ts";
import * as websocket from "../websocket/schemas.ts";

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

/** Returns the schema with `op` narrowed to one value. */
export function withOperation(schema: TSchema, op: string): TSchema {
  const { properties } = schema as unknown as { properties: Record<string, TSchema> };
  return http.closed({ ...properties, op: Type.Literal(op) });
}

const { place, cancel, amend } = trading.BatchOperations;
/** The operations of a batch, by `op`. */
const BATCH_OPERATIONS = {
  PlaceOperation: withOperation(place, "place"),
  CancelOperation: withOperation(cancel, "cancel"),
  AmendOperation: withOperation(amend, "amend"),
};

/** Values that requests and responses have. */
const VALUES: Readonly<Record<string, TSchema>> = {
  Id: http.Id,
  NextCursor: http.NextCursor,
  Note: texts.Note,
  Price: markets.Price,
  Sequence: http.Sequence,
  Time: http.Time,
};
/** What clients send: an unknown field is rejected. */
const REQUESTS: Readonly<Record<string, TSchema>> = {
  AmendOrder: trading.AmendOrder,
  AuthorizeDecision: oauth.AuthorizeDecision,
  Batch: trading.Batch,
  BatchOperation: trading.BatchOperation,
  CancelOrder: trading.CancelOrder,
  ChangeSets: wallet.ChangeSets,
  Credentials: accounts.Credentials,
  EmailOnly: accounts.EmailOnly,
  HousePayment: wallet.HousePayment,
  IdentityDocument: accounts.IdentityDocument,
  MarketChanges: markets.MarketChanges,
  NewDeposit: wallet.NewDeposit,
  NewEvent: markets.NewEvent,
  NewMarket: markets.NewMarket,
  NewOAuthClient: oauth.NewOAuthClient,
  NewPersonalAccessToken: accounts.NewPat,
  NewWithdrawal: wallet.NewWithdrawal,
  NoteOnly: texts.NoteOnly,
  PasswordChange: accounts.PasswordChange,
  PasswordReset: accounts.PasswordReset,
  PlaceOrder: trading.PlaceOrder,
  Quotes: trading.Quotes,
  Registration: accounts.Registration,
  Resolution: markets.Resolution,
  TermsChange,
  TokenForm: oauth.TokenForm,
  TokenOnlyForm: oauth.TokenOnlyForm,
  ...BATCH_OPERATIONS,
};
/** What clients receive: it may get further fields without notice. */
const RESPONSES: Readonly<Record<string, TSchema>> = {
  Account: accounts.Account,
  Approval: accounts.Approval,
  AskingClient: oauth.AskingClient,
  AuditLine: operators.AuditLine,
  Balance: wallet.Balance,
  BuilderStats: trading.BuilderStats,
  Canceled: trading.Canceled,
  Candles: markets.Candles,
  CreatedOAuthClient: oauth.CreatedOAuthClient,
  CreatedPersonalAccessToken: accounts.CreatedPat,
  DailyActivity: accounts.DailyActivity,
  Deposit: wallet.Deposit,
  Event: markets.EventSchema,
  Feed: markets.Feed,
  FeedEvent: markets.FeedEvent,
  FeedMarket: markets.FeedMarket,
  Fill: trading.Fill,
  Health: service.Health,
  Readiness: service.Readiness,
  HouseWithdrawal: wallet.HouseWithdrawal,
  IdentityApplication: accounts.IdentityApplication,
  Introspection: oauth.Introspection,
  Jwks: oauth.Jwks,
  Limits: trading.Limits,
  Market: markets.MarketSchema,
  MarketBook: markets.MarketBook,
  MarketResolution: markets.MarketResolution,
  MarketRecord: markets.MarketRecord,
  MarketSettlement: markets.Settlement,
  OAuthClient: oauth.OAuthClient,
  OAuthGrant: oauth.OAuthGrant,
  OperatorApplication: operators.OperatorApplication,
  OperatorUser: operators.OperatorUser,
  Order: trading.Order,
  OrderEvent: trading.OrderEvent,
  Outcome: markets.OutcomeSchema,
  OutcomeBook: markets.OutcomeBook,
  OwnDeposit: wallet.OwnDeposit,
  OwnFill: trading.OwnFill,
  OwnWithdrawal: wallet.OwnWithdrawal,
  PersonalAccessToken: accounts.Pat,
  Position: wallet.Position,
  Rate: http.Rate,
  Results: trading.Results,
  ServerMetadata: oauth.ServerMetadata,
  Session: accounts.Session,
  SetsChange: wallet.SetsChange,
  Settlement: wallet.Settlement,
  SignIn: accounts.SignIn,
  SocketTicket: websocket.SocketTicket,
  Solvency: wallet.Solvency,
  Subscriptions: websocket.Subscriptions,
  Ticker: websocket.Ticker,
  TokenAnswer: oauth.TokenAnswer,
  Tokens: accounts.Tokens,
  Trade: markets.Trade,
  Trail: wallet.Trail,
  Transaction: wallet.Transaction,
  User: accounts.User,
  Withdrawal: wallet.Withdrawal,
  WithdrawalDecision: wallet.WithdrawalDecision,
};
const NAMED: Readonly<Record<string, TSchema>> = { ...VALUES, ...REQUESTS, ...RESPONSES };
const NAMES: ReadonlyMap<unknown, string> = new Map(Object.entries(NAMED).map(([name, schema]) => [schema, name]));
const PREFIX = "#/components/schemas/";

const refTo = (name: string): JsonObject => ({ $ref: PREFIX + name });

/** Returns the schema of something that clients send, as a document shows it. */
export function requestSchema(schema: TSchema): Json {
  return written(schema, true);
}

/** Returns the schema of something that clients receive, as a document shows it. */
export function responseSchema(schema: TSchema): Json {
  return written(schema, false);
}

/** The schema's own name; null if it has none. */
export function nameOf(schema: TSchema): string | null {
  return NAMES.get(schema) ?? null;
}

function written(value: unknown, isClosed: boolean): Json {
  const name = NAMES.get(value);
  return name === undefined ? spelledOut(value, isClosed) : refTo(name);
}

/** Client generators take a schema of further fields for one of all fields: left out, like `false` where it isn't promised. */
function spelledOut(value: unknown, isClosed: boolean): Json {
  if (Array.isArray(value)) return value.map((item) => written(item, isClosed));
  if (typeof value !== "object" || value === null) return value as Json;
  const fields = Object.entries(value).filter(([key, field]) => {
    return key !== "additionalProperties" || field === true || (field === false && isClosed);
  });
  return Object.fromEntries(fields.map(([key, field]) => [key, written(field, isClosed)]));
}

function definition(name: string): Json {
  if (name !== "BatchOperation") return spelledOut(NAMED[name], name in REQUESTS);
  const operations = Object.keys(BATCH_OPERATIONS);
  return { oneOf: operations.map(refTo), description: "by `op`" };
}

/** Returns the definitions, by name, that parts of a document refer to, directly or through other definitions. */
export function definitionsFor(parts: readonly Json[]): JsonObject {
  const found = new Map<string, Json>();
  const look = (value: Json): void => {
    if (typeof value !== "object" || value === null) return;
    const { $ref } = value as { $ref?: Json };
    if (typeof $ref === "string" && $ref.startsWith(PREFIX)) define($ref.slice(PREFIX.length));
    Object.values(value).forEach(look);
  };
  const define = (name: string): void => {
    if (found.has(name) || NAMED[name] === undefined) return;
    const schema = definition(name);
    found.set(name, schema);
    look(schema);
  };
  parts.forEach(look);
  return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}
