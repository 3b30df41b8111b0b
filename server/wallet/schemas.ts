/** The shapes of balances, positions and transactions, and of deposits, withdrawals, settlements and the house. */
import Type from "typebox";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import { Approval } from "../accounts/schemas.ts";
import { about, closed, Id, Money, money, names, nullable, page, shares, span, Time } from "../http/schemas.ts";
import { note } from "../http/text-schemas.ts";
import { OutcomeId, Quantity } from "../markets/schemas.ts";
import { LAYOUTS } from "../queries/export-columns.ts";
import { MAX_TRAIL } from "../queries/limits.ts";
import { MAX_ADDRESS_LENGTH, MAX_PAYMENT_MICRO, MAX_REFERENCE_LENGTH } from "./limits.ts";

export const ChangeSets = closed({ market_id: Id, quantity: about(Quantity, "complete sets, 1 USDC each") });

const TRANSACTION_TYPES = ["deposit", "withdrawal", "trade", "fee", "rebate", "split", "merge", "settlement"] as const;

export const TransactionsQuery = closed({
  ...page,
  type: Type.Optional(names(TRANSACTION_TYPES)),
  ...span,
});

export const PositionsQuery = closed({ ...page, market_id: Type.Optional(Id) });

// ---------------------------------------------------------------- exports

const layout = {
  layout: Type.Optional(
    names(LAYOUTS, {
      default: "fields",
      description:
        "columns: the API's fields in its units; or, for spreadsheets, names of markets and outcomes, cents, USDC and UTC times",
    }),
  ),
};
const ofMarket = { market_id: Type.Optional(Id) };
const ORDER_SETS = ["active", "all"] as const;
export const OrdersExport = closed({
  ...{ ...layout, ...ofMarket, ...span },
  status: Type.Optional(about(names(ORDER_SETS), "active by default; all: finished orders too")),
});
export const FillsExport = closed({ ...layout, ...ofMarket, ...span });
export const PositionsExport = closed({ ...layout, ...ofMarket });
export const SettlementsExport = closed({ ...layout, ...ofMarket });
export const TransactionsExport = closed({ ...layout, ...span, type: Type.Optional(names(TRANSACTION_TYPES)) });

// ---------------------------------------------------------------- balance and positions

export const Balance = closed({
  available: money("available for trading and withdrawals"),
  held: money("held by live buy orders and pending withdrawals"),
  total: money("available + held"),
});

export const SetsChange = closed({
  market_id: Id,
  quantity: about(Quantity, "complete sets"),
  fee: money("of a merge: what the house keeps of the 1 USDC per set"),
});

export const Transaction = closed({
  id: Id,
  type: names(TRANSACTION_TYPES),
  amount: money("change of the balance, negative for a debit"),
  balance_after: money("total balance afterwards"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  order_id: nullable(Id),
  trade_id: about(nullable(Id), "id of the caller's own fill, as in GET /me/fills"),
  match_id: about(nullable(Id), "id of the fill's match, which all of its fills share"),
  deposit_id: about(
    nullable(Id),
    "of a deposit: its id, as in GET /wallet/deposits; of a reversal, whose amount is negative: that of the deposit",
  ),
  created_at: Time,
});

export const Position = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  quantity: shares("total position"),
  held: shares("held by live sell orders"),
  cost: money("cost of the shares"),
  average_price: nullable(
    Type.Number({ description: "basis points per share, possibly fractional; null without shares" }),
  ),
  realized_pnl: money("profit on shares sold, merged or paid out; negative for a loss"),
  market_value: nullable(Type.Integer({ minimum: 0, description: "micro-USDC, at the last price; null without one" })),
  unrealized_pnl: nullable(Type.Integer({ description: "micro-USDC: market_value - cost" })),
});

export const Portfolio = closed({
  value: money("available + held + in_positions"),
  available: money("available for trading and withdrawals"),
  held: money("held by live buy orders and pending withdrawals"),
  in_positions: money(
    "worth of all shares at the last prices; outcomes without one share equally what the market's others leave of 1 USDC",
  ),
  cost: money("cost of all shares"),
  net_deposits: money("deposits less paid withdrawals"),
  profit: money("value - net_deposits = unrealized_pnl + realized_pnl; negative for a loss"),
  unrealized_pnl: money("in_positions - cost; negative for a loss"),
  realized_pnl: money("profit on shares sold, merged or paid out, after fees, with rebates; negative for a loss"),
  fees: money("all fees paid"),
  rebates: money("all rebates earned"),
});

const PORTFOLIO_INTERVALS = ["1h", "1d"] as const;

export const PortfolioHistoryQuery = closed({
  interval: Type.Optional(about(names(PORTFOLIO_INTERVALS), "1h by default")),
  from: Type.Optional(about(Time, "ms since the Unix epoch; 500 intervals before `to` if missing, at most 1500")),
  to: Type.Optional(about(Time, "ms since the Unix epoch; now if missing")),
});

export const PortfolioHistory = closed({
  interval: names(PORTFOLIO_INTERVALS),
  first_at: about(nullable(Time), "when the user first had money; null: never"),
  items: Type.Array(
    Type.Array(Type.Integer(), {
      minItems: 3,
      maxItems: 3,
      description:
        "[at, value, profit]: ms, micro-USDC; ascending, at the beginning of each interval. Begins once the user had money; shows the latest 200,000 changes of a position in an hour",
    }),
  ),
});

