/** The operator desk: pending work, and every operator decision. Each section is a module in desk/. */
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { href } from "../router.ts";
import { isOperator, request } from "../session.ts";
import type { SecondFactors } from "../types.ts";
import { Empty, Loading } from "../ui/notices.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { useFetch } from "../ui/use-data.ts";
import { Approvals } from "./desk/approvals.tsx";
import { AuditLog } from "./desk/audit.tsx";
import { Deposits } from "./desk/deposits.tsx";
import { House } from "./desk/house.tsx";
import { Identity } from "./desk/identity.tsx";
import { Markets } from "./desk/markets.tsx";
import { Overview } from "./desk/overview.tsx";
import { countText, type PendingCounts, pendingCounts, refreshPendingCounts } from "./desk/pending-counts.ts";
import { Proposals } from "./desk/proposals.tsx";
import { Users } from "./desk/users.tsx";
import { Withdrawals } from "./desk/withdrawals.tsx";
import "./desk.css";

interface Section {
  /** Path below /desk, "" for the first section. */
  readonly name: string;
  readonly title: string;
  readonly Content: ComponentType;
  /** Pending work of the section. */
  readonly count?: keyof PendingCounts;
}

const SECTIONS: readonly Section[] = [
  { name: "", title: "Overview", Content: Overview },
  { name: "proposals", title: "Proposals", Content: Proposals, count: "proposals" },
  { name: "identity", title: "Identity", Content: Identity, count: "applications" },
  { name: "withdrawals", title: "Withdrawals", Content: Withdrawals, count: "withdrawals" },
  { name: "approvals", title: "Approvals", Content: Approvals, count: "approvals" },
  { name: "deposits", title: "Deposits", Content: Deposits },
  { name: "house", title: "House", Content: House },
  { name: "markets", title: "Markets", Content: Markets, count: "resolutions" },
  { name: "users", title: "Users", Content: Users },
  { name: "audit", title: "Audit log", Content: AuditLog },
];
/** Pixels left of the current tab, so that other tabs stay visible. */
const TAB_MARGIN = 48;
const COUNT_INTERVAL_MS = 60_000;
const addressOf = (name: string): string => href(name === "" ? "/desk" : `/desk/${name}`);

export default function Page({ param }: { param: string }) {
  const section = SECTIONS.find(({ name }) => name === param);
  useEffect(() => {
    document.title = `${section?.title ?? "Page not found"} · Desk · Prediction Exchange`;
  }, [section]);
  return isOperator.value ? <Guarded section={section ?? null} /> : <OperatorsOnly />;
}

/** Shows the desk, unless the server would reject every request for lack of a second factor. */
function Guarded({ section }: { section: Section | null }) {
  const { data, error } = useFetch<SecondFactors>((signal) => request("GET", "/me/second-factors", { signal }), "");
  if (data === null && error === null) return <Loading />;
  return data?.required && !data.session ? <SecondFactorRequired factors={data} /> : <Desk section={section} />;
}

function SecondFactorRequired({ factors: { items } }: { factors: SecondFactors }) {
  return (
    <section class="narrow">
      <h1>Operator desk</h1>
      <p>
        Operators must sign in with a second factor. This session has none, so the exchange rejects all requests of the
        desk.
      </p>
      <p>
        {items.length === 0
          ? "Add an authenticator app or a passkey to your account."
          : "Sign out, then sign in with your second factor."}
      </p>
      <p>
        <a class="button primary" href={href("/account/security")}>
          Open security settings
        </a>
      </p>
    </section>
  );
}

function OperatorsOnly() {
  return (
    <section class="narrow">
      <h1>Operator desk</h1>
      <p>The desk is for operators of the exchange only. Your account isn't an operator account.</p>
      <p>
        <a class="button" href={href("/")}>
          Browse markets
        </a>
      </p>
    </section>
  );
}

function Desk({ section }: { section: Section | null }) {
  useEffect(() => {
    void refreshPendingCounts();
    const timer = setInterval(
      () => document.visibilityState === "visible" && void refreshPendingCounts(),
      COUNT_INTERVAL_MS,
    );
    return () => clearInterval(timer);
  }, []);
  const frame = useRef<HTMLDivElement>(null);
  // On a phone, the tabs don't fit side by side.
  useEffect(() => {
    const tab = frame.current?.querySelector<HTMLElement>(".tabs [aria-current]");
    const tabs = tab?.parentElement;
    if (tab && tabs) tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - TAB_MARGIN;
  }, [section]);
  const counts = pendingCounts.value;
  const tabs = SECTIONS.map(({ name, title, count }): [string, string] => {
    const pending = count === undefined || counts === null ? null : counts[count];
    return [addressOf(name), pending === null || pending.count === 0 ? title : `${title} (${countText(pending)})`];
  });
  return (
    <div class="desk" ref={frame}>
      <Tabs label="Desk sections" tabs={tabs} current={addressOf(section?.name ?? "none")} />
      {section === null ? (
        <>
          <h1>Page not found</h1>
          <Empty>The desk has no section at this address.</Empty>
        </>
      ) : (
        <section.Content key={section.name} />
      )}
    </div>
  );
}
