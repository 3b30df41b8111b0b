/** The audit log: who changed money or access, when, and by which request. */
import { useState } from "preact/hooks";
import { dateTime } from "../../dates.ts";
import { parseLocalTime, toLocalTime } from "../../parse.ts";
import { search, setSearch } from "../../router.ts";
import type { AuditLine } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import { focusFirstProblem, timeProblem } from "../../ui/validation.ts";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";

const FILTERS = ["user_id", "actor", "action", "from", "to"] as const;
type Filters = Readonly<Record<(typeof FILTERS)[number], string>>;

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", dateStyle: "medium" });

export function AuditLog() {
  const query = search.value;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])) as Filters;
  const pages = usePages<AuditLine>("/admin/audit-log", filters);
  return (
    <>
      <Heading>Audit log</Heading>
      <FilterForm key={JSON.stringify(filters)} filters={filters} />
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Audit log, newest first"
            rows={items}
            keyOf={({ id }) => id}
            empty={pages.more === null ? "No results" : "No results among the newest entries. Show more."}
            columns={[
              { title: "Time", show: ({ at }) => <span title={dateTime(at)}>{CLOCK.format(at)}</span> },
              { title: "Action", show: ({ action }) => <span class="mono">{action}</span> },
              { title: "By", show: ({ actor }) => actor },
              { title: "User", show: ({ user_id }) => (user_id === null ? "–" : <UserLink id={user_id} />) },
              { title: "Subject", isNumber: true, show: ({ subject }) => subject ?? "–" },
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
        Entry {id}
        {address !== null && `, from ${address}`}
        {request_id !== null && `, request ${request_id}`}
      </p>
    </details>
  );
}

const MAX_SUMMARY = 48;

/** Summarizes the details in one line. */
function summaryOf(details: AuditLine["details"]): string {
  if (details === null) return "–";
  const text = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
  if (text === "") return "–";
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}

const FIELDS = [
  { name: "user_id", label: "User ID", inputMode: "numeric", hint: "The account that was changed" },
  { name: "actor", label: "By", hint: "For example user 12, operator 3, admin" },
  { name: "action", label: "Action", hint: "For example user.suspend, or market. for all market actions" },
  { name: "from", label: "From", type: "datetime-local" },
  { name: "to", label: "To", type: "datetime-local" },
] as const;

function FilterForm({ filters }: { filters: Filters }) {
  const [typed, setTyped] = useState({
    ...filters,
    from: toLocalTime(filters.from === "" ? null : Number(filters.from)),
    to: toLocalTime(filters.to === "" ? null : Number(filters.to)),
  });
  const [isChecked, setChecked] = useState(false);
  const problems = problemsOf(typed);
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
          {FIELDS.map(({ name, ...field }) => (
            <Field
              key={name}
              {...field}
              value={typed[name]}
              onInput={(value) => setTyped({ ...typed, [name]: value })}
              problem={isChecked ? problems[name] : null}
            />
          ))}
        </div>
        <div class="row">
          <button type="submit" class="primary">
            Search
          </button>
          {FILTERS.some((name) => filters[name] !== "") && (
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
    user_id: /^([1-9]\d{0,14})?$/.test(typed.user_id.trim()) ? null : "Must be a number.",
    actor: typed.actor.trim().length > 100 ? "At most 100 characters." : null,
    action: /^([a-z_]+(\.[a-z_]+)*\.?)?$/.test(typed.action.trim()) ? null : "Use lowercase words separated by dots.",
    from: timeProblem(typed.from),
    to:
      timeProblem(typed.to) ??
      (from !== null && to !== null && to < from ? "Must not be before the start time." : null),
  };
}
