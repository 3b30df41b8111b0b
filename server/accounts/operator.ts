/** Operators: who acts on /admin routes, and the constants that those routes share. */

import type { Static } from "typebox";
import { ApiError, ErrorKind } from "../errors.ts";
import type { RouteRequest } from "../http/route.ts";
import type { NoteOnly } from "../http/text-schemas.ts";
import { actorOf } from "./audit.ts";

/** Access to operators' routes: an operator's session, or the machine's own shell, which has no token. */
export const OPERATOR = { access: "operator", tokens: ["session"] } as const;

export interface Operator {
  /** The name in the audit log: "operator 3", or "admin" for the machine's own shell. */
  readonly actor: string;
  /** Null for the machine's own shell. */
  readonly userId: number | null;
}

const SHELL: Operator = { actor: "admin", userId: null };

/** The operator that sent the request. */
export function operatorOf({ principal }: Pick<RouteRequest, "principal">): Operator {
  return principal === null ? SHELL : { actor: actorOf(principal), userId: principal.userId };
}

/**
 * No operator acts on their own account, alone or as one of two. The machine's shell has no account.
 * @param userId the account's owner; null: no specific owner
 * @throws ApiError 40300
 */
export function checkNotOwn(operator: Operator, userId: number | null): void {
  if (userId === null || userId !== operator.userId) return;
  throw new ApiError(ErrorKind.forbidden, "the account is your own: another operator must act on it");
}

/** The operator's note on the action. */
export function noteOf({ body }: RouteRequest): string | null {
  return (body as Static<typeof NoteOnly>).note ?? null;
}