export const Solvency = closed({
  deposits: money("all deposits"),
  withdrawals: money("all paid withdrawals"),
  users_total: money("sum of all users' balances"),
  collateral: money("of all markets: 1 USDC per outstanding complete set"),
  house: money("balance of the house account"),
  balanced: Type.Boolean({ description: "deposits - withdrawals = users_total + collateral + house" }),
  sequence: Type.Integer({ description: "of the committed transaction that the totals reflect" }),
  at: Time,
});

const WITHDRAWAL_STATUSES = ["pending", "paid", "refused", "canceled"] as const;

const Amount = Type.Integer({ minimum: 1, maximum: MAX_PAYMENT_MICRO, description: "micro-USDC" });
/** ASCII with single spaces, so that no two references look alike. */
const Reference = Type.String({
  minLength: 1,
  maxLength: MAX_REFERENCE_LENGTH,
  pattern: "^[!-~]+(?: [!-~]+)*$",
  description: "unique external reference of the payment: ASCII, single spaces inside only",
});
const Address = Type.String({
  minLength: 1,
  maxLength: MAX_ADDRESS_LENGTH,
  pattern: "^[!-~]+$",
  description: "destination of the payment: visible ASCII without spaces",
});

// ---------------------------------------------------------------- requests

export const NewDeposit = closed({ user_id: Id, amount: Amount, reference: Reference });
export const Reversal = closed({ amount: Amount, reference: Reference, note });
export const HousePayment = closed({ amount: Amount, reference: Reference });
export const NewWithdrawal = closed({ amount: Amount, address: Address });
export const WithdrawalPayment = closed({
  reference: Type.Optional(nullable(Reference)),
  note,
});
export const UserQuery = closed({ ...page, user_id: Type.Optional(Id) });
export const WithdrawalsQuery = closed({ ...page, status: Type.Optional(names(WITHDRAWAL_STATUSES)) });
export const AllWithdrawalsQuery = closed({ ...WithdrawalsQuery.properties, user_id: Type.Optional(Id) });
export const SettlementsQuery = closed({ ...page, market_id: Type.Optional(Id) });

// ---------------------------------------------------------------- responses

const deposit = {
  id: Id,
  amount: Type.Integer({ description: "micro-USDC; negative: a reversal" }),
  reference: Type.String({ description: "of the payment; references are compared without case" }),
  reverses: nullable(Type.Integer({ minimum: 1, description: "of a reversal: the deposit that it takes back" })),
  created_at: Time,
};
export const OwnDeposit = closed(deposit);
export const DepositInstructions = closed({
  reference: Type.String({
    description: "to be given with each payment: a creditor reference (ISO 11649) whose end is PX and the user's id",
  }),
  instructions: nullable(Type.String({ description: "the operators' text, with the reference in it; null: none" })),
});
export const Deposit = closed({
  ...deposit,
  user_id: nullable(Type.Integer({ minimum: 1, description: "null: the house" })),
});
const withdrawal = {
  id: Id,
  amount: Amount,
  address: Type.String(),
  status: names(WITHDRAWAL_STATUSES),
  reference: nullable(Type.String({ description: "external reference of the payment" })),
  note: nullable(Type.String()),
  created_at: Time,
  decided_at: nullable(Time),
};
export const OwnWithdrawal = closed(withdrawal);
export const Withdrawal = closed({ ...withdrawal, user_id: Id, email: Type.String() });
/** The first of two approvals, if there was one. */
const first = {
  approved_by: nullable(Type.String({ description: "the operator who gave the first of two approvals" })),
  approved_at: nullable(Time),
};
const Actor = Type.String({ description: "for example operator 3, admin (the server's shell), seed" });
const newest = { description: `newest first, at most ${MAX_TRAIL}` };
export const Trail = closed({
  deposits: Type.Array(
    closed({
      ...deposit,
      credited_by: about(nullable(Actor), "or who took it back"),
      ...first,
    }),
    newest,
  ),
  terms: Type.Array(
    closed({
      ...{ set_at: Time, set_by: Actor },
      changes: Type.Object({}, { additionalProperties: true, description: "the changed terms" }),
      ...first,
    }),
    newest,
  ),
  identity: Type.Array(
    closed({
      ...{ application_id: Id, status: names(["approved", "refused"]), decided_at: Time, decided_by: Actor },
      note: nullable(Type.String()),
    }),
    newest,
  ),
  has_more: Type.Boolean({ description: "older entries exist: see the audit log" }),
});
export const WithdrawalWithTrail = closed({ ...Withdrawal.properties, trail: Trail });

/** The result of a deposit's or reversal's request: either on record, or waiting for its second approval. */
const repeats = Type.Optional(
  Type.Integer({
    minimum: 1,
    description: "the payment on record whose reference differs only in case, if there is one",
  }),
);
export const NewDepositAnswer = closed({
  ...Deposit.properties,
  id: nullable(Type.Integer({ minimum: 1, description: "null: not yet credited or taken back" })),
  created_at: nullable(Time),
  repeats,
  approval: nullable(Approval),
});
export const WithdrawalDecision = closed({
  withdrawal: Withdrawal,
  approval: nullable(Approval),
});
const houseWithdrawal = { id: Id, amount: Amount, reference: Type.String(), created_at: Time };
export const HouseWithdrawal = closed({
  withdrawal: nullable(closed(houseWithdrawal)),
  repeats,
  approval: nullable(Approval),
});
export const Settlement = closed({
  id: Id,
  market_id: Id,
  outcome_id: Id,
  quantity: Type.Integer({ minimum: 1, description: "shares" }),
  payout: Type.Integer({ minimum: 0, maximum: FULL_PRICE_BPS, description: "basis points" }),
  amount: Money,
  cost: Money,
  realized_pnl: Money,
  created_at: Time,
});
