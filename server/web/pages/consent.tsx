/**
 * The OAuth consent page: shows which app requests which access, and where the user is sent next. Redirects only after the
 * user's decision, and only to a redirect URI that the server has confirmed.
 */
import { useEffect, useState } from "preact/hooks";
import { isRegisteredAddress } from "../../oauth/redirect-address.ts";
import { ApiError } from "../api.ts";
import { date } from "../dates.ts";
import { errorMessage } from "../error-messages.ts";
import { search } from "../router.ts";
import { scopeText } from "../scopes.ts";
import { request, signedInUser, signOut } from "../session.ts";
import type { AskingClient } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { type Children, useFetch } from "../ui/use-data.ts";
import "./account.css";

/** Query parameters that are passed on to the server. */
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
    return <InvalidRequest>The link is incomplete. Go back to the app and try again.</InvalidRequest>;
  }
  if (error instanceof ApiError && error.status === 404) {
    return <InvalidRequest>The app that sent you isn't registered with this exchange, or was deleted.</InvalidRequest>;
  }
  if (error !== null) return <ErrorNotice error={error} retry={reload} />;
  if (data === null) return <Loading />;
  const destination = destinationOf(redirectUri);
  if (!isRegisteredAddress(data.redirect_uris, redirectUri) || destination === null) {
    return (
      <InvalidRequest>
        The request claims to come from "<bdi class="break">{data.name}</bdi>" but redirects to an address that this app
        hasn't registered. Someone may be trying to access your account. We haven't redirected you.
      </InvalidRequest>
    );
  }
  return <Decision client={data} destination={destination} />;
}

function InvalidRequest({ children }: { children: Children }) {
  return (
    <section class="narrow">
      <h1>Invalid request</h1>
      <p role="alert">{children}</p>
      <p class="faint">No access was granted.</p>
    </section>
  );
}

/** Describes where a redirect URI leads; null if it is unsafe to redirect to. */
function destinationOf(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, host } = new URL(address);
  if (protocol === "https:" || protocol === "http:") return host;
  // Custom schemes contain a dot; javascript:, data: and the like don't.
  return protocol.includes(".") ? `the app ${protocol.slice(0, -1)} on this device` : null;
}

function Decision({ client, destination }: { client: AskingClient; destination: string }) {
  const query = search.value;
  const names = new Set((query.get("scope") ?? "").split(" ").filter((scope) => scope !== ""));
  const scopes = [...names].map(scopeText).filter((scope) => scope !== null);
  const isKnown = scopes.length > 0 && scopes.length === names.size;
  const [redirectedTo, setRedirectedTo] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async (decision: "approve" | "deny") => {
    const given = PARAMETERS.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : []));
    const body = { ...Object.fromEntries(given), decision };
    const { redirect_to } = await request<{ redirect_to: string }>("POST", "/oauth/authorize", { body });
    if (destinationOf(redirect_to) !== destination) throw new Error("the server redirects to another address");
    setRedirectedTo(redirect_to);
    window.location.assign(redirect_to);
  });
  if (redirectedTo !== null) return <Redirected name={client.name} address={redirectedTo} />;
  return (
    <section class="narrow">
      <h1 class="break">
        Allow "<bdi>{client.name}</bdi>" to access your account?
      </h1>
      <p>
        Signed in as <strong class="break">{signedInUser().email}</strong>. <OtherUser />
      </p>
      <div class="panel">
        <h2>Requested access</h2>
        {isKnown ? (
          <ul class="requested-scopes">
            {scopes.map(({ scope, title, description }) => (
              <li key={scope}>
                <strong>{title}</strong>
                <span class="faint">{description}</span>
              </li>
            ))}
          </ul>
        ) : (
          <p>The app requests unknown scopes. You can only go back.</p>
        )}
        <p class="faint">It can't withdraw funds, change your account, or see your password, email or phone number.</p>
      </div>
      <Notice>
        You'll be redirected to <strong class="break">{destination}</strong>. Anyone can register an app: allow access
        only if you started this request. "<bdi class="break">{client.name}</bdi>" was registered{" "}
        {date(client.created_at)}. You can revoke access at any time under Connected apps.
      </Notice>
      <ErrorNotice error={error} />
      <div class="row">
        {isKnown && (
          <button type="button" class="primary" disabled={isBusy} onClick={() => void run("approve")}>
            {isBusy ? "One moment…" : "Allow"}
          </button>
        )}
        <button type="button" disabled={isBusy} onClick={() => void run("deny")}>
          {isKnown ? "Deny" : "Back to the app"}
        </button>
      </div>
    </section>
  );
}

function OtherUser() {
  // The layout then asks the user to sign in, and returns to this request.
  const { run, isBusy, error } = useAction(signOut);
  return (
    <>
      <button type="button" class="small" disabled={isBusy} onClick={() => void run()}>
        Switch account
      </button>
      {error !== null && <span role="alert"> {errorMessage(error)}</span>}
    </>
  );
}

/** A redirect to a custom scheme doesn't leave this page. */
function Redirected({ name, address }: { name: string; address: string }) {
  return (
    <section class="narrow">
      <h1 class="break">
        Back to "<bdi>{name}</bdi>"
      </h1>
      <p role="status">You can close this page once the app opens.</p>
      <p>
        <a href={address}>Open the app</a>
      </p>
    </section>
  );
}
