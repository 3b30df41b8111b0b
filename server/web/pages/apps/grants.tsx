/** Third-party apps with access to the account, and their revocation. */
import { useState } from "preact/hooks";
import { date, dateTime } from "../../dates.ts";
import { scopeText } from "../../scopes.ts";
import { request } from "../../session.ts";
import type { OAuthGrant } from "../../types.ts";
import { focusHeading } from "../../ui/account-layout.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { LoadMore } from "../../ui/table.tsx";
import { toast } from "../../ui/toast.tsx";

const GRANTS = "/me/oauth-grants";

export function Grants() {
  const grants = usePages<OAuthGrant>(GRANTS);
  const [revoking, setRevoking] = useState<OAuthGrant | null>(null);
  const revoke = async ({ id, client_name }: OAuthGrant): Promise<void> => {
    await request("DELETE", `${GRANTS}/${id}`);
    grants.set((items) => items.filter((each) => each.id !== id));
    setRevoking(null);
    toast(`Access of ${client_name} revoked.`);
    focusHeading("grants");
  };
  const { items, error, reload, more } = grants;
  return (
    <section class="panel" aria-labelledby="grants">
      <h2 id="grants" tabIndex={-1}>
        Apps with access to your account
      </h2>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <ul class="entries">
          {items.map((grant) => (
            <li key={grant.id}>
              <div class="row between">
                <h3 class="break">{grant.client_name}</h3>
                <button
                  type="button"
                  class="danger small"
                  aria-label={`Revoke access of ${grant.client_name}`}
                  onClick={() => setRevoking(grant)}
                >
                  Revoke
                </button>
              </div>
              <p>Access: {grant.scopes.map((scope) => scopeText(String(scope))?.title ?? String(scope)).join("; ")}</p>
              <dl class="facts">
                <dt>Authorized</dt>
                <dd>{date(grant.created_at)}</dd>
                <dt>Last used</dt>
                <dd>{grant.last_used_at === null ? "Never" : dateTime(grant.last_used_at)}</dd>
              </dl>
            </li>
          ))}
        </ul>
      )}
      {items?.length === 0 && <p class="empty">No apps have access to your account.</p>}
      <LoadMore more={more} />
      {revoking !== null && (
        <ConfirmDialog
          title={`Revoke access of ${revoking.client_name}?`}
          act="Revoke access"
          onAct={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          The app loses access to your account, and its connections are closed. Orders it placed stay open. It can
          request access again.
        </ConfirmDialog>
      )}
    </section>
  );
}
