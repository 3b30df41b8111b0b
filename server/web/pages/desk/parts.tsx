/** What the sections of the desk have in common: their headings, the dialog before a decision, links, filters, checks. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { MAX_PAYMENT_MICRO, MAX_REFERENCE_LENGTH, SEED_REFERENCE } from "../../../../engine/limits.ts";
import { ApiError } from "../../api.ts";
import { money, readMoney, words } from "../../format.ts";
import { href } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { Approval, OperatorUser, Page } from "../../types.ts";
import { focusProblem, given, noteProblem } from "../../ui/validation.ts";
import { type Children, type Pages, useAction } from "../../ui/use-data.ts";
import { useChecked } from "../../ui/use-form.ts";
import { Badge, Dialog, ErrorNotice, Field, Loading, More, Notice, TextArea } from "../../ui/parts.tsx";
import { toast } from "../../ui/toast.tsx";
import { readWaiting } from "./pending-counts.ts";

const HEADING = "desk-heading";

/** A section's title: where the focus goes when what it was on is gone. */
export function Heading({ children }: { children: Children }) {
  return (
    <h1 id={HEADING} tabIndex={-1}>
      {children}
    </h1>
  );
}

function focusHeading(): void {
  requestAnimationFrame(() => document.getElementById(HEADING)?.focus());
}

/**
 * Says what will happen and asks once more. What was typed stays until it is done. Where the exchange says that things
 * are no longer so, what is behind the dialog is read anew.
 */
export function DecisionDialog({
  title,
  confirm,
  isDangerous = false,
  noteHint,
  check = () => true,
  act,
  onClose,
  onDone,
  children,
}: {
  title: string;
  /** On the button that does it. */
  confirm: string;
  isDangerous?: boolean;
  /** Who will read the note; null where there is none. */
  noteHint: string | null;
  /** False, and problems beside its fields, where something is wrong with them. */
  check?: () => boolean;
  /** @returns what has happened, in words */
  act: (note: string | null) => Promise<string>;
  onClose: () => void;
  /** Reads what the decision has changed. */
  onDone: () => void;
  children: Children;
}) {
  const [note, setNote] = useState("");
  const problem = noteProblem(note);
  const [isOther, setOther] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setOther(false);
    try {
      toast(await act(given(note)));
    } catch (thrown) {
      const hasChanged = thrown instanceof ApiError && (thrown.status === 409 || thrown.status === 404);
      setOther(hasChanged);
      if (hasChanged) onDone();
      throw thrown;
    } finally {
      void readWaiting();
    }
    onClose();
    onDone();
    focusHeading();
  });
  const close = (): void => {
    onClose();
    // What it was opened from may be gone.
    if (isOther) focusHeading();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Both are looked at, so that both say what is wrong.
    const isGood = check();
    if (isGood && problem === null) void run();
    else focusProblem(event.currentTarget as HTMLElement);
  };
  return (
    <Dialog title={title} onClose={close}>
      <form noValidate onSubmit={submit}>
        {children}
        {noteHint !== null && (
          <TextArea label="Note (optional)" value={note} onInput={setNote} problem={problem} hint={noteHint} />
        )}
        <ErrorNotice error={error} />
        {isOther && <Notice kind="warn">What is behind this dialog has been read anew.</Notice>}
        <div class="row ends">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "sell" : "primary"} disabled={isBusy}>
            {isBusy ? "One moment…" : confirm}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** What a list says before, beside and behind its rows. */
export function List<T>({ pages, children }: { pages: Pages<T>; children: (items: readonly T[]) => Children }) {
  const { items, error, more, reload } = pages;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && children(items)}
      <More more={more} />
    </>
  );
}

