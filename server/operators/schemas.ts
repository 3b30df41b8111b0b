/** The shapes of operators' requests about users, identity applications and the audit log, and of the answers. */
import Type, { type TSchema } from "typebox";
import {
  APPLICATION_STATUSES,
  Approval,
  Email,
  IdentityApplication,
  ROLES_OF_USERS,
  user,
} from "../accounts/schemas.ts";
import * as T from "../accounts/terms.ts";
import { closed, Id, names, nullable, page, Time } from "../http/schemas.ts";
import { MAX_AUDIT_WALKED } from "../queries/limits.ts";
import { Balance } from "../wallet/schemas.ts";
import { MAX_USERS_WALKED } from "./limits.ts";

export const Health = closed({ status: Type.String({ description: "ok, or why not" }) });

/** A page of a list whose filters may fit little of it. */
function walkOf<T extends TSchema>(item: T, bound: number) {
  const description = `one read looks at the next ${bound} at most: a page may have few items, or none, and go on`;
  return closed({ items: Type.Array(item), next_cursor: nullable(Type.String({ description })) });
}

// ---------------------------------------------------------------- users

export const UsersQuery = closed({
  ...page,
  email: Type.Optional(Email),
  role: Type.Optional(names(ROLES_OF_USERS)),
  kyc_tier: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
  suspended: Type.Optional(Type.Boolean()),
});

export const OperatorUser = closed({
  ...user,
  suspended_at: nullable(Time),
  second_factors: Type.Integer({ minimum: 0, description: "how many the account has" }),
  balance: Balance,
  terms: T.Terms,
  terms_approval: nullable(Approval),
});
export const Users = walkOf(OperatorUser, MAX_USERS_WALKED);

// ---------------------------------------------------------------- identity applications

export const ApplicationsQuery = closed({
  ...page,
  status: Type.Optional(names(APPLICATION_STATUSES, { default: "pending" })),
  email: Type.Optional(Email),
});
export const OperatorApplication = closed({
  ...IdentityApplication.properties,
  user_id: Id,
  email: Type.String(),
  document_number: Type.String(),
});

// ---------------------------------------------------------------- the audit log

export const AuditQuery = closed({
  ...page,
  user_id: Type.Optional(Id),
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
  from: Type.Optional(Time),
  to: Type.Optional(Time),
});
export const AuditLine = closed({
  id: Id,
  at: Time,
  action: Type.String(),
  actor: Type.String(),
  user_id: nullable(Id),
  subject: nullable(Type.Integer({ minimum: 0, description: "the id of what was changed" })),
  details: nullable(Type.Object({})),
  request_id: nullable(Type.String()),
  address: nullable(Type.String()),
});
export const AuditLog = walkOf(AuditLine, MAX_AUDIT_WALKED);
