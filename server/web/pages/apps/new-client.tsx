/** Registers an OAuth client. */
import { useState } from "preact/hooks";
import { fieldErrorMessage } from "../../error-messages.ts";
import { request } from "../../session.ts";
import type { CreatedOAuthClient } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Checkbox, Field, TextArea } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { parseLines } from "../../ui/parse-lines.ts";
import { useForm } from "../../ui/use-form.ts";

export const CLIENTS = "/me/oauth-clients";

const MAX_REDIRECT_URIS = 10;

/** A rough check; the server validates exactly. */
function uriProblem(text: string): string | null {
  const found = parseLines(text);
  if (found.length === 0) return "Enter at least one URI.";
  if (found.length > MAX_REDIRECT_URIS) return `At most ${MAX_REDIRECT_URIS} URIs.`;
  const wrong = found.find((uri) => !isRedirectUri(uri));
  if (wrong === undefined) return null;
  return `"${wrong}" isn't allowed: use https, http on localhost, or a custom scheme with a dot, without # and *.`;
}

function isRedirectUri(uri: string): boolean {
  if (!URL.canParse(uri) || /[\s#*\\]/.test(uri)) return false;
  const { protocol, hostname } = new URL(uri);
  if (protocol === "https:") return true;
  if (protocol === "http:") return ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  return protocol.includes(".");
}

export function NewClient({ onCreated }: { onCreated: (created: CreatedOAuthClient) => void }) {
  const [name, setName] = useState("");
  const [uris, setUris] = useState("");
  const [isConfidential, setConfidential] = useState(true);
  const { form, shown, submit, restart } = useForm({
    name: name.trim() === "" ? "Enter a name: users see it when they grant access." : null,
    uris: uriProblem(uris),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { name: name.trim(), redirect_uris: parseLines(uris), confidential: isConfidential };
    onCreated(await request<CreatedOAuthClient>("POST", CLIENTS, { body }));
    setName("");
    setUris("");
    restart();
  });
  const serverProblems = { name: fieldErrorMessage(error, "name"), uris: fieldErrorMessage(error, "redirect_uris") };
  return (
    <section class="panel" aria-labelledby="new-client">
      <h2 id="new-client">Register an app</h2>
      <form ref={form} noValidate aria-labelledby="new-client" onSubmit={submit(() => void run())}>
        <Field
          label="Name"
          maxLength={100}
          autoComplete="off"
          hint="Users see it when they grant access."
          value={name}
          problem={shown.name ?? serverProblems.name}
          onInput={(text) => {
            setName(text);
            clear();
          }}
        />
        <TextArea
          label="Redirect URIs"
          placeholder="https://app.example.com/callback"
          hint="One per line. Requests must match one exactly, except for the port of an http address on localhost."
          value={uris}
          problem={shown.uris ?? serverProblems.uris}
          onInput={(text) => {
            setUris(text);
            clear();
          }}
        />
        <Checkbox
          label="Confidential client"
          hint="It can keep a secret: servers can; web pages, mobile and desktop apps can't."
          checked={isConfidential}
          onChange={setConfidential}
        />
        {serverProblems.name === null && serverProblems.uris === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Registering…" : "Register app"}
        </button>
      </form>
    </section>
  );
}
