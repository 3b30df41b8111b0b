/** The user's own OAuth clients, and the endpoints they need. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { date } from "../../dates.ts";
import { base } from "../../router.ts";
import { request } from "../../session.ts";
import type { CreatedOAuthClient, OAuthClient } from "../../types.ts";
import { focusHeading } from "../../ui/account-layout.tsx";
import { Badge } from "../../ui/badge.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { type Pages, usePages } from "../../ui/paged-list.ts";
import { SecretDialog, UnstoredSecretNotice } from "../../ui/secret-dialog.tsx";
import { LoadMore } from "../../ui/table.tsx";
import { toast } from "../../ui/toast.tsx";
import { useFetch } from "../../ui/use-data.ts";

import { CLIENTS, NewClient } from "./new-client.tsx";

export function Clients() {
  const clients = usePages<OAuthClient>(CLIENTS);
  const [created, setCreated] = useState<CreatedOAuthClient | null>(null);
  const [isShown, setShown] = useState(false);
  const [removing, setRemoving] = useState<OAuthClient | null>(null);
  const remove = async ({ id, name }: OAuthClient): Promise<void> => {
    await request("DELETE", `${CLIENTS}/${id}`);
    clients.set((items) => items.filter((each) => each.id !== id));
    setRemoving(null);
    toast(`${name} deleted.`);
    focusHeading("clients");
  };
  const add = (registered: CreatedOAuthClient): void => {
    const { client_secret, ...client } = registered;
    clients.set((before) => [client, ...before]);
    if (client_secret === null) {
      toast(`${client.name} registered.`);
      focusHeading("clients");
      return;
    }
    setCreated(registered);
    setShown(true);
  };
  return (
    <>
      {created !== null && !isShown && (
        <UnstoredSecretNotice what={`the secret of "${created.name}"`} onShow={() => setShown(true)} />
      )}
      <div class="account">
        <ClientList clients={clients} onRemove={setRemoving} />
        <NewClient onCreated={add} />
      </div>
      {created !== null && isShown && (
        <SecretDialog
          title={`Secret of "${created.name}"`}
          secrets={[
            ["Client ID", created.client_id],
            ["Client secret", created.client_secret ?? ""],
          ]}
          onStored={() => {
            setCreated(null);
            setShown(false);
            focusHeading("clients");
          }}
          onClose={() => setShown(false)}
        >
          Anyone with the secret can impersonate your app.
        </SecretDialog>
      )}
      {removing !== null && (
        <ConfirmDialog
          title={`Delete ${removing.name}?`}
          act="Delete app"
          onAct={() => remove(removing)}
          onClose={() => setRemoving(null)}
        >
          All access that users granted ends immediately, and the client ID is never reused. This can't be undone.
        </ConfirmDialog>
      )}
    </>
  );
}

interface ListProps {
  clients: Pages<OAuthClient>;
  onRemove: (client: OAuthClient) => void;
}

function ClientList({ clients: { items, error, reload, more }, onRemove }: ListProps) {
  return (
    <section class="panel" aria-labelledby="clients">
      <h2 id="clients" tabIndex={-1}>
        Your apps
      </h2>
      <p>Your applications that request access to other users' accounts with OAuth 2.0 and PKCE.</p>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <ul class="entries">
          {items.map((client) => (
            <Client key={client.id} client={client} onRemove={() => onRemove(client)} />
          ))}
        </ul>
      )}
      {items?.length === 0 && <p class="empty">No apps registered.</p>}
      <LoadMore more={more} />
      <Endpoints />
    </section>
  );
}

function Client({ client, onRemove }: { client: OAuthClient; onRemove: () => void }) {
  const { name, client_id, redirect_uris, confidential, created_at } = client;
  return (
    <li>
      <div class="row between">
        <h3 class="break">
          {name} <Badge text={confidential ? "Confidential" : "Public"} />
        </h3>
        <button type="button" class="danger small" aria-label={`Delete ${name}`} onClick={onRemove}>
          Delete
        </button>
      </div>
      <dl class="facts">
        <dt>Client ID</dt>
        <dd>
          <code class="break">{client_id}</code>
        </dd>
        <dt>Redirect URIs</dt>
        <dd>
          {redirect_uris.map((uri) => (
            <div key={uri}>
              <code class="break">{uri}</code>
            </div>
          ))}
        </dd>
        <dt>Registered</dt>
        <dd>{date(created_at)}</dd>
      </dl>
    </li>
  );
}

const METADATA = `${base}.well-known/oauth-authorization-server`;

const ENDPOINTS = [
  ["issuer", "Issuer"],
  ["authorization_endpoint", "Authorization"],
  ["token_endpoint", "Token"],
  ["revocation_endpoint", "Revocation"],
  ["introspection_endpoint", "Introspection"],
  ["jwks_uri", "Keys (JWKS)"],
] as const;

function Endpoints() {
  const [isOpen, setOpen] = useState(false);
  const { data, error, reload } = useFetch<Record<string, unknown>>(
    isOpen
      ? async (signal) => {
          const response = await fetch(METADATA, { signal });
          if (!response.ok) throw new ApiError(response.status, 0, response.statusText, null, null);
          return (await response.json()) as Record<string, unknown>;
        }
      : null,
    "metadata",
  );
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Endpoints for your app</summary>
      <div class="stack small-gap">
        <ErrorNotice error={error} retry={reload} />
        {data === null && error === null && <Loading />}
        {data !== null && (
          <dl class="facts">
            {ENDPOINTS.flatMap(([name, title]) => [
              <dt key={`${name} title`}>{title}</dt>,
              <dd key={name}>
                <code class="break">{String(data[name])}</code>
              </dd>,
            ])}
            <dt>Metadata</dt>
            <dd>
              <a href={METADATA}>RFC 8414</a>
            </dd>
          </dl>
        )}
      </div>
    </details>
  );
}
