/** A user's status as badges. */
import type { OperatorUser } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";

export function UserState({ user: { role, suspended_at, email_verified } }: { user: OperatorUser }) {
  return (
    <span class="row">
      {suspended_at !== null && <Badge text="suspended" tone="bad" />}
      {role === "operator" && <Badge text="operator" tone="warn" />}
      {suspended_at === null && role !== "operator" && (
        <Badge text={email_verified ? "active" : "email not verified"} tone={email_verified ? "good" : ""} />
      )}
    </span>
  );
}
