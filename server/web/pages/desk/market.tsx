/** One market as operators see it: its texts, its state and what may be done in it, its end. */
import { useEffect, useState } from "preact/hooks";
import { cents, dateTime, localTime, money, percent, readLocalTime, SHARE_MICRO, shares } from "../../format.ts";
import { href } from "../../router.ts";
import { request } from "../../session.ts";
import { subscribe } from "../../stream.ts";
import type { Approval, Market, MarketChanges, MarketRecord } from "../../types.ts";
import { Field, TextArea } from "../../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { useLoaded } from "../../ui/use-data.ts";
import { categoryProblem, descriptionProblem, given, timeProblem } from "../../ui/validation.ts";
import { isOwnApproval, TakeBackDialog } from "./approval.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { EndDialog, type Ending } from "./resolve-market.tsx";
import { StatusBadge } from "./status-badge.tsx";

type Step = "open" | "halt" | "resume" | "close";
type Opened =
  | { readonly kind: "step"; readonly step: Step }
  | { readonly kind: "edit" }
  | { readonly kind: "end"; readonly ending: Ending }
  | { readonly kind: "take back"; readonly approval: Approval };

export function MarketDesk({ id }: { id: string }) {
  const { data, error, reload } = useLoaded(
    (signal) => request<MarketRecord>("GET", `/admin/markets/${encodeURIComponent(id)}`, { signal }),
    id,
  );
  const [opened, setOpened] = useState<Opened | null>(null);
  const marketId = data?.id ?? null;
  useEffect(() => {
    if (marketId === null) return;
    return subscribe("markets", marketId, null, reload, reload);
  }, [marketId, reload]);
  const dialog = { onClose: () => setOpened(null), onDone: reload };
  return (
    <>
      <p>
        <a href={href("/desk/markets")}>All markets</a>
      </p>
      {data === null && <Heading>Market</Heading>}
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Record market={data} open={setOpened} />}
      {data !== null && opened?.kind === "step" && <StepDialog market={data} step={opened.step} {...dialog} />}
      {data !== null && opened?.kind === "edit" && <EditDialog market={data} {...dialog} />}
      {data !== null && opened?.kind === "end" && <EndDialog market={data} ending={opened.ending} {...dialog} />}
      {opened?.kind === "take back" && <TakeBackDialog approval={opened.approval} {...dialog} />}
    </>
  );
}

function Record({ market, open }: { market: MarketRecord; open: (opened: Opened) => void }) {
  const { id, slug, question, description, category, status, closes_at, event_id, proposed_by, decision } = market;
  return (
    <>
      <Heading>{question}</Heading>
      <p class="row">
        <StatusBadge status={status} />
        <span class="faint">market {id}</span>
        {status !== "proposed" && status !== "rejected" && <a href={href(`/markets/${slug}`)}>As traders see it</a>}
      </p>
      {market.approval !== null && <FirstApproval market={market} approval={market.approval} open={open} />}
      <Steps market={market} open={open} />
      <div class="two-panels">
        <section class="panel" aria-labelledby="desk-market-texts">
          <h2 id="desk-market-texts">What it says</h2>
          {description === null ? <p class="faint">It has no description.</p> : <p class="prose">{description}</p>}
          <Facts
            facts={[
              ["Trading ends", closes_at === null ? "when an operator closes it" : dateTime(closes_at)],
              ["Category", category ?? "none"],
              ["Event", event_id === null ? "none" : <a href={href(`/events/${event_id}`)}>event {event_id}</a>],
              [
                "Address",
                <span key="slug" class="mono wide">
                  {slug}
                </span>,
              ],
              ["Made", dateTime(market.created_at)],
              ["Proposed by", proposed_by === null ? "an operator made it" : <UserLink id={proposed_by} />],
              ...(decision === null ? [] : [["Decided", dateTime(decision.decided_at)] as const]),
              ...(decision?.note == null ? [] : [["Note", decision.note] as const]),
            ]}
          />
        </section>
        <section class="panel" aria-labelledby="desk-market-outcomes">
          <h2 id="desk-market-outcomes">Outcomes</h2>
          <Table
            caption="Outcomes"
            rows={market.outcomes}
            keyOf={(outcome) => outcome.id}
            empty=""
            columns={[
              { title: "Outcome", show: ({ name }) => name },
              { title: "Bid", isNumber: true, show: ({ best_bid }) => cents(best_bid) },
              { title: "Ask", isNumber: true, show: ({ best_ask }) => cents(best_ask) },
              { title: "Last", isNumber: true, show: ({ last_price }) => cents(last_price) },
              ...(market.resolution === null ? [] : [paidColumn(market.resolution.payouts)]),
            ]}
          />
          <p class="faint">
            {shares(market.open_interest)} complete sets are out: {money(market.open_interest * SHARE_MICRO)} USDC of
            collateral. {shares(market.volume)} shares traded.
          </p>
          {market.resolution !== null && (
            <p>
              {status === "voided" ? "Voided" : "Resolved"} {dateTime(market.resolution.resolved_at)}.{" "}
              {market.resolution.note !== null && <span class="prose">{market.resolution.note}</span>}
            </p>
          )}
        </section>
      </div>
    </>
  );
}

