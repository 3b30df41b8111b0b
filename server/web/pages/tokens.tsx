/** Personal access tokens, with which bots and scripts authenticate. */

import { useState } from "preact/hooks";
import { API } from "../api.ts";
import { exchangeTime } from "../clock.ts";
import { date, dateTime } from "../dates.ts";
import { request } from "../session.ts";
import type { CreatedPat, Pat } from "../types.ts";
import { AccountLayout, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { type Pages, usePages } from "../ui/paged-list.ts";
import { SecretDialog, UnstoredSecretNotice } from "../ui/secret-dialog.tsx";
import { LoadMore } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import "./account.css";
import { NewToken, PATH } from "./tokens/new-token.tsx";

export default function Tokens() {
  const pats = usePages<Pat>(PATH);
  const [created, setCreated] = useState<CreatedPat | null>(null);
  const [isShown, setShown] = useState(false);
  const [revoking, setRevoking] = useState<Pat | null>(null);
  const revoke = async ({ id, name }: Pat): Promise<void> => {
    await request("DELETE", `${PATH}/${id}`);
    pats.set((items) => items.filter((each) => each.id !== id));
    setRevoking(null);
    toast(`Token "${name}" revoked.`);
    focusHeading("own-tokens");
  };
  return (
    <AccountLayout path="/account/tokens">
      <p class="lead">
        A token lets a bot or script use the API on your behalf, within its scopes, without your password. Orders placed
        with a token earn a higher maker rebate. Tokens can't withdraw, change your account, or create tokens.
      </p>
      {created !== null && !isShown && (
        <UnstoredSecretNotice what={`the token "${created.name}"`} onShow={() => setShown(true)} />
      )}
      <div class="account">
        <TokenList pats={pats} onRevoke={setRevoking} />
        <NewToken
          onCreated={(created) => {
            const { token: _, ...pat } = created;
            pats.set((items) => [pat, ...items]);
            setCreated(created);
            setShown(true);
          }}
        />
      </div>
      {created !== null && isShown && (
        <SecretDialog
          title={`Token "${created.name}"`}
          secrets={[["Token", created.token]]}
          example={`curl ${new URL(`${API}/me`, window.location.href)} -H "Authorization: Bearer ${created.token}"`}
          onStored={() => {
            setCreated(null);
            setShown(false);
            focusHeading("own-tokens");
          }}
          onClose={() => setShown(false)}
        >
          Anyone with this token can use the API on your behalf, within its scopes, until you revoke it.
        </SecretDialog>
      )}
      {revoking !== null && (
        <ConfirmDialog
          title={`Revoke "${revoking.name}"?`}
          act="Revoke token"
          onAct={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          The token stops working immediately, and its connections are closed. Orders it placed stay open. This can't be
          undone.
        </ConfirmDialog>
      )}
    </AccountLayout>
  );
}

function TokenList({ pats, onRevoke }: { pats: Pages<Pat>; onRevoke: (pat: Pat) => void }) {
  const { items, error, reload, more } = pats;
  return (
    <section class="panel" aria-labelledby="own-tokens">
      <h2 id="own-tokens" tabIndex={-1}>
        Your tokens
      </h2>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <ul class="entries">
          {items.map((pat) => (
            <Token key={pat.id} pat={pat} onRevoke={() => onRevoke(pat)} />
          ))}
        </ul>
      )}
      {items?.length === 0 && <p class="empty">No tokens yet.</p>}
      <LoadMore more={more} />
    </section>
  );
}

function Token({ pat, onRevoke }: { pat: Pat; onRevoke: () => void }) {
  const { name, prefix, scopes, allowed_ips, created_at, last_used_at, expires_at } = pat;
  const isExpired = expires_at !== null && expires_at <= exchangeTime();
  return (
    <li>
      <div class="row between">
        <h3 class="break">{name}</h3>
        <button type="button" class="danger small" aria-label={`Revoke ${name}`} onClick={onRevoke}>
          Revoke
        </button>
      </div>
      <p class="row">
        {isExpired && <Badge text="Expired" tone="bad" />}
        {scopes.map((scope) => (
          <Badge key={scope} text={String(scope)} />
        ))}
      </p>
      <dl class="facts">
        <dt>Prefix</dt>
        <dd>
          <code>{prefix}…</code>
        </dd>
        <dt>Last used</dt>
        <dd>{last_used_at === null ? "Never" : dateTime(last_used_at)}</dd>
        <dt>{isExpired ? "Expired" : "Expires"}</dt>
        <dd>{expires_at === null ? "Never" : dateTime(expires_at)}</dd>
        <dt>Allowed IPs</dt>
        <dd class="break">{allowed_ips === null ? "Any" : allowed_ips.join(", ")}</dd>
        <dt>Created</dt>
        <dd>{date(created_at)}</dd>
      </dl>
    </li>
  );
}
