/** Where one is signed in, and the way to end that. */
import { useState } from "preact/hooks";
import { dateTime } from "../format.ts";
import { navigate } from "../router.ts";
import { request, signOut } from "../session.ts";
import type { Session } from "../types.ts";
import { AccountLayout, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { LoadMore } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import { usePages } from "../ui/use-data.ts";
import "./account.css";

const PATH = "/me/sessions";

export default function Sessions() {
  const sessions = usePages<Session>(PATH);
  /** What is asked about. */
  const [asked, setAsked] = useState<Session | "others" | null>(null);
  const end = async (session: Session): Promise<void> => {
    if (session.current) {
      await signOut();
      navigate("/");
      return;
    }
    await request("DELETE", `${PATH}/${session.id}`);
    sessions.set((items) => items.filter(({ id }) => id !== session.id));
    over("The session has ended.");
  };
  const endOthers = async (): Promise<void> => {
    await request("DELETE", PATH);
    sessions.set((items) => items.filter(({ current }) => current));
    over("You are signed in here only.");
  };
  const over = (text: string): void => {
    setAsked(null);
    toast(text);
    focusHeading("own-sessions");
  };
  const { items, error, reload, more } = sessions;
  const hasOthers = (items?.length ?? 0) > 1;
  return (
    <AccountLayout path="/account/sessions">
      <section class="panel" aria-labelledby="own-sessions">
        <div class="row between">
          <h2 id="own-sessions" tabIndex={-1}>
            Where you are signed in
          </h2>
          {hasOthers && (
            <button type="button" class="danger" onClick={() => setAsked("others")}>
              Sign out everywhere else
            </button>
          )}
        </div>
        <p class="faint">Something you don't know? End it, and change your password.</p>
        <ErrorNotice error={error} retry={reload} />
        {items === null && error === null && <Loading />}
        {items !== null && (
          <ul class="entries">
            {items.map((session) => (
              <Entry key={session.id} session={session} onEnd={() => setAsked(session)} />
            ))}
          </ul>
        )}
        <LoadMore more={more} />
      </section>
      {asked === "others" && (
        <ConfirmDialog
          title="Sign out everywhere else?"
          act="Sign out everywhere else"
          onAct={endOthers}
          onClose={() => setAsked(null)}
        >
          All sessions but this one end at once. Access tokens and connected apps go on.
        </ConfirmDialog>
      )}
      {asked !== null && asked !== "others" && (
        <ConfirmDialog
          title={asked.current ? "Sign out here?" : "End this session?"}
          act={asked.current ? "Sign out" : "End the session"}
          onAct={() => end(asked)}
          onClose={() => setAsked(null)}
        >
          {asked.current
            ? "This is the session that you are using now."
            : `${deviceOf(asked.user_agent)} is signed out at once. Orders that were placed there stay.`}
        </ConfirmDialog>
      )}
    </AccountLayout>
  );
}

function Entry({ session, onEnd }: { session: Session; onEnd: () => void }) {
  const { user_agent, current, method, second_factor, address, created_at, last_used_at, expires_at } = session;
  const device = deviceOf(user_agent);
  return (
    <li>
      <div class="row between">
        <h3 title={user_agent ?? undefined}>
          {device} {current && <Badge text="This one" tone="good" />}
        </h3>
        <button
          type="button"
          class="danger small"
          aria-label={current ? "Sign out here" : `End the session of ${device} from ${address ?? "nowhere"}`}
          onClick={onEnd}
        >
          {current ? "Sign out" : "End"}
        </button>
      </div>
      <dl class="facts">
        <dt>Last used</dt>
        <dd>{current ? "Now" : dateTime(last_used_at)}</dd>
        <dt>Network address</dt>
        <dd class="break">{address ?? "Unknown"}</dd>
        <dt>Signed in</dt>
        <dd>
          {dateTime(created_at)} {methodOf(method)}
          {second_factor && ", and a second factor"}
        </dd>
        <dt>Ends unused</dt>
        <dd>{dateTime(expires_at)}</dd>
      </dl>
    </li>
  );
}

const methodOf = (method: string): string =>
  method === "password" ? "with your password" : `through ${method.replace(/^social:/, "")}`;

const BROWSERS = [
  [/\bEdg\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/Chrome\//, "Chrome"],
  [/\bSafari\//, "Safari"],
  [/^curl\//, "curl"],
  [/^node\b|undici/, "Node"],
  [/python/i, "Python"],
] as const;
const SYSTEMS = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
] as const;

/** "Firefox on Windows": what a browser says of itself, in words. */
function deviceOf(userAgent: string | null): string {
  if (userAgent === null) return "A program without a name";
  const browser = BROWSERS.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.slice(0, 40);
  return system === undefined ? browser : `${browser} on ${system}`;
}