/** Names and values, beside each other. */
export function Facts({ facts }: { facts: readonly (readonly [string, Children])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

export function UserLink({ id, email }: { id: number; email?: string }) {
  return <a href={href(`/desk/users?user=${id}`)}>{email ?? `user ${id}`}</a>;
}

export function MarketLink({ id, text }: { id: number; text?: string }) {
  return <a href={href(`/desk/markets?market=${id}`)}>{text ?? `market ${id}`}</a>;
}

const TONES: Readonly<Record<string, "good" | "bad" | "warn">> = {
  open: "good",
  paid: "good",
  approved: "good",
  resolved: "good",
  proposed: "warn",
  pending: "warn",
  halted: "warn",
  closed: "warn",
  refused: "bad",
  rejected: "bad",
};

export function StatusBadge({ status }: { status: string }) {
  return <Badge text={words(status)} tone={TONES[status] ?? ""} />;
}

// ---------------------------------------------------------------- users

/** By e-mail address, or by number. @throws ApiError */
async function findUser(text: string): Promise<OperatorUser | null> {
  if (/^\d+$/.test(text)) {
    try {
      return await request<OperatorUser>("GET", `/admin/users/${text}`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }
  const { items } = await request<Page<OperatorUser>>("GET", "/admin/users", { query: { email: text } });
  return items[0] ?? null;
}

/** Finds a user by what is typed. */
export function UserSearch({ label, onFound }: { label: string; onFound: (user: OperatorUser) => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    const found = await findUser(text.trim());
    if (found === null) setProblem("No user has this address or number.");
    else {
      setText("");
      onFound(found);
    }
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    const isEmpty = text.trim() === "";
    setProblem(isEmpty ? "An e-mail address, or a user's number." : null);
    if (!isEmpty) void run();
  };
  return (
    <search>
      <form class="user-search" noValidate onSubmit={submit}>
        <Field label={label} value={text} onInput={setText} problem={problem} hint="E-mail address or number" />
        <button type="submit" disabled={isBusy}>
          Find
        </button>
        <ErrorNotice error={error} />
      </form>
    </search>
  );
}

/** Of a list: of one user alone, or of all. */
export function UserFilter({ userId, onChange }: { userId: string; onChange: (userId: string | null) => void }) {
  if (userId === "") return <UserSearch label="Of one user" onFound={({ id }) => onChange(String(id))} />;
  return (
    <p class="row">
      <span>
        Of <UserLink id={Number(userId)} /> alone.
      </span>
      <button type="button" class="small" onClick={() => onChange(null)}>
        Show all users'
      </button>
    </p>
  );
}

// ---------------------------------------------------------------- money

/** @param text that was typed */
function amountProblem(text: string): string | null {
  const micro = readMoney(text);
  if (micro === null || micro === 0) return "An amount such as 250 or 99.50, with six decimals at most.";
  return micro > MAX_PAYMENT_MICRO ? `At most ${money(MAX_PAYMENT_MICRO)} at a time.` : null;
}

/** @param text without blanks around it */
export function referenceProblem(text: string): string | null {
  if (text.length > MAX_REFERENCE_LENGTH) return `At most ${MAX_REFERENCE_LENGTH} characters.`;
  if (!/^[!-~]+(?: [!-~]+)*$/.test(text)) return "Letters without accents, digits and signs, with single spaces.";
  return text.startsWith(SEED_REFERENCE) ? `It must not begin with ${SEED_REFERENCE}` : null;
}

export interface Payment {
  /** micro-USDC */
  readonly amount: number;
  readonly reference: string;
}

/** Amount and reference of a payment that is to be booked, which is asked about next. */
export function PaymentForm({
  act,
  hint,
  other,
  onAsk,
  children,
}: {
  /** On the button. */
  act: string;
  /** Below the reference. */
  hint: string;
  /** Beside the button. */
  other?: Children;
  onAsk: (payment: Payment) => void;
  /** Before the fields. */
  children: Children;
}) {
  const [amount, setAmount] = useState("");
  const [reference, setReference] = useState("");
  const problems = { amount: amountProblem(amount), reference: referenceProblem(reference.trim()) };
  const { form, shown, submit } = useChecked(problems);
  const ask = (): void => onAsk({ amount: readMoney(amount)!, reference: reference.trim() });
  return (
    <form ref={form} noValidate onSubmit={submit(ask)}>
      {children}
      <Field label="Amount" unit="USDC" inputMode="decimal" value={amount} onInput={setAmount} problem={shown.amount} />
      <Field label="Reference" value={reference} onInput={setReference} problem={shown.reference} hint={hint} />
      <div class="row">
        <button type="submit" class="primary">
          {act}
        </button>
        {other}
      </div>
    </form>
  );
}

/** What is about to be booked, for a dialog. */
export const paymentFacts = ({ amount, reference }: Payment): readonly (readonly [string, Children])[] => [
  ["Amount", `${money(amount)} USDC`],
  [
    "Reference",
    <span key="reference" class="mono wide">
      {reference}
    </span>,
  ],
];

// ---------------------------------------------------------------- approvals

/** True of one's own: another operator must ask for the same. */
export const isOwnApproval = ({ approved_by }: Approval): boolean => approved_by === `operator ${user.value?.id}`;

/** The second approval is given elsewhere: says who gave the first one, and when. */
export function ApprovalSign({ approval }: { approval: Approval }) {
  return (
    <Badge
      tone="warn"
      text={isOwnApproval(approval) ? "approved by you, waits for another" : `approved by ${approval.approved_by}`}
    />
  );
}

/** Takes a first approval back, whoever's it is. */
export function TakeBackDialog({
  approval,
  onClose,
  onDone,
}: {
  approval: Approval;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <DecisionDialog
      title="Take the approval back"
      confirm="Take it back"
      isDangerous
      noteHint={null}
      act={async () => {
        await request("DELETE", `/admin/approvals/${approval.id}`);
        return "The approval is taken back. Nothing was done.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        {isOwnApproval(approval) ? "Your" : `The`} first approval
        {isOwnApproval(approval) ? "" : ` of ${approval.approved_by}`} ends, and nothing is done. It takes two new ones
        then.
      </p>
    </DecisionDialog>
  );
}
