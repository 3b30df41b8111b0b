/** Who acts under /admin, and the constants of their routes. */

import type { Static } from "typebox";
import { ApiError, ErrorKind } from "../errors.ts";
import type { RouteRequest } from "../http/route.ts";
import type { NoteOnly } from "../http/text-schemas.ts";
import { actorOf } from "./audit.ts";

/** Of routes for operators: a session of theirs, or the machine's own shell, which has no token. */
export const OPERATOR = { access: "operator", tokens: ["session"] } as const;

export interface Operator {
  /** As the audit log names it: "operator 3", or "admin" for the machine's own shell. */
  readonly actor: string;
  /** Null for the machine's own shell. */
  readonly userId: number | null;
}

const SHELL: Operator = { actor: "admin", userId: null };

/** Whoever asks, on a route for operators. */
export function operatorOf({ principal }: Pick<RouteRequest, "principal">): Operator {
  return principal === null ? SHELL : { actor: actorOf(principal), userId: principal.userId };
}

/**
 * Nobody acts on an account of their own, alone or as one of two. The machine's shell has no account.
 * @param userId whose account it is; null: nobody's in particular
 * @throws ApiError 40300
 */
export function checkNotOwn(operator: Operator, userId: number | null): void {
  if (userId === null || userId !== operator.userId) return;
  throw new ApiError(ErrorKind.forbidden, "the account is your own: another operator must act on it");
}

/** What they note beside it. */
export function noteOf({ body }: RouteRequest): string | null {
  return (body as Static<typeof NoteOnly>).note ?? null;
}
