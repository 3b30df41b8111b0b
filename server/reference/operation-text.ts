/** What an operation's documentation says beyond its route: its name, where it stands, an example of it. */
import type { JsonObject } from "./components.ts";

export const TAGS = {
  Orders: "Place, amend, cancel and look up orders; quotes, batches, fills, and order updates to read again.",
  Markets: "Market data, for anybody: markets, events, trades, order books, candles.",
  Wallet: "Balance, positions and transactions; complete sets; deposits and withdrawals.",
  Account: "The caller's account, phone, identity, sessions, tokens and limits.",
  "Sign-in": "Accounts are made here, and tokens had.",
  OAuth: "OAuth 2.0 for third parties: code flow with PKCE (S256), exact redirect URIs.",
  Proposals: "Markets that users would have opened.",
  Operators: "For operators, with a session's token: users, money, proposals, the life of markets, the audit log.",
  Service: "Health, metrics, and the documents of the API.",
} as const;
type Tag = keyof typeof TAGS;

export interface OperationText {
  /** Unique, and the same for good: clients are generated with it. */
  readonly id: string;
  readonly tag: Tag;
  readonly description?: string;
  /** HTTP statuses of its errors beyond those that follow from the route. */
  readonly errors?: readonly number[];
  /** The example: path parameters, query, body; and the `data` that answers it (the body where it isn't enveloped). */
  readonly params?: JsonObject;
  readonly query?: JsonObject;
  readonly body?: JsonObject;
  readonly response: object | string | null;
  /** With `Accept: text/csv` the answer is a file like this. */
  readonly csv?: string;
}

/** By method and path, as in the route table. */
export type OperationTexts = Readonly<Record<string, OperationText>>;
