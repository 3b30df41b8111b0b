/** Types of API responses, derived from the server's schemas. Types only: no server code reaches the bundle. */
import type { Static } from "typebox";
import type * as accounts from "../accounts/schemas.ts";
import type * as markets from "../markets/schemas.ts";
import type * as notifications from "../notifications/schemas.ts";
import type * as oauth from "../oauth/schemas.ts";
import type * as operators from "../operators/schemas.ts";
import type * as secondFactors from "../sign-in/second-factor-schemas.ts";
import type * as trading from "../trading/schemas.ts";
import type * as wallet from "../wallet/schemas.ts";
import type * as websocket from "../websocket/schemas.ts";

export type User = Static<typeof accounts.User>;

export type Market = Static<typeof markets.MarketSchema>;

export type Outcome = Market["outcomes"][number];

export type MarketEvent = Static<typeof markets.EventSchema>;

export type Feed = Static<typeof markets.Feed>;

export type DepositInstructions = Static<typeof wallet.DepositInstructions>;
export type Notification = Static<typeof notifications.Notification>;
export type Notifications = Static<typeof notifications.Notifications>;
export type NotificationSettings = Static<typeof notifications.NotificationSettings>;
export type PriceAlert = Static<typeof notifications.PriceAlert>;
export type Watchlist = Static<typeof markets.Watchlist>;

export type HistoryDay = Static<typeof markets.HistoryDay>;

export type Categories = Static<typeof markets.Categories>;

export type FeedItem = Feed["items"][number];

export type Trade = Static<typeof markets.Trade>;

export type OutcomeBook = Static<typeof markets.OutcomeBook>;

export type Candles = Static<typeof markets.Candles>;

export type Ticker = Static<typeof websocket.Ticker>;

export type Order = Static<typeof trading.Order>;

export type PlaceOrder = Static<typeof trading.PlaceOrder>;

export type Balance = Static<typeof wallet.Balance>;

export type Position = Static<typeof wallet.Position>;

export type Portfolio = Static<typeof wallet.Portfolio>;

export type PortfolioHistory = Static<typeof wallet.PortfolioHistory>;

export type Transaction = Static<typeof wallet.Transaction>;

export type OwnFill = Static<typeof trading.OwnFill>;

export type Limits = Static<typeof trading.Limits>;

export type Pat = Static<typeof accounts.Pat>;

export type CreatedPat = Static<typeof accounts.CreatedPat>;

export type Session = Static<typeof accounts.Session>;

export type OAuthClient = Static<typeof oauth.OAuthClient>;

export type CreatedOAuthClient = Static<typeof oauth.CreatedOAuthClient>;

export type AskingClient = Static<typeof oauth.AskingClient>;

export type SocialProviders = Static<typeof accounts.SocialProviders>;

export type OAuthGrant = Static<typeof oauth.OAuthGrant>;

export type IdentityApplication = Static<typeof accounts.IdentityApplication>;

export type SignInChallenge = Static<typeof secondFactors.SignInChallenge>;

export type SecondFactors = Static<typeof secondFactors.SecondFactors>;

export type SecondFactor = Static<typeof secondFactors.SecondFactor>;

export type Enrolment = Static<typeof secondFactors.Enrolment>;

export type ConfirmedFactor = Static<typeof secondFactors.Confirmed>;

export type FactorReset = Static<typeof secondFactors.FactorReset>;

export type Heartbeat = Static<typeof websocket.Heartbeat>;
export type Shutdown = Static<typeof websocket.Shutdown>;

export type Solvency = Static<typeof wallet.Solvency>;

export type Deposit = Static<typeof wallet.OwnDeposit>;

export type Withdrawal = Static<typeof wallet.OwnWithdrawal>;

export type Settlement = Static<typeof wallet.Settlement>;

export type Approval = Static<typeof accounts.Approval>;

export type Trail = Static<typeof wallet.Trail>;

export type OperatorDeposit = Static<typeof wallet.Deposit>;

export type DepositResponse = Static<typeof wallet.NewDepositAnswer>;

export type HouseWithdrawal = Static<typeof wallet.HouseWithdrawal>;

export type WithdrawalDecision = Static<typeof wallet.WithdrawalDecision>;

export type OperatorWithdrawal = Static<typeof wallet.Withdrawal>;

export type NewMarket = Static<typeof markets.NewMarket>;

export type NewEvent = Static<typeof markets.NewEvent>;

export type MarketChanges = Static<typeof markets.MarketChanges>;

export type MarketSettlement = Static<typeof markets.Settlement>;

export type MarketRecord = Static<typeof markets.MarketRecord>;

export type Proposals = Static<typeof markets.Proposals>;

export type OperatorUser = Static<typeof operators.OperatorUser>;

export type { TermsChange } from "../accounts/terms.ts";

export type OperatorApplication = Static<typeof operators.OperatorApplication>;

export type AuditLine = Static<typeof operators.AuditLine>;

/** A page of a cursor-paged list. */
export interface Page<T> {
  readonly items: T[];
  readonly next_cursor: string | null;
}
