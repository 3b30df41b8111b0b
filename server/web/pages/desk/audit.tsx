/** Who changed what of money or access, and by which request. */
import { useState } from "preact/hooks";
import { dateTime, parseLocalTime, toLocalTime } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import type { AuditLine } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { Table } from "../../ui/table.tsx";
import { usePages } from "../../ui/use-data.ts";
import { focusFirstProblem, timeProblem } from "../../ui/validation.ts";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";

const FILTERS = ["user_id", "actor", "action", "from", "to"] as const;
type Filters = Readonly<Record<(typeof FILTERS)[number], string>>;

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", dateStyle: "medium" });

export function AuditLog() {
  const query = search.value;
  const asked = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])) as Filters;
  const pages = usePages<AuditLine>("/admin/audit-log", asked);
  return (
    <>
      <Heading>Audit log</Heading>
      <FilterForm key={JSON.stringify(asked)} asked={asked} />
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Audit log, newest first"
            rows={items}
            keyOf={({ id }) => id}
            empty={pages.more === null ? "Nothing fits." : "Nothing among the newest lines fits. Look further."}
            columns={[
              { title: "When", show: ({ at }) => <span title={dateTime(at)}>{CLOCK.format(at)}</span> },
              { title: "What", show: ({ action }) => <span class="mono">{action}</span> },
              { title: "By", show: ({ actor }) => actor },
              { title: "User", show: ({ user_id }) => (user_id === null ? "–" : <UserLink id={user_id} />) },
              { title: "Of", isNumber: true, show: ({ subject }) => subject ?? "–" },
              { title: "Details", show: (line) => <Details line={line} /> },
            ]}
          />
        )}
      </PagedList>
    </>
  );
}

function Details({ line: { id, details, request_id, address } }: { line: AuditLine }) {
  return (
    <details>
      <summary>{summaryOf(details)}</summary>
      {details !== null && <pre>{JSON.stringify(details, null, 2)}</pre>}
      <p class="faint">
        Line {id}
        {address !== null && `, from ${address}`}
        {request_id !== null && `, request ${request_id}`}
      </p>
    </details>
  );
}

const MAX_SUMMARY = 48;

/** The beginning of it in one line. */
function summaryOf(details: AuditLine["details"]): string {
  if (details === null) return "–";
  const text = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
  if (text === "") return "–";
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}

function FilterForm({ asked }: { asked: Filters }) {
  const [typed, setTyped] = useState({
    ...asked,
    from: toLocalTime(asked.from === "" ? null : Number(asked.from)),
    to: toLocalTime(asked.to === "" ? null : Number(asked.to)),
  });
  const [isChecked, setChecked] = useState(false);
  const problems = problemsOf(typed);
  const shown: Partial<Record<keyof Filters, string | null>> = isChecked ? problems : {};
  const set = (name: keyof Filters) => (value: string) => setTyped({ ...typed, [name]: value });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (Object.values(problems).some((problem) => problem !== null)) {
      focusFirstProblem(event.currentTarget as HTMLElement);
      return;
    }
    setSearch({
      user_id: typed.user_id.trim(),
      actor: typed.actor.trim(),
      action: typed.action.trim(),
      from: String(parseLocalTime(typed.from) ?? ""),
      to: String(parseLocalTime(typed.to) ?? ""),
    });
  };
  const clear = (): void => setSearch(Object.fromEntries(FILTERS.map((name) => [name, null])));
  return (
    <search>
      <form class="panel" noValidate onSubmit={submit}>
        <div class="audit-filters">
          <Field
            label="User's number"
            inputMode="numeric"
            value={typed.user_id}
            onInput={set("user_id")}
            problem={shown.user_id ?? null}
            hint="Whose account was changed"
          />
          <Field
            label="By"
            value={typed.actor}
            onInput={set("actor")}
            problem={shown.actor ?? null}
            hint="Such as user 12, operator 3, admin"
          />
          <Field
            label="Action"
            value={typed.action}
            onInput={set("action")}
            problem={shown.action ?? null}
            hint="Such as user.suspend; market. for all of markets"
          />
          <Field
            label="From"
            type="datetime-local"
            value={typed.from}
            onInput={set("from")}
            problem={shown.from ?? null}
          />
          <Field label="To" type="datetime-local" value={typed.to} onInput={set("to")} problem={shown.to ?? null} />
        </div>
        <div class="row">
          <button type="submit" class="primary">
            Search the log
          </button>
          {FILTERS.some((name) => asked[name] !== "") && (
            <button type="button" onClick={clear}>
              Clear
            </button>
          )}
        </div>
      </form>
    </search>
  );
}

function problemsOf(typed: Filters): Record<keyof Filters, string | null> {
  const from = parseLocalTime(typed.from);
  const to = parseLocalTime(typed.to);
  return {
    user_id: /^([1-9]\d{0,14})?$/.test(typed.user_id.trim()) ? null : "A number.",
    actor: typed.actor.trim().length > 100 ? "At most 100 characters." : null,
    action: /^([a-z_]+(\.[a-z_]+)*\.?)?$/.test(typed.action.trim()) ? null : "Small letters, with a dot between them.",
    from: timeProblem(typed.from),
    to: timeProblem(typed.to) ?? (from !== null && to !== null && to < from ? "It lies before the beginning." : null),
  };
}
