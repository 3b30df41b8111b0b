/** Third parties: those that one let in, and one's own that ask others. */
import { useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { explainField } from "../error-messages.ts";
import { date, dateTime } from "../format.ts";
import { base } from "../router.ts";
import { scopeWords } from "../scopes.ts";
import { request } from "../session.ts";
import type { CreatedOAuthClient, OAuthClient, OAuthGrant } from "../types.ts";
import { AccountFrame, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { Confirm } from "../ui/confirm-dialog.tsx";
import { Checkbox, Field, TextArea } from "../ui/fields.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { linesOf } from "../ui/parse-lines.ts";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { More } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction, useLoaded, usePages } from "../ui/use-data.ts";
import { useChecked } from "../ui/use-form.ts";
import "./account.css";

const GRANTS = "/me/oauth-grants";
const CLIENTS = "/me/oauth-clients";

export default function Apps() {
  return (
    <AccountFrame path="/account/apps">
      <Grants />
      <Clients />
    </AccountFrame>
  );
}

// ---------------------------------------------------------------- those that were let in

function Grants() {
  const grants = usePages<OAuthGrant>(GRANTS);
  const [revoking, setRevoking] = useState<OAuthGrant | null>(null);
  const revoke = async ({ id, client_name }: OAuthGrant): Promise<void> => {
    await request("DELETE", `${GRANTS}/${id}`);
    grants.set((items) => items.filter((each) => each.id !== id));
    setRevoking(null);
    toast(`${client_name} has no access any more.`);
    focusHeading("grants");
  };
  const { items, error, reload, more } = grants;
  return (
    <section class="panel" aria-labelledby="grants">
      <h2 id="grants" tabIndex={-1}>
        Apps that may use your account
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
              <p>May: {grant.scopes.map((scope) => scopeWords(String(scope))?.title ?? String(scope)).join("; ")}</p>
              <dl class="facts">
                <dt>Allowed</dt>
                <dd>{date(grant.created_at)}</dd>
                <dt>Last used</dt>
                <dd>{grant.last_used_at === null ? "Never" : dateTime(grant.last_used_at)}</dd>
              </dl>
            </li>
          ))}
        </ul>
      )}
      {items?.length === 0 && <p class="empty">You let no app use your account.</p>}
      <More more={more} />
      {revoking !== null && (
        <Confirm
          title={`Revoke access of ${revoking.client_name}?`}
          act="Revoke access"
          onAct={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          The app can do nothing in your account from now on, and its connections are closed. Orders that it placed
          stay. It can ask you again.
        </Confirm>
      )}
    </section>
  );
}

// ---------------------------------------------------------------- one's own

function Clients() {
  const clients = usePages<OAuthClient>(CLIENTS);
  const [made, setMade] = useState<CreatedOAuthClient | null>(null);
  const [isShown, setShown] = useState(false);
  const [removing, setRemoving] = useState<OAuthClient | null>(null);
  const remove = async ({ id, name }: OAuthClient): Promise<void> => {
    await request("DELETE", `${CLIENTS}/${id}`);
    clients.set((items) => items.filter((each) => each.id !== id));
    setRemoving(null);
    toast(`${name} is removed.`);
    focusHeading("clients");
  };
  const { items, error, reload, more } = clients;
  return (
    <>
      {made !== null && !isShown && (
        <div class="notice warn" role="status">
          <span>
            You haven't said that you stored the secret of "{made.name}". It can't be shown again once you leave this
            page.
          </span>
          <button type="button" onClick={() => setShown(true)}>
            Show it again
          </button>
        </div>
      )}
      <div class="account">
        <section class="panel" aria-labelledby="clients">
          <h2 id="clients" tabIndex={-1}>
            Your own apps
          </h2>
          <p>Programs of yours that ask other users for access, by OAuth 2.0 with PKCE.</p>
          <ErrorNotice error={error} retry={reload} />
          {items === null && error === null && <Loading />}
          {items !== null && (
            <ul class="entries">
              {items.map((client) => (
                <Client key={client.id} client={client} onRemove={() => setRemoving(client)} />
              ))}
            </ul>
          )}
          {items?.length === 0 && <p class="empty">You have registered none.</p>}
          <More more={more} />
          <Endpoints />
        </section>
        <NewClient
          onMade={(created) => {
            const { client_secret, ...client } = created;
            clients.set((before) => [client, ...before]);
            if (client_secret === null) {
              toast(`${client.name} is registered.`);
              focusHeading("clients");
              return;
            }
            setMade(created);
            setShown(true);
          }}
        />
      </div>
      {made !== null && isShown && (
        <SecretDialog
          title={`Secret of "${made.name}"`}
          secrets={[
            ["Client id", made.client_id],
            ["Client secret", made.client_secret!],
          ]}
          onStored={() => {
            setMade(null);
            setShown(false);
            focusHeading("clients");
          }}
          onClose={() => setShown(false)}
        >
          Whoever has the secret can pass for your app.
        </SecretDialog>
      )}
      {removing !== null && (
        <Confirm
          title={`Remove ${removing.name}?`}
          act="Remove the app"
          onAct={() => remove(removing)}
          onClose={() => setRemoving(null)}
        >
          All access that users gave it ends at once, and its client id is never given again. This can't be undone.
        </Confirm>
      )}
    </>
  );
}

