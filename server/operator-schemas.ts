/** The shapes of operators' requests about users, identity applications and the audit log, and of the answers. */
import Type, { type TSchema } from "typebox";
import {
  MAX_AUDIT_WALKED,
  MAX_MONEY_MICRO,
  MAX_OWN_RATE_BPS,
  MAX_OWN_REBATE_BPS,
  MAX_RATE_LIMIT_FACTOR,
  MAX_USERS_WALKED,
} from "../engine/limits.ts";
import * as S from "./schemas.ts";

/** A page of a list whose filters may fit little of it. */
function walkOf<T extends TSchema>(item: T, bound: number) {
  const description = `one read looks at the next ${bound} at most: a page may have few items, or none, and go on`;
  return S.closed({ items: Type.Array(item), next_cursor: S.nullable(Type.String({ description })) });
}

// ---------------------------------------------------------------- users

export const UsersQuery = S.closed({
  ...S.page,
  email: Type.Optional(S.Email),
  role: Type.Optional(S.names(S.ROLES_OF_USERS)),
  kyc_tier: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
  suspended: Type.Optional(Type.Boolean()),
});

const rate = (maximum: number) => Type.Integer({ minimum: 0, maximum, description: "BPS of the notional" });
const Fee = rate(MAX_OWN_RATE_BPS);
const Rebate = rate(MAX_OWN_REBATE_BPS);
const terms = {
  daily_limit: S.nullable(
    Type.Integer({ minimum: 0, maximum: MAX_MONEY_MICRO, description: "of activity a UTC day, micro-USDC" }),
  ),
  trading_fee: S.nullable(Fee),
  maker_rebate: S.nullable(Rebate),
  pat_rebate: S.nullable(Rebate),
  rate_limit_factor: S.nullable(
    Type.Integer({ minimum: 1, maximum: MAX_RATE_LIMIT_FACTOR, description: "multiplies the limits of the user" }),
  ),
};
/** Null: as for everybody again. */
export const TermsChange = S.closed({
  daily_limit: Type.Optional(terms.daily_limit),
  trading_fee: Type.Optional(terms.trading_fee),
  maker_rebate: Type.Optional(terms.maker_rebate),
  pat_rebate: Type.Optional(terms.pat_rebate),
  rate_limit_factor: Type.Optional(terms.rate_limit_factor),
});
export const OperatorUser = S.closed({
  ...S.user,
  suspended_at: S.nullable(S.Time),
  balance: S.Balance,
  terms: S.closed(terms),
});
export const Users = walkOf(OperatorUser, MAX_USERS_WALKED);

// ---------------------------------------------------------------- identity applications

export const ApplicationsQuery = S.closed({
  ...S.page,
  status: Type.Optional(S.names(S.APPLICATION_STATUSES, { default: "pending" })),
  email: Type.Optional(S.Email),
});
export const OperatorApplication = S.closed({
  ...S.IdentityApplication.properties,
  user_id: S.Id,
  email: Type.String(),
  document_number: Type.String(),
});

// ---------------------------------------------------------------- the audit log

export const AuditQuery = S.closed({
  ...S.page,
  user_id: Type.Optional(S.Id),
  actor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: "such as user 12, operator 3, admin" }),
  ),
  action: Type.Optional(
    Type.String({
      pattern: "^[a-z_]+(\\.[a-z_]+)*\\.?$",
      maxLength: 100,
      description: "such as user.suspend; one that ends in a dot means all that begin so",
    }),
  ),
  from: Type.Optional(S.Time),
  to: Type.Optional(S.Time),
});
export const AuditLine = S.closed({
  id: S.Id,
  at: S.Time,
  action: Type.String(),
  actor: Type.String(),
  user_id: S.nullable(S.Id),
  subject: S.nullable(Type.Integer({ minimum: 0, description: "the id of what was changed" })),
  details: S.nullable(Type.Object({})),
  request_id: S.nullable(Type.String()),
  address: S.nullable(Type.String()),
});
export const AuditLog = walkOf(AuditLine, MAX_AUDIT_WALKED);