const paidColumn = (payouts: readonly number[]): Column<Market["outcomes"][number]> => ({
  title: "Paid",
  isNumber: true,
  show: ({ index }) => percent(payouts[index] ?? null),
});

const STEP_BUTTONS: Readonly<Record<string, readonly (readonly [Step, string])[]>> = {
  proposed: [["open", "Approve and open"]],
  open: [
    ["halt", "Halt"],
    ["close", "Close"],
  ],
  halted: [
    ["resume", "Resume"],
    ["close", "Close"],
  ],
};

function Steps({ market, open }: { market: MarketRecord; open: (opened: Opened) => void }) {
  const { status } = market;
  const isOver = status === "resolved" || status === "voided" || status === "rejected";
  if (isOver) return null;
  return (
    <div class="row">
      {STEP_BUTTONS[status]?.map(([step, text]) => (
        <button
          key={step}
          type="button"
          class={step === "close" || step === "halt" ? "danger" : "primary"}
          onClick={() => open({ kind: "step", step })}
        >
          {text}
        </button>
      ))}
      {status === "closed" && (
        <>
          <button
            type="button"
            class="primary"
            onClick={() =>
              open({ kind: "end", ending: { status: "resolved", payouts: null, note: null, first: null } })
            }
          >
            Resolve…
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => open({ kind: "end", ending: { status: "voided", payouts: null, note: null, first: null } })}
          >
            Void…
          </button>
        </>
      )}
      <button type="button" onClick={() => open({ kind: "edit" })}>
        Edit
      </button>
    </div>
  );
}

/** As approvals of a market's end keep it. */
interface Details {
  readonly status: Ending["status"];
  readonly payouts: readonly number[];
  readonly note: string | null;
}

function FirstApproval({
  market,
  approval,
  open,
}: {
  market: MarketRecord;
  approval: Approval;
  open: (opened: Opened) => void;
}) {
  const { status, payouts, note } = approval.details as unknown as Details;
  const pays = market.outcomes.map(({ name, index }) => `${name} ${percent(payouts[index] ?? null)}`).join(", ");
  return (
    <Notice kind="warn">
      <p>
        {isOwnApproval(approval) ? "You have" : `${approval.approved_by} has`} asked {dateTime(approval.created_at)}{" "}
        that it be {status}: {pays}, {note === null ? "without a note" : `with the note “${note}”`}. Another operator
        must ask for the same.
      </p>
      <div class="row">
        {!isOwnApproval(approval) && (
          <button
            type="button"
            onClick={() => open({ kind: "end", ending: { status, payouts, note, first: approval } })}
          >
            Look at it and approve too…
          </button>
        )}
        <button type="button" onClick={() => open({ kind: "take back", approval })}>
          Take back
        </button>
      </div>
    </Notice>
  );
}