function Client({ client, onRemove }: { client: OAuthClient; onRemove: () => void }) {
  const { name, client_id, redirect_uris, confidential, created_at } = client;
  return (
    <li>
      <div class="row between">
        <h3 class="break">
          {name} <Badge text={confidential ? "With a secret" : "Public"} />
        </h3>
        <button type="button" class="danger small" aria-label={`Remove ${name}`} onClick={onRemove}>
          Remove
        </button>
      </div>
      <dl class="facts">
        <dt>Client id</dt>
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

const MAX_REDIRECT_URIS = 10;

/** Roughly what the exchange takes, which looks closely. */
function uriProblem(text: string): string | null {
  const found = linesOf(text);
  if (found.length === 0) return "Enter at least one.";
  if (found.length > MAX_REDIRECT_URIS) return `At most ${MAX_REDIRECT_URIS}.`;
  const wrong = found.find((uri) => !isRedirectUri(uri));
  if (wrong === undefined) return null;
  return `"${wrong}" is none of: an https address, http on localhost, an app's own scheme with a dot; without # and *.`;
}

function isRedirectUri(uri: string): boolean {
  if (!URL.canParse(uri) || /[\s#*\\]/.test(uri)) return false;
  const { protocol, hostname } = new URL(uri);
  if (protocol === "https:") return true;
  if (protocol === "http:") return ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  return protocol.includes(".");
}

function NewClient({ onMade }: { onMade: (made: CreatedOAuthClient) => void }) {
  const [name, setName] = useState("");
  const [uris, setUris] = useState("");
  const [isConfidential, setConfidential] = useState(true);
  const { form, shown, submit, restart } = useChecked({
    name: name.trim() === "" ? "Users see this name when they are asked." : null,
    uris: uriProblem(uris),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { name: name.trim(), redirect_uris: linesOf(uris), confidential: isConfidential };
    onMade(await request<CreatedOAuthClient>("POST", CLIENTS, { body }));
    setName("");
    setUris("");
    restart();
  });
  const told = { name: explainField(error, "name"), uris: explainField(error, "redirect_uris") };
  return (
    <section class="panel" aria-labelledby="new-client">
      <h2 id="new-client">Register an app</h2>
      <form ref={form} noValidate aria-labelledby="new-client" onSubmit={submit(() => void run())}>
        <Field
          label="Name"
          maxLength={100}
          autoComplete="off"
          hint="Users see it when they are asked for access."
          value={name}
          problem={shown.name ?? told.name}
          onInput={(text) => {
            setName(text);
            clear();
          }}
        />
        <TextArea
          label="Redirect URIs"
          placeholder="https://app.example.com/callback"
          hint="Where users come back to, one a line. Requests must name one of them exactly."
          value={uris}
          problem={shown.uris ?? told.uris}
          onInput={(text) => {
            setUris(text);
            clear();
          }}
        />
        <Checkbox
          label="It can keep a secret"
          hint="A server can; a web page, a mobile or a desktop app can't."
          checked={isConfidential}
          onChange={setConfidential}
        />
        {told.name === null && told.uris === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Registering…" : "Register the app"}
        </button>
      </form>
    </section>
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
  const { data, error, reload } = useLoaded<Record<string, unknown>>(
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
