/** The shapes of operators' requests about users, identity applications and the audit log, and of the answers. */
import Type, { type TSchema } from "typebox";
import * as T from "../accounts/terms.ts";
import * as S from "../http/schemas.ts";
import { MAX_AUDIT_WALKED } from "../queries/limits.ts";
import { Approval } from "../wallet/schemas.ts";
import { MAX_USERS_WALKED } from "./limits.ts";

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

export const OperatorUser = S.closed({
  ...S.user,
  suspended_at: S.nullable(S.Time),
  second_factors: Type.Integer({ minimum: 0, description: "how many the account has" }),
  balance: S.Balance,
  terms: T.Terms,
  terms_approval: S.nullable(Approval),
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
