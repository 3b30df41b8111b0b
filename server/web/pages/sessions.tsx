/** The user's sessions, and how to end them. */
import { useState } from "preact/hooks";
import { dateTime } from "../dates.ts";
import { navigate } from "../router.ts";
import { request, signOut } from "../session.ts";
import type { Session } from "../types.ts";
import { AccountLayout, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { usePages } from "../ui/paged-list.ts";
import { LoadMore } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import "./account.css";

const PATH = "/me/sessions";

export default function Sessions() {
  const sessions = usePages<Session>(PATH);
  /** What the open dialog would end. */
  const [ending, setEnding] = useState<Session | "others" | null>(null);
  const end = async (session: Session): Promise<void> => {
    if (session.current) {
      await signOut();
      navigate("/");
      return;
    }
    await request("DELETE", `${PATH}/${session.id}`);
    sessions.set((items) => items.filter(({ id }) => id !== session.id));
    done("Session ended.");
  };
  const endOthers = async (): Promise<void> => {
    await request("DELETE", PATH);
    sessions.set((items) => items.filter(({ current }) => current));
    done("Signed out everywhere else.");
  };
  const done = (text: string): void => {
    setEnding(null);
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
            Active sessions
          </h2>
          {hasOthers && (
            <button type="button" class="danger" onClick={() => setEnding("others")}>
              Sign out everywhere else
            </button>
          )}
        </div>
        <p class="faint">If you don't recognize a session, end it and change your password.</p>
        <ErrorNotice error={error} retry={reload} />
        {items === null && error === null && <Loading />}
        {items !== null && (
          <ul class="entries">
            {items.map((session) => (
              <Entry key={session.id} session={session} onEnd={() => setEnding(session)} />
            ))}
          </ul>
        )}
        <LoadMore more={more} />
      </section>
      {ending === "others" && (
        <ConfirmDialog
          title="Sign out everywhere else?"
          act="Sign out everywhere else"
          onAct={endOthers}
          onClose={() => setEnding(null)}
        >
          All other sessions end immediately. Access tokens and connected apps stay active.
        </ConfirmDialog>
      )}
      {ending !== null && ending !== "others" && (
        <EndDialog session={ending} onEnd={() => end(ending)} onClose={() => setEnding(null)} />
      )}
    </AccountLayout>
  );
}

interface EndProps {
  session: Session;
  onEnd: () => Promise<void>;
  onClose: () => void;
}

function EndDialog({ session: { current, user_agent }, onEnd, onClose }: EndProps) {
  return (
    <ConfirmDialog
      title={current ? "Sign out?" : "End this session?"}
      act={current ? "Sign out" : "End session"}
      onAct={onEnd}
      onClose={onClose}
    >
      {current
        ? "This is your current session."
        : `${deviceOf(user_agent)} is signed out immediately. Orders placed there stay open.`}
    </ConfirmDialog>
  );
}

function Entry({ session, onEnd }: { session: Session; onEnd: () => void }) {
  const { user_agent, current, method, second_factor, address, created_at, last_used_at, expires_at } = session;
  const device = deviceOf(user_agent);
  return (
    <li>
      <div class="row between">
        <h3 title={user_agent ?? undefined}>
          {device} {current && <Badge text="Current" tone="good" />}
        </h3>
        <button
          type="button"
          class="danger small"
          aria-label={
            current ? "Sign out of this session" : `End session of ${device} from ${address ?? "unknown address"}`
          }
          onClick={onEnd}
        >
          {current ? "Sign out" : "End"}
        </button>
      </div>
      <dl class="facts">
        <dt>Last used</dt>
        <dd>{current ? "Now" : dateTime(last_used_at)}</dd>
        <dt>IP address</dt>
        <dd class="break">{address ?? "Unknown"}</dd>
        <dt>Signed in</dt>
        <dd>
          {dateTime(created_at)} {methodOf(method)}
          {second_factor && " and a second factor"}
        </dd>
        <dt>Expires if unused</dt>
        <dd>{dateTime(expires_at)}</dd>
      </dl>
    </li>
  );
}

const methodOf = (method: string): string =>
  method === "password" ? "with your password" : `with ${method.replace(/^social:/, "")}`;

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

/** Turns a user agent into a name such as "Firefox on Windows". */
function deviceOf(userAgent: string | null): string {
  if (userAgent === null) return "Unknown client";
  const browser = BROWSERS.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.slice(0, 40);
  return system === undefined ? browser : `${browser} on ${system}`;
}