interface DialogProps {
  readonly market: MarketRecord;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const STEPS: Readonly<Record<Step, { title: string; confirm: string; says: string; done: string }>> = {
  open: {
    title: "Open the market",
    confirm: "Approve and open it",
    says: "The proposal is approved: everybody sees the market and trades in it at once, and the proposer is mailed.",
    done: "The market is open.",
  },
  halt: {
    title: "Halt the market",
    confirm: "Halt it",
    says: "Nothing is matched and no order is taken until it is resumed. Orders rest on, and can be canceled.",
    done: "The market is halted.",
  },
  resume: {
    title: "Resume the market",
    confirm: "Resume it",
    says: "Trading goes on at once, with the orders that rest.",
    done: "The market is open again.",
  },
  close: {
    title: "Close the market",
    confirm: "Close it for good",
    says: "Trading ends for good and all orders are canceled. It can't be opened again: what is left is to resolve or to void it.",
    done: "The market is closed.",
  },
};

function StepDialog({ market, step, onClose, onDone }: DialogProps & { step: Step }) {
  const { title, confirm, says, done } = STEPS[step];
  return (
    <DecisionDialog
      title={title}
      confirm={confirm}
      isDangerous={step === "halt" || step === "close"}
      noteHint={step === "open" ? "Mailed to the proposer." : "Kept in the audit log."}
      act={async (note) => {
        await request<Market>("POST", `/admin/markets/${market.id}/${step}`, { body: { note } });
        return done;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{market.question}</strong>
      </p>
      <p>{says}</p>
    </DecisionDialog>
  );
}

function EditDialog({ market: current, onClose, onDone }: DialogProps) {
  /** As it was opened: what another operator changes meanwhile, and this one doesn't touch, stays. */
  const [market] = useState(current);
  const [description, setDescription] = useState(market.description ?? "");
  const [category, setCategory] = useState(market.category ?? "");
  const [closesAt, setClosesAt] = useState(localTime(market.closes_at));
  const [isChecked, setChecked] = useState(false);
  const changes = changesOf(market, { description, category, closesAt });
  const problems = {
    description: descriptionProblem(description),
    category: categoryProblem(category),
    closesAt: timeProblem(closesAt),
  };
  const isPast = changes.closes_at != null && changes.closes_at <= Date.now();
  return (
    <DecisionDialog
      title="Edit the market"
      confirm="Save"
      isDangerous={isPast}
      noteHint={null}
      check={() => {
        setChecked(true);
        return Object.values(problems).every((problem) => problem === null);
      }}
      act={async () => {
        if (Object.keys(changes).length === 0) return "Nothing was changed.";
        await request<Market>("PATCH", `/admin/markets/${market.id}`, { body: changes });
        return "Saved: everybody sees it at once.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <TextArea
        label="Description"
        rows={8}
        value={description}
        onInput={setDescription}
        problem={isChecked ? problems.description : null}
        hint="People trade on what it says: change nothing that decides who is paid."
      />
      <Field
        label="Category"
        value={category}
        onInput={setCategory}
        problem={isChecked ? problems.category : null}
        hint="Empty for none."
      />
      <Field
        label="Trading ends"
        type="datetime-local"
        value={closesAt}
        onInput={setClosesAt}
        problem={isChecked ? problems.closesAt : null}
        hint="In your time zone. Empty: when an operator closes it."
      />
      {isPast && <Notice kind="warn">This time is past: the market closes at once, for good.</Notice>}
    </DecisionDialog>
  );
}

/** What differs from the market as it is. */
function changesOf(
  market: MarketRecord,
  typed: { description: string; category: string; closesAt: string },
): MarketChanges {
  const description = given(typed.description);
  const category = given(typed.category);
  return {
    ...(description === market.description ? {} : { description }),
    ...(category === market.category ? {} : { category }),
    // The field shows minutes: what wasn't touched stays as exact as it was.
    ...(typed.closesAt === localTime(market.closes_at) ? {} : { closes_at: readLocalTime(typed.closesAt) }),
  };
}
