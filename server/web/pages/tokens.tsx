/** Personal access tokens: what bots and scripts show in place of a password. */
import { useState } from "preact/hooks";
import { API } from "../api.ts";
import { explainField } from "../error-messages.ts";
import { date, dateTime } from "../format.ts";
import { SCOPES } from "../scopes.ts";
import { request } from "../session.ts";
import type { CreatedPat, Pat } from "../types.ts";
import { AccountFrame, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { Confirm } from "../ui/confirm-dialog.tsx";
import { Checkbox, Field, Select, TextArea } from "../ui/fields.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { linesOf } from "../ui/parse-lines.ts";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { More } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction, usePages } from "../ui/use-data.ts";
import { useChecked } from "../ui/use-form.ts";
import "./account.css";

const PATH = "/me/personal-access-tokens";

export default function Tokens() {
  const pats = usePages<Pat>(PATH);
  const [made, setMade] = useState<CreatedPat | null>(null);
  const [isShown, setShown] = useState(false);
  const [revoking, setRevoking] = useState<Pat | null>(null);
  const revoke = async ({ id, name }: Pat): Promise<void> => {
    await request("DELETE", `${PATH}/${id}`);
    pats.set((items) => items.filter((each) => each.id !== id));
    setRevoking(null);
    toast(`The token "${name}" is revoked.`);
    focusHeading("own-tokens");
  };
  return (
    <AccountFrame path="/account/tokens">
      <p class="lead">
        A token lets a bot or a script use the API as you, within its scopes, without your password. Resting orders that
        it places have a higher rebate. No token can withdraw, change your account or make other tokens.
      </p>
      {made !== null && !isShown && (
        <div class="notice warn" role="status">
          <span>
            You haven't said that you stored the token "{made.name}". It can't be shown again once you leave this page.
          </span>
          <button type="button" onClick={() => setShown(true)}>
            Show it again
          </button>
        </div>
      )}
      <div class="account">
        <section class="panel" aria-labelledby="own-tokens">
          <h2 id="own-tokens" tabIndex={-1}>
            Your tokens
          </h2>
          <ErrorNotice error={pats.error} retry={pats.reload} />
          {pats.items === null && pats.error === null && <Loading />}
          {pats.items !== null && (
            <ul class="entries">
              {pats.items.map((pat) => (
                <Token key={pat.id} pat={pat} onRevoke={() => setRevoking(pat)} />
              ))}
            </ul>
          )}
          {pats.items?.length === 0 && <p class="empty">You have no tokens yet.</p>}
          <More more={pats.more} />
        </section>
        <NewToken
          onMade={(created) => {
            const { token: _, ...pat } = created;
            pats.set((items) => [pat, ...items]);
            setMade(created);
            setShown(true);
          }}
        />
      </div>
      {made !== null && isShown && (
        <SecretDialog
          title={`Token "${made.name}"`}
          secrets={[["Token", made.token]]}
          example={`curl ${new URL(`${API}/me`, window.location.href)} -H "Authorization: Bearer ${made.token}"`}
          onStored={() => {
            setMade(null);
            setShown(false);
            focusHeading("own-tokens");
          }}
          onClose={() => setShown(false)}
        >
          Whoever has this token can use the API as you, within its scopes, until you revoke it.
        </SecretDialog>
      )}
      {revoking !== null && (
        <Confirm
          title={`Revoke "${revoking.name}"?`}
          act="Revoke the token"
          onAct={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          It stops working at once, and its connections are closed. Orders that it placed stay. This can't be undone.
        </Confirm>
      )}
    </AccountFrame>
  );
}

function Token({ pat, onRevoke }: { pat: Pat; onRevoke: () => void }) {
  const { name, prefix, scopes, allowed_ips, created_at, last_used_at, expires_at } = pat;
  const isOver = expires_at !== null && expires_at <= Date.now();
  return (
    <li>
      <div class="row between">
        <h3 class="break">{name}</h3>
        <button type="button" class="danger small" aria-label={`Revoke ${name}`} onClick={onRevoke}>
          Revoke
        </button>
      </div>
      <p class="row">
        {isOver && <Badge text="Expired" tone="bad" />}
        {scopes.map((scope) => (
          <Badge key={scope} text={String(scope)} />
        ))}
      </p>
      <dl class="facts">
        <dt>Begins with</dt>
        <dd>
          <code>{prefix}…</code>
        </dd>
        <dt>Last used</dt>
        <dd>{last_used_at === null ? "Never" : dateTime(last_used_at)}</dd>
        <dt>{isOver ? "Expired" : "Expires"}</dt>
        <dd>{expires_at === null ? "Never" : dateTime(expires_at)}</dd>
        <dt>May be used from</dt>
        <dd class="break">{allowed_ips === null ? "Anywhere" : allowed_ips.join(", ")}</dd>
        <dt>Made</dt>
        <dd>{date(created_at)}</dd>
      </dl>
    </li>
  );
}

const DAY_MS = 86_400_000;
const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "A year"],
  ["never", "Without end"],
  ["own", "A date of your own"],
] as const;
type Lifetime = (typeof LIFETIMES)[number][0];

