/** The shapes of requests and answers about deposits, withdrawals, settlements and the house. */
import Type from "typebox";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import { Approval } from "../accounts/schemas.ts";
import { about, closed, Id, Money, money, names, nullable, page, shares, span, Time } from "../http/schemas.ts";
import { note } from "../http/text-schemas.ts";
import { OutcomeId, Quantity } from "../markets/schemas.ts";
import { MAX_TRAIL } from "../queries/limits.ts";
import { MAX_ADDRESS_LENGTH, MAX_PAYMENT_MICRO, MAX_REFERENCE_LENGTH } from "./limits.ts";

export const ChangeSets = closed({ market_id: Id, quantity: about(Quantity, "complete sets, of 1 USDC each") });

const TRANSACTION_TYPES = ["deposit", "withdrawal", "trade", "fee", "rebate", "split", "merge", "settlement"] as const;

export const TransactionsQuery = closed({
  ...page,
  type: Type.Optional(names(TRANSACTION_TYPES)),
  ...span,
});

export const PositionsQuery = closed({ ...page, market_id: Type.Optional(Id) });

export const Balance = closed({
  available: money("free to trade or to withdraw"),
  held: money("by live buy orders and pending withdrawals"),
  total: money("available + held"),
});

export const SetsChange = closed({
  market_id: Id,
  quantity: about(Quantity, "complete sets"),
  fee: money("of a merge: what the house kept of its 1 USDC a set"),
});

export const Transaction = closed({
  id: Id,
  type: names(TRANSACTION_TYPES),
  amount: money("what it changed the balance by, negative where it took"),
  balance_after: money("the whole balance after it"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  order_id: nullable(Id),
  trade_id: about(nullable(Id), "of the fill"),
  created_at: Time,
});

export const Position = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  quantity: shares("all that the caller has"),
  held: shares("of these, held by live sell orders"),
  cost: money("what the shares cost"),
  average_price: nullable(Type.Number({ description: "basis points a share, may be fractional; null without shares" })),
  realized_pnl: money("profit of the shares that were sold, merged or paid out, negative for a loss"),
  market_value: nullable(
    Type.Integer({ minimum: 0, description: "micro-USDC, at the last price; null where there is none" }),
  ),
  unrealized_pnl: nullable(Type.Integer({ description: "micro-USDC: market_value - cost" })),
});

export const Solvency = closed({
  deposits: money("all that came in"),
  withdrawals: money("all that was paid out"),
  users_total: money("of all users' balances"),
  collateral: money("of all markets: 1 USDC for each complete set outstanding"),
  house: money("of the house account"),
  balanced: Type.Boolean({ description: "deposits - withdrawals = users_total + collateral + house" }),
  sequence: Type.Integer({ description: "of the committed transaction that these sums are of" }),
  at: Time,
});

const WITHDRAWAL_STATUSES = ["pending", "paid", "refused", "canceled"] as const;

const Amount = Type.Integer({ minimum: 1, maximum: MAX_PAYMENT_MICRO, description: "micro-USDC" });
/** ASCII, with single spaces within: none looks like another. */
const Reference = Type.String({
  minLength: 1,
  maxLength: MAX_REFERENCE_LENGTH,
  pattern: "^[!-~]+(?: [!-~]+)*$",
  description: "what the payment is known by elsewhere, and no other: ASCII, with single spaces within",
});
const Address = Type.String({
  minLength: 1,
  maxLength: MAX_ADDRESS_LENGTH,
  pattern: "^[!-~]+$",
  description: "where it is to be paid to: visible ASCII without spaces",
});

// ---------------------------------------------------------------- requests

export const NewDeposit = closed({ user_id: Id, amount: Amount, reference: Reference });
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

// ---------------------------------------------------------------- answers

const deposit = { id: Id, amount: Amount, reference: Type.String(), created_at: Time };
export const OwnDeposit = closed(deposit);
export const Deposit = closed({
  ...deposit,
  user_id: nullable(Type.Integer({ minimum: 1, description: "null: the house" })),
});
const withdrawal = {
  id: Id,
  amount: Amount,
  address: Type.String(),
  status: names(WITHDRAWAL_STATUSES),
  reference: nullable(Type.String({ description: "of the payment" })),
  note: nullable(Type.String()),
  created_at: Time,
  decided_at: nullable(Time),
};
export const OwnWithdrawal = closed(withdrawal);
export const Withdrawal = closed({ ...withdrawal, user_id: Id, email: Type.String() });
/** The first of two approvals, where there was one. */
const first = {
  approved_by: nullable(Type.String({ description: "who gave the first of two approvals" })),
  approved_at: nullable(Time),
};
const Actor = Type.String({ description: "such as operator 3, admin (the machine's shell), seed" });
const newest = { description: `newest first, ${MAX_TRAIL} at most` };
export const Trail = closed({
  deposits: Type.Array(
    closed({
      id: Id,
      amount: Amount,
      reference: Type.String(),
      created_at: Time,
      credited_by: nullable(Actor),
      ...first,
    }),
    newest,
  ),
  terms: Type.Array(
    closed({
      ...{ set_at: Time, set_by: Actor },
      changes: Type.Object({}, { additionalProperties: true, description: "the terms that were set" }),
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
  has_more: Type.Boolean({ description: "there are older ones of some kind: the audit log has them" }),
});
export const WithdrawalWithTrail = closed({ ...Withdrawal.properties, trail: Trail });

/** What became of a request for a deposit: it is credited, or its first approval waits. */
export const NewDepositAnswer = closed({
  ...Deposit.properties,
  id: nullable(Type.Integer({ minimum: 1, description: "null: not credited yet" })),
  created_at: nullable(Time),
  approval: nullable(Approval),
});
export const WithdrawalDecision = closed({
  withdrawal: Withdrawal,
  approval: nullable(Approval),
});
export const HouseWithdrawal = closed({ withdrawal: nullable(closed(deposit)), approval: nullable(Approval) });
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
