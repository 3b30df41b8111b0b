/** The user's second factors, with buttons to add and remove them. */
import { date, dateTime } from "../../dates.ts";
import type { SecondFactor, SecondFactors } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";

const KINDS: Readonly<Record<string, string>> = { totp: "Authenticator app", passkey: "Passkey" };

interface FactorsProps {
  factors: SecondFactors;
  onAdd: (kind: "totp" | "passkey") => void;
  onRemove: (factor: SecondFactor) => void;
}

export function FactorsPanel({ factors: { items, passkeys, required }, onAdd, onRemove }: FactorsProps) {
  const isLastOfOperator = required && items.length === 1;
  return (
    <section class="panel" aria-labelledby="factors">
      <div class="row between">
        <h2 id="factors" tabIndex={-1}>
          Your second factors
        </h2>
        <Badge text={items.length > 0 ? "On" : "Off"} tone={items.length > 0 ? "good" : "warn"} />
      </div>
      {items.length === 0 && <p class="empty">No second factors.</p>}
      <ul class="entries">
        {items.map((factor) => (
          <li key={factor.id}>
            <div class="row between">
              <h3 class="break">{factor.name}</h3>
              <button
                type="button"
                class="danger small"
                aria-label={`Remove ${factor.name}`}
                disabled={isLastOfOperator}
                onClick={() => onRemove(factor)}
              >
                Remove
              </button>
            </div>
            <dl class="facts">
              <dt>Type</dt>
              <dd>{KINDS[String(factor.kind)]}</dd>
              <dt>Last used</dt>
              <dd>{factor.last_used_at === null ? "Never" : dateTime(factor.last_used_at)}</dd>
              <dt>Added</dt>
              <dd>{date(factor.created_at)}</dd>
            </dl>
          </li>
        ))}
      </ul>
      {isLastOfOperator && (
        <p class="faint">Operators must have a second factor: add another before you remove this one.</p>
      )}
      <div class="row">
        <button type="button" class="primary" onClick={() => onAdd("totp")}>
          Add authenticator app
        </button>
        <button type="button" disabled={passkeys !== null} onClick={() => onAdd("passkey")}>
          Add passkey
        </button>
      </div>
      {passkeys !== null && <p class="faint">Passkeys unavailable: {passkeys}.</p>}
    </section>
  );
}
