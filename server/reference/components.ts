/**
 * The named schemas of the API documents, and how a schema is written into a document: verbatim, with references to named
 * schemas. A schema object has one name, so that nothing is described twice.
 */

import Type, { type TSchema } from "typebox";
import * as accounts from "../accounts/schemas.ts";
import { TermsChange } from "../accounts/terms.ts";
import * as http from "../http/schemas.ts";
import * as markets from "../markets/schemas.ts";
import * as oauth from "../oauth/schemas.ts";
import * as operators from "../operators/schemas.ts";
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

const NAMED: Readonly<Record<string, TSchema>> = {
  Account: accounts.Account,
  AmendOrder: trading.AmendOrder,
  Approval: accounts.Approval,
  AuditLine: operators.AuditLine,
  AuthorizeDecision: oauth.AuthorizeDecision,
  Balance: wallet.Balance,
  Batch: trading.Batch,
  BatchOperation: trading.BatchOperation,
  BuilderStats: trading.BuilderStats,
  Canceled: trading.Canceled,
  CancelOrder: trading.CancelOrder,
  Candles: markets.Candles,
  ChangeSets: wallet.ChangeSets,
  AskingClient: oauth.AskingClient,
  CreatedOAuthClient: oauth.CreatedOAuthClient,
  CreatedPersonalAccessToken: accounts.CreatedPat,
  Credentials: accounts.Credentials,
  Deposit: wallet.Deposit,
  Event: markets.EventSchema,
  Feed: markets.Feed,
  FeedEvent: markets.FeedEvent,
  FeedMarket: markets.FeedMarket,
  Fill: trading.Fill,
  Health: operators.Health,
  HousePayment: wallet.HousePayment,
  HouseWithdrawal: wallet.HouseWithdrawal,
  IdentityApplication: accounts.IdentityApplication,
  IdentityDocument: accounts.IdentityDocument,
  Introspection: oauth.Introspection,
  Jwks: oauth.Jwks,
  Limits: trading.Limits,
  Market: markets.MarketSchema,
  MarketBook: markets.MarketBook,
  MarketChanges: markets.MarketChanges,
  MarketRecord: markets.MarketRecord,
  MarketSettlement: markets.Settlement,
  NewDeposit: wallet.NewDeposit,
  NewEvent: markets.NewEvent,
  NewMarket: markets.NewMarket,
  NewOAuthClient: oauth.NewOAuthClient,
  NewPersonalAccessToken: accounts.NewPat,
  NewWithdrawal: wallet.NewWithdrawal,
  OAuthClient: oauth.OAuthClient,
  OAuthGrant: oauth.OAuthGrant,
  OperatorApplication: operators.OperatorApplication,
  OperatorUser: operators.OperatorUser,
  Order: trading.Order,
  OrderEvent: trading.OrderEvent,
  OutcomeBook: markets.OutcomeBook,
  OwnDeposit: wallet.OwnDeposit,
  OwnFill: trading.OwnFill,
  OwnWithdrawal: wallet.OwnWithdrawal,
  PasswordChange: accounts.PasswordChange,
  PasswordReset: accounts.PasswordReset,
  PersonalAccessToken: accounts.Pat,
  PlaceOrder: trading.PlaceOrder,
  Position: wallet.Position,
  Quotes: trading.Quotes,
  Rate: http.Rate,
  Registration: accounts.Registration,
  Resolution: markets.Resolution,
  Results: trading.Results,
  ServerMetadata: oauth.ServerMetadata,
  Session: accounts.Session,
  SetsChange: wallet.SetsChange,
  Settlement: wallet.Settlement,
  SignIn: accounts.SignIn,
  SocketTicket: websocket.SocketTicket,
  Solvency: wallet.Solvency,
  Subscriptions: websocket.Subscriptions,
  TermsChange,
  Ticker: websocket.Ticker,
  TokenAnswer: oauth.TokenAnswer,
  TokenForm: oauth.TokenForm,
  TokenOnlyForm: oauth.TokenOnlyForm,
  Tokens: accounts.Tokens,
  Trade: markets.Trade,
  Transaction: wallet.Transaction,
  User: accounts.User,
  Withdrawal: wallet.Withdrawal,
  WithdrawalDecision: wallet.WithdrawalDecision,
  ...BATCH_OPERATIONS,
};
const NAMES: ReadonlyMap<unknown, string> = new Map(Object.entries(NAMED).map(([name, schema]) => [schema, name]));
const PREFIX = "#/components/schemas/";

const refTo = (name: string): JsonObject => ({ $ref: PREFIX + name });

/** Returns a schema as a document shows it. */
export function documented(schema: TSchema): Json {
  return written(schema);
}

function written(value: unknown): Json {
  const name = NAMES.get(value);
  return name === undefined ? spelledOut(value) : refTo(name);
}

function spelledOut(value: unknown): Json {
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== "object" || value === null) return value as Json;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, written(field)]));
}

function definition(name: string): Json {
  if (name !== "BatchOperation") return spelledOut(NAMED[name]);
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
