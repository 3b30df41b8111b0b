/** Sends an example request from the API reference. */
import { useState } from "preact/hooks";
import { send } from "../../api.ts";
import { accessToken } from "../../session.ts";
import { useAction } from "../../ui/action.ts";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { type Document, type RestOperation, resolveRef } from "./api-document.ts";
import { Code } from "./code-block.tsx";
import { exampleTarget } from "./samples.ts";

/** Sends the example request, as edited by the user, with the session's token. */
export function TryIt({ operation, document }: { operation: RestOperation; document: Document }) {
  const [target, setTarget] = useState(() => exampleTarget(operation, document));
  const [shownResponse, setShownResponse] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    const response = await send("GET", target, { token: await accessToken() });
    const text = await response.text();
    setShownResponse(`${response.status} ${response.statusText}\n\n${pretty(text)}`);
  });
  const status = Object.keys(operation.object.responses ?? {}).find((each) => each.startsWith("2")) ?? "";
  const content = resolveRef(document, operation.object.responses?.[status] ?? {}).content ?? {};
  // Redirects and endpoints outside the API can't be called from here.
  if (content["application/json"] === undefined || !operation.server.endsWith("/api/v1")) return null;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void run();
  };
  return (
    <form class="try" noValidate onSubmit={submit}>
      <Field label="Try it" value={target} onInput={setTarget} hint="Sent to this exchange with your session." />
      <button type="submit" disabled={isBusy || !target.startsWith("/")}>
        Send
      </button>
      <ErrorNotice error={error} />
      <div aria-live="polite">{shownResponse !== null && <Code label="Response" text={shownResponse} />}</div>
    </form>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
