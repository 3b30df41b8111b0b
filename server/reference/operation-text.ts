/** The documentation of an operation beyond its route: its name, its tag, and an example. */
import type { JsonObject } from "./components.ts";

export const TAGS = {
  Orders: "Place, amend, cancel and look up orders; quotes, batches, fills, past order updates.",
  Markets: "Public market data: markets, events, trades, order books, candles.",
  Wallet: "Balance, positions and transactions; complete sets; deposits and withdrawals.",
  Account: "The caller's account, phone, identity, sessions, tokens and limits.",
  "Sign-in": "Create accounts and obtain tokens.",
  OAuth: "OAuth 2.0 for third parties: code flow with PKCE (S256), exact redirect URIs.",
  Proposals: "Markets that users propose.",
  Operators: "For operators, with a session token: users, money, proposals, the lifecycle of markets, the audit log.",
  Service: "Health, metrics and the API documents.",
} as const;
type Tag = keyof typeof TAGS;

export interface OperationText {
  /** Unique and permanent: generated clients use it as a function name. */
  readonly id: string;
  readonly tag: Tag;
  readonly description?: string;
  /** HTTP statuses of errors beyond those that follow from the route. */
  readonly errors?: readonly number[];
  /** The example: path parameters, query, body; and the `data` of the response (the whole body without an envelope). */
  readonly params?: JsonObject;
  readonly query?: JsonObject;
  readonly body?: JsonObject;
  readonly response: object | string | null;
  /** The response to `Accept: text/csv`. */
  readonly csv?: string;
}

/** Keyed by method and path, as in the route table. */
export type OperationTexts = Readonly<Record<string, OperationText>>;
