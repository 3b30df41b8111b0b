/** Creates a personal access token. */

import { useState } from "preact/hooks";
import { exchangeTime } from "../../clock.ts";
import { fieldErrorMessage } from "../../error-messages.ts";
import { SCOPES } from "../../scopes.ts";
import { request } from "../../session.ts";
import type { CreatedPat } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Checkbox, Field, Select, TextArea } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { parseLines } from "../../ui/parse-lines.ts";
import { useForm } from "../../ui/use-form.ts";

export const PATH = "/me/personal-access-tokens";

const DAY_MS = 86_400_000;

const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "1 year"],
  ["never", "No expiry"],
  ["own", "Custom"],
] as const;

type Lifetime = (typeof LIFETIMES)[number][0];

/** A rough check for an address or range; the server validates exactly. */
const ADDRESS = /^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)(\/\d{1,3})?$/;

const MAX_ADDRESSES = 20;

function addressProblem(text: string): string | null {
  const found = parseLines(text);
  if (found.length > MAX_ADDRESSES) return `At most ${MAX_ADDRESSES} addresses and ranges.`;
  const wrong = found.find((line) => !ADDRESS.test(line));
  return wrong === undefined ? null : `"${wrong}" is neither an IP address nor a range such as 203.0.113.0/24.`;
}

/** ms since the epoch; null: the token doesn't expire. */
function expiryOf(lifetime: Lifetime, own: string): number | null {
  if (lifetime === "never") return null;
  return lifetime === "own" ? new Date(own).getTime() : exchangeTime() + Number(lifetime) * DAY_MS;
}

function expiryProblem(lifetime: Lifetime, own: string): string | null {
  if (lifetime !== "own") return null;
  const at = new Date(own).getTime();
  if (Number.isNaN(at)) return "Enter a date and time.";
  return at > exchangeTime() ? null : "Must be in the future.";
}

interface ScopeProps {
  scopes: ReadonlySet<string>;
  problem: string | null;
  onChange: (scopes: ReadonlySet<string>) => void;
}

function ScopeFields({ scopes, problem, onChange }: ScopeProps) {
  const change = (scope: string, isChecked: boolean): void => {
    const next = new Set(scopes);
    if (isChecked) next.add(scope);
    else next.delete(scope);
    onChange(next);
  };
  return (
    <fieldset class="group" aria-describedby="scopes-problem">
      <legend>Scopes</legend>
      {SCOPES.map(({ scope, title, description }) => (
        <Checkbox
          key={scope}
          label={
            <>
              {title} <code>{scope}</code>
            </>
          }
          hint={description}
          checked={scopes.has(scope)}
          onChange={(isChecked) => change(scope, isChecked)}
        />
      ))}
      <div id="scopes-problem" class="hint bad" role="alert">
        {problem}
      </div>
    </fieldset>
  );
}

interface ExpiryProps {
  lifetime: Lifetime;
  setLifetime: (lifetime: Lifetime) => void;
  /** Value of the datetime-local field. */
  own: string;
  setOwn: (text: string) => void;
  problem: string | null;
}

function ExpiryFields({ lifetime, setLifetime, own, setOwn, problem }: ExpiryProps) {
  return (
    <>
      <Select label="Expires in" value={lifetime} options={LIFETIMES} onChange={setLifetime} />
      {lifetime === "own" && (
        <Field
          label="Expires at"
          type="datetime-local"
          hint="In your time zone."
          value={own}
          problem={problem}
          onInput={setOwn}
        />
      )}
    </>
  );
}

export function NewToken({ onCreated }: { onCreated: (created: CreatedPat) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(["portfolio:read"]));
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [own, setOwn] = useState("");
  const [addresses, setAddresses] = useState("");
  const { form, shown, submit, restart } = useForm({
    name: name.trim() === "" ? "Enter a name." : null,
    scopes: scopes.size === 0 ? "Select at least one scope." : null,
    expiry: expiryProblem(lifetime, own),
    addresses: addressProblem(addresses),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const found = parseLines(addresses);
    const body = {
      name: name.trim(),
      scopes: [...scopes],
      expires_at: expiryOf(lifetime, own),
      allowed_ips: found.length === 0 ? null : found,
    };
    onCreated(await request<CreatedPat>("POST", PATH, { body }));
    setName("");
    setAddresses("");
    restart();
  });
  const serverProblems = { name: fieldErrorMessage(error, "name"), addresses: fieldErrorMessage(error, "allowed_ips") };
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
          problem={shown.name ?? serverProblems.name}
          onInput={(text) => {
            setName(text);
            clear();
          }}
        />
        <ScopeFields scopes={scopes} problem={shown.scopes} onChange={setScopes} />
        <ExpiryFields {...{ lifetime, setLifetime, own, setOwn }} problem={shown.expiry} />
        <TextArea
          label="Allowed IPs (optional)"
          placeholder={"203.0.113.7\n2001:db8::/32"}
          hint="IP addresses and ranges, one per line. Empty: any. Limits the use of a stolen token."
          value={addresses}
          problem={shown.addresses ?? serverProblems.addresses}
          onInput={(text) => {
            setAddresses(text);
            clear();
          }}
        />
        {serverProblems.name === null && serverProblems.addresses === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Creating…" : "Create token"}
        </button>
      </form>
    </section>
  );
}
