/**
 * Where a third party sends its users to ask for access: says who asks for what, and where the answer goes. Nothing leads
 * away from here but the user's own decision, and nowhere that the exchange hasn't named.
 */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { errorMessage } from "../error-messages.ts";
import { date } from "../format.ts";
import { search } from "../router.ts";
import { scopeText } from "../scopes.ts";
import { request, signOut, user } from "../session.ts";
import type { AskingClient } from "../types.ts";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { type Children, useAction, useFetch } from "../ui/use-data.ts";
import "./account.css";

/** What of the address goes on to the exchange. */
const PARAMETERS = [
  ...["client_id", "redirect_uri", "response_type", "scope", "state"],
  ...["code_challenge", "code_challenge_method"],
] as const;

export default function Consent() {
  const query = search.value;
  const clientId = query.get("client_id") ?? "";
  const redirectUri = query.get("redirect_uri") ?? "";
  useEffect(() => {
    document.title = "Allow access · Prediction Exchange";
  }, []);
  const { data, error, reload } = useFetch<AskingClient>(
    clientId === "" ? null : (signal) => request("GET", `/oauth/clients/${encodeURIComponent(clientId)}`, { signal }),
    clientId,
  );
  const isTwice = PARAMETERS.some((name) => query.getAll(name).length > 1);
  if (clientId === "" || redirectUri === "" || isTwice) {
    return <InvalidRequest>The address that you came by isn't whole. Go back to the app and try again.</InvalidRequest>;
  }
  if (error instanceof ApiError && error.status === 404) {
    return <InvalidRequest>The app that sent you isn't registered at this exchange, or was removed.</InvalidRequest>;
  }
  if (error !== null) return <ErrorNotice error={error} retry={reload} />;
  if (data === null) return <Loading />;
  if (!data.redirect_uris.includes(redirectUri) || destinationOf(redirectUri) === null) {
    return (
      <InvalidRequest>
        The request says that it comes from "<bdi class="break">{data.name}</bdi>", but would lead to an address that
        this app hasn't registered. Somebody may be trying to get at your account. You aren't sent there.
      </InvalidRequest>
    );
  }
  return <Decision client={data} />;
}

function InvalidRequest({ children }: { children: Children }) {
  return (
    <section class="narrow">
      <h1>This request can't be answered</h1>
      <p role="alert">{children}</p>
      <p class="faint">Nothing was given to anybody.</p>
    </section>
  );
}

/** Where an address leads, in words; null where it is none to send anybody to. */
function destinationOf(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, host } = new URL(address);
  if (protocol === "https:" || protocol === "http:") return host;
  // An app's own scheme has a dot: javascript:, data: and their like have none.
  return protocol.includes(".") ? `the app ${protocol.slice(0, -1)} on this device` : null;
}

function Decision({ client }: { client: AskingClient }) {
  const query = search.value;
  const place = destinationOf(query.get("redirect_uri")!)!;
  const scopes = (query.get("scope") ?? "").split(" ").filter((scope) => scope !== "");
  const isKnown = scopes.length > 0 && scopes.every((scope) => scopeText(scope) !== null);
  const [left, setLeft] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async (decision: "approve" | "deny") => {
    const given = PARAMETERS.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : []));
    const body = { ...Object.fromEntries(given), decision };
    const { redirect_to } = await request<{ redirect_to: string }>("POST", "/oauth/authorize", { body });
    if (destinationOf(redirect_to) !== place) throw new Error("the answer leads elsewhere");
    setLeft(redirect_to);
    window.location.assign(redirect_to);
  });
  if (left !== null) return <Redirected name={client.name} address={left} />;
  return (
    <section class="narrow">
      <h1 class="break">
        Let "<bdi>{client.name}</bdi>" use your account?
      </h1>
      <p>
        You are signed in as <strong class="break">{user.value!.email}</strong>. <OtherUser />
      </p>
      <div class="panel">
        <h2>It wants to</h2>
        {isKnown ? (
          <ul class="wishes">
            {[...new Set(scopes)].map((scope) => (
              <li key={scope}>
                <strong>{scopeText(scope)!.title}</strong>
                <span class="faint">{scopeText(scope)!.description}</span>
              </li>
            ))}
          </ul>
        ) : (
          <p>Something that this exchange doesn't know. You can only go back.</p>
        )}
        <p class="faint">
          It can't withdraw, change your account or see your password, and is told neither your e-mail address nor your
          phone number.
        </p>
      </div>
      <Notice>
        You are led to <strong class="break">{place}</strong>. Anybody can register an app: allow only what you began
        yourself. "<bdi class="break">{client.name}</bdi>" was registered {date(client.created_at)}. You can revoke
        access at any time under Connected apps.
      </Notice>
      <ErrorNotice error={error} />
      <div class="row">
        {isKnown && (
          <button type="button" class="primary" disabled={isBusy} onClick={() => void run("approve")}>
            {isBusy ? "One moment…" : "Allow"}
          </button>
        )}
        <button type="button" disabled={isBusy} onClick={() => void run("deny")}>
          {isKnown ? "Don't allow" : "Go back to the app"}
        </button>
      </div>
    </section>
  );
}

function OtherUser() {
  // The frame asks to sign in then, and comes back to this request.
  const { run, isBusy, error } = useAction(signOut);
  return (
    <>
      <button type="button" class="small" disabled={isBusy} onClick={() => void run()}>
        Not you?
      </button>
      {error !== null && <span role="alert"> {errorMessage(error)}</span>}
    </>
  );
}

/** An app's own scheme leaves the page where it is. */
function Redirected({ name, address }: { name: string; address: string }) {
  return (
    <section class="narrow">
      <h1 class="break">
        Back to "<bdi>{name}</bdi>"
      </h1>
      <p role="status">You can close this page once the app has opened.</p>
      <p>
        <a href={address}>It doesn't open</a>
      </p>
    </section>
  );
}
