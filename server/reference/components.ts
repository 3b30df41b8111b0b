/**
 * The schemas that the API documents name, and how a schema is written into a document: as it is, except that what has
 * a name is referred to by it. Names go by identity, so that nothing is described twice.
 */
import Type, { type TSchema } from "typebox";
import { TermsChange } from "../accounts/terms.ts";
import * as S from "../http/schemas.ts";
import * as MS from "../markets/schemas.ts";
import * as O from "../operators/schemas.ts";
import * as W from "../wallet/schemas.ts";

/** Values of a document: what JSON has. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

/** A closed object whose `op` is this one. */
export function withOperation(schema: TSchema, op: string): TSchema {
  const { properties } = schema as unknown as { properties: Record<string, TSchema> };
  return S.closed({ ...properties, op: Type.Literal(op) });
}

const { place, cancel, amend } = S.BatchOperations;
/** What the server checks by `op`, one after the other. */
const BATCH_OPERATIONS = {
  PlaceOperation: withOperation(place, "place"),
  CancelOperation: withOperation(cancel, "cancel"),
  AmendOperation: withOperation(amend, "amend"),
};

const NAMED: Readonly<Record<string, TSchema>> = {
  Account: S.Account,
  AmendOrder: S.AmendOrder,
  Approval: W.Approval,
  AuditLine: O.AuditLine,
  AuthorizeDecision: S.AuthorizeDecision,
  Balance: S.Balance,
  Batch: S.Batch,
  BatchOperation: S.BatchOperation,
  BuilderStats: S.BuilderStats,
  Canceled: S.Canceled,
  CancelOrder: S.CancelOrder,
  Candles: S.Candles,
  ChangeSets: S.ChangeSets,
  AskingClient: S.AskingClient,
  CreatedOAuthClient: S.CreatedOAuthClient,
  CreatedPersonalAccessToken: S.CreatedPat,
  Credentials: S.Credentials,
  Deposit: W.Deposit,
  Event: S.EventSchema,
  Feed: S.Feed,
  FeedEvent: S.FeedEvent,
  FeedMarket: S.FeedMarket,
  Fill: S.Fill,
  Health: S.Health,
  HousePayment: W.HousePayment,
  HouseWithdrawal: W.HouseWithdrawal,
  IdentityApplication: S.IdentityApplication,
  IdentityDocument: S.IdentityDocument,
  Introspection: S.Introspection,
  Jwks: S.Jwks,
  Limits: S.Limits,
  Market: S.MarketSchema,
  MarketBook: S.MarketBook,
  MarketChanges: MS.MarketChanges,
  MarketRecord: MS.MarketRecord,
  MarketSettlement: MS.Settlement,
  NewDeposit: W.NewDeposit,
  NewEvent: MS.NewEvent,
  NewMarket: MS.NewMarket,
  NewOAuthClient: S.NewOAuthClient,
  NewPersonalAccessToken: S.NewPat,
  NewWithdrawal: W.NewWithdrawal,
  OAuthClient: S.OAuthClient,
  OAuthGrant: S.OAuthGrant,
  OperatorApplication: O.OperatorApplication,
  OperatorUser: O.OperatorUser,
  Order: S.Order,
  OrderEvent: S.OrderEvent,
  OutcomeBook: S.OutcomeBook,
  OwnDeposit: W.OwnDeposit,
  OwnFill: S.OwnFill,
  OwnWithdrawal: W.OwnWithdrawal,
  PasswordChange: S.PasswordChange,
  PasswordReset: S.PasswordReset,
  PersonalAccessToken: S.Pat,
  PlaceOrder: S.PlaceOrder,
  Position: S.Position,
  Quotes: S.Quotes,
  Rate: S.Rate,
  Registration: S.Registration,
  Resolution: MS.Resolution,
  Results: S.Results,
  ServerMetadata: S.ServerMetadata,
  Session: S.Session,
  SetsChange: S.SetsChange,
  Settlement: W.Settlement,
  SignIn: S.SignIn,
  SocketTicket: S.SocketTicket,
  Solvency: S.Solvency,
  Subscriptions: S.Subscriptions,
  TermsChange,
  Ticker: S.Ticker,
  TokenAnswer: S.TokenAnswer,
  TokenForm: S.TokenForm,
  TokenOnlyForm: S.TokenOnlyForm,
  Tokens: S.Tokens,
  Trade: S.Trade,
  Transaction: S.Transaction,
  User: S.User,
  Withdrawal: W.Withdrawal,
  WithdrawalDecision: W.WithdrawalDecision,
  ...BATCH_OPERATIONS,
};
const NAMES: ReadonlyMap<unknown, string> = new Map(Object.entries(NAMED).map(([name, schema]) => [schema, name]));
const PREFIX = "#/components/schemas/";

const refTo = (name: string): JsonObject => ({ $ref: PREFIX + name });

/** A schema as a document shows it. */
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

/** The definitions of all that these parts of a document refer to, and so on, by name. */
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