/** Roughly an address or a range: the exchange looks closely. */
const ADDRESS = /^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)(\/\d{1,3})?$/;
const MAX_ADDRESSES = 20;

function addressProblem(text: string): string | null {
  const found = linesOf(text);
  if (found.length > MAX_ADDRESSES) return `At most ${MAX_ADDRESSES} addresses and ranges.`;
  const wrong = found.find((line) => !ADDRESS.test(line));
  return wrong === undefined ? null : `"${wrong}" is neither an IP address nor a range such as 203.0.113.0/24.`;
}

/** ms since the epoch, null without an end. */
function expiryOf(lifetime: Lifetime, own: string): number | null {
  if (lifetime === "never") return null;
  return lifetime === "own" ? new Date(own).getTime() : Date.now() + Number(lifetime) * DAY_MS;
}

function expiryProblem(lifetime: Lifetime, own: string): string | null {
  if (lifetime !== "own") return null;
  const at = new Date(own).getTime();
  if (Number.isNaN(at)) return "Choose day and time.";
  return at > Date.now() ? null : "This is in the past.";
}

function NewToken({ onMade }: { onMade: (made: CreatedPat) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(["portfolio:read"]));
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [own, setOwn] = useState("");
  const [addresses, setAddresses] = useState("");
  const { form, shown, submit, restart } = useChecked({
    name: name.trim() === "" ? "Give it a name that says what it is for." : null,
    scopes: scopes.size === 0 ? "Choose at least one." : null,
    expiry: expiryProblem(lifetime, own),
    addresses: addressProblem(addresses),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const found = linesOf(addresses);
    const body = {
      name: name.trim(),
      scopes: [...scopes],
      expires_at: expiryOf(lifetime, own),
      allowed_ips: found.length === 0 ? null : found,
    };
    onMade(await request<CreatedPat>("POST", PATH, { body }));
    setName("");
    setAddresses("");
    restart();
  });
  const change = (scope: string, isChosen: boolean): void => {
    const next = new Set(scopes);
    if (isChosen) next.add(scope);
    else next.delete(scope);
    setScopes(next);
  };
  const told = { name: explainField(error, "name"), addresses: explainField(error, "allowed_ips") };
  return (
    <section class="panel" aria-labelledby="new-token">
      <h2 id="new-token">New token</h2>
      <form ref={form} noValidate aria-labelledby="new-token" onSubmit={submit(() => void run())}>
        <Field
          label="Name"
          maxLength={100}
          placeholder="Quoting bot"
          autoComplete="off"
          value={name}
          problem={shown.name ?? told.name}
          onInput={(text) => {
            setName(text);
            clear();
          }}
        />
        <fieldset class="group" aria-describedby="scopes-problem">
          <legend>What it may do</legend>
          {SCOPES.map(({ scope, title, means }) => (
            <Checkbox
              key={scope}
              label={
                <>
                  {title} <code>{scope}</code>
                </>
              }
              hint={means}
              checked={scopes.has(scope)}
              onChange={(isChosen) => change(scope, isChosen)}
            />
          ))}
          <div id="scopes-problem" class="hint bad" role="alert">
            {shown.scopes}
          </div>
        </fieldset>
        <Select label="Good for" value={lifetime} options={LIFETIMES} onChange={setLifetime} />
        {lifetime === "own" && (
          <Field
            label="Until"
            type="datetime-local"
            hint="In your own time zone."
            value={own}
            problem={shown.expiry}
            onInput={setOwn}
          />
        )}
        <TextArea
          label="May be used from (optional)"
          placeholder={"203.0.113.7\n2001:db8::/32"}
          hint="IP addresses and ranges, one a line. Empty: from anywhere. A stolen token is of no use elsewhere."
          value={addresses}
          problem={shown.addresses ?? told.addresses}
          onInput={(text) => {
            setAddresses(text);
            clear();
          }}
        />
        {told.name === null && told.addresses === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Making it…" : "Make the token"}
        </button>
      </form>
    </section>
  );
}
