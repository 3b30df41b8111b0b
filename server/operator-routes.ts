/** Operators' routes of users: identity applications, suspension, terms, the audit log. */
import type { Route } from "./route.ts";

export function createOperatorRoutes(): Route[] {
  return [];
}
