/** Creates a personal access token. */
import { useState } from "preact/hooks";
import { fieldErrorMessage } from "../../error-messages.ts";
import { SCOPES } from "../../scopes.ts";
import { request } from "../../session.ts";
import type { CreatedPat } from "../../types.ts";
import { Checkbox, Field, Select, TextArea } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { parseLines } from "../../ui/parse-lines.ts";
import { useAction } from "../../ui/use-data.ts";
import { useForm } from "../../ui/use-form.ts";

export const PATH = "/me/personal-access-tokens";

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
  const found = parseLines(text);
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

export function NewToken({ onMade }: { onMade: (made: CreatedPat) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(["portfolio:read"]));
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [own, setOwn] = useState("");
  const [addresses, setAddresses] = useState("");
  const { form, shown, submit, restart } = useForm({
    name: name.trim() === "" ? "Give it a name that says what it is for." : null,
    scopes: scopes.size === 0 ? "Choose at least one." : null,
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
  const told = { name: fieldErrorMessage(error, "name"), addresses: fieldErrorMessage(error, "allowed_ips") };
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
