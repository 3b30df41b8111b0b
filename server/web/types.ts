/** Types of API responses, derived from the server's schemas. Types only: no server code reaches the bundle. */
import type { Static } from "typebox";
import type * as F from "../accounts/second-factor-schemas.ts";
import type * as S from "../http/schemas.ts";
import type * as M from "../markets/schemas.ts";
import type * as O from "../operators/schemas.ts";
import type * as W from "../wallet/schemas.ts";

export type User = Static<typeof S.User>;

export type Market = Static<typeof S.MarketSchema>;

export type Outcome = Market["outcomes"][number];

export type MarketEvent = Static<typeof S.EventSchema>;

export type Feed = Static<typeof S.Feed>;

export type FeedItem = Feed["items"][number];

export type Trade = Static<typeof S.Trade>;

export type OutcomeBook = Static<typeof S.OutcomeBook>;

export type Candles = Static<typeof S.Candles>;

export type Ticker = Static<typeof S.Ticker>;

export type Order = Static<typeof S.Order>;

export type PlaceOrder = Static<typeof S.PlaceOrder>;

export type Balance = Static<typeof S.Balance>;

export type Position = Static<typeof S.Position>;

export type Transaction = Static<typeof S.Transaction>;

export type OwnFill = Static<typeof S.OwnFill>;

export type Limits = Static<typeof S.Limits>;

export type Pat = Static<typeof S.Pat>;

export type CreatedPat = Static<typeof S.CreatedPat>;

export type Session = Static<typeof S.Session>;

export type OAuthClient = Static<typeof S.OAuthClient>;

export type CreatedOAuthClient = Static<typeof S.CreatedOAuthClient>;

export type AskingClient = Static<typeof S.AskingClient>;

export type SocialProviders = Static<typeof S.SocialProviders>;

export type OAuthGrant = Static<typeof S.OAuthGrant>;

export type IdentityApplication = Static<typeof S.IdentityApplication>;

export type SignInChallenge = Static<typeof F.SignInChallenge>;

export type SecondFactors = Static<typeof F.SecondFactors>;

export type SecondFactor = Static<typeof F.SecondFactor>;

export type Enrolment = Static<typeof F.Enrolment>;

export type ConfirmedFactor = Static<typeof F.Confirmed>;

export type FactorReset = Static<typeof F.FactorReset>;

export type Heartbeat = Static<typeof S.Heartbeat>;

export type Solvency = Static<typeof S.Solvency>;

export type Deposit = Static<typeof W.OwnDeposit>;

export type Withdrawal = Static<typeof W.OwnWithdrawal>;

export type Settlement = Static<typeof W.Settlement>;

export type Approval = Static<typeof W.Approval>;

export type Trail = Static<typeof W.Trail>;

export type OperatorDeposit = Static<typeof W.Deposit>;

export type DepositResponse = Static<typeof W.NewDepositAnswer>;

export type HouseWithdrawal = Static<typeof W.HouseWithdrawal>;

export type WithdrawalDecision = Static<typeof W.WithdrawalDecision>;

export type OperatorWithdrawal = Static<typeof W.Withdrawal>;

export type NewMarket = Static<typeof M.NewMarket>;

export type NewEvent = Static<typeof M.NewEvent>;

export type MarketChanges = Static<typeof M.MarketChanges>;

export type MarketSettlement = Static<typeof M.Settlement>;

export type MarketRecord = Static<typeof M.MarketRecord>;

export type Proposals = Static<typeof M.Proposals>;

export type OperatorUser = Static<typeof O.OperatorUser>;

export type { TermsChange } from "../accounts/terms.ts";

export type OperatorApplication = Static<typeof O.OperatorApplication>;

export type AuditLine = Static<typeof O.AuditLine>;

/** A page of a cursor-paged list. */
export interface Page<T> {
  readonly items: T[];
  readonly next_cursor: string | null;
}
