/** The shapes of the operators' desk: users, identity applications, the audit log; and of the health checks. */
import Type, { type TSchema } from "typebox";
import {
  APPLICATION_STATUSES,
  Approval,
  Email,
  IdentityApplication,
  ROLES_OF_USERS,
  user,
} from "../accounts/schemas.ts";
import { SUSPENDED_TOKENS } from "../accounts/suspensions.ts";
import * as T from "../accounts/terms.ts";
import { closed, Id, names, nullable, page, Time } from "../http/schemas.ts";
import { note } from "../http/text-schemas.ts";
import { MAX_AUDIT_WALKED } from "../queries/limits.ts";
import { Balance } from "../wallet/schemas.ts";
import { MAX_USERS_WALKED } from "./limits.ts";

/** A page of a list whose filters may match only a few items. */
function walkOf<T extends TSchema>(item: T, bound: number) {
  const description = `one read scans at most ${bound} rows: a page may have few items, or none, while next_cursor continues`;
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

export const Restoration = closed({
  tokens: Type.Optional(
    names(SUSPENDED_TOKENS, {
      description: "what becomes of its personal access tokens and its grants to third parties; `revoke` unless given",
    }),
  ),
  note,
});

export const OperatorUser = closed({
  ...user,
  suspended_at: nullable(Time),
  second_factors: Type.Integer({ minimum: 0, description: "number of second factors" }),
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
    Type.String({ minLength: 1, maxLength: 100, description: "for example user 12, operator 3, admin" }),
  ),
  action: Type.Optional(
    Type.String({
      pattern: "^[a-z_]+(\\.[a-z_]+)*\\.?$",
      maxLength: 100,
      description: "for example user.suspend; a trailing dot matches all actions with that prefix",
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
  subject: nullable(Type.Integer({ minimum: 0, description: "id of the changed object" })),
  details: nullable(Type.Object({})),
  request_id: nullable(Type.String()),
  address: nullable(Type.String()),
});
export const AuditLog = walkOf(AuditLine, MAX_AUDIT_WALKED);
