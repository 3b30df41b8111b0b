/** The documentation of every operation, and what the parts of the OpenAPI document share. */
import type { TSchema } from "typebox";
import { ACCOUNT_TEXTS, OAUTH_TEXTS, SIGN_IN_TEXTS, WALLET_TEXTS } from "./account-texts.ts";
import type { OperationTexts } from "./operation-text.ts";
import { OPERATOR_TEXTS, SERVICE_TEXTS } from "./operator-texts.ts";
import { SECOND_FACTOR_TEXTS } from "./second-factor-texts.ts";
import { MARKET_TEXTS, ORDER_TEXTS, PROPOSAL_TEXTS } from "./trading-texts.ts";

export const TEXTS: OperationTexts = {
  ...ORDER_TEXTS,
  ...MARKET_TEXTS,
  ...WALLET_TEXTS,
  ...ACCOUNT_TEXTS,
  ...SIGN_IN_TEXTS,
  ...SECOND_FACTOR_TEXTS,
  ...OAUTH_TEXTS,
  ...PROPOSAL_TEXTS,
  ...OPERATOR_TEXTS,
  ...SERVICE_TEXTS,
};

export const JSON_TYPE = "application/json";
export const MESSAGE_PACK = "application/msgpack";
export const FORM = "application/x-www-form-urlencoded";
export const CSV = "text/csv";

/** An object schema as a document reads it. */
export interface ObjectSchema {
  readonly properties: Readonly<Record<string, TSchema & { readonly description?: string }>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}
