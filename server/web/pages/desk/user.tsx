/** One user as operators see it: balance, verification, own terms, suspension. */
import { useState } from "preact/hooks";
import {
  DAILY_ACTIVITY_LIMIT_MICRO,
  MAKER_REBATE_BPS,
  MAX_MERGE_FEE_BPS,
  MAX_MONEY_MICRO,
  MAX_OWN_LIVE_ORDERS,
  MAX_OWN_RATE_BPS,
  MAX_OWN_REBATE_BPS,
  MAX_RATE_LIMIT_FACTOR,
  PAT_REBATE_BPS,
  TRADING_FEE_BPS,
} from "../../../../engine/limits.ts";
import { dateTime, money, percent, readMoney } from "../../format.ts";
import { href } from "../../router.ts";
import { request, user as self } from "../../session.ts";
import type { FactorReset, OperatorUser, TermsChange } from "../../types.ts";
import { useLoaded } from "../../ui/use-data.ts";
import { ErrorNotice, Field, Loading, Notice } from "../../ui/parts.tsx";
import { termsText } from "./approval-details.ts";
import { DecisionDialog, Facts, Heading, isOwnApproval } from "./parts.tsx";
import { Trail } from "./account-trail.tsx";
import { UserState } from "./users.tsx";

type Terms = OperatorUser["terms"];
type Opened = "suspend" | "restore" | "terms" | "factors";

export function UserDesk({ id }: { id: string }) {
  const { data, error, reload } = useLoaded(
    (signal) => request<OperatorUser>("GET", `/admin/users/${encodeURIComponent(id)}`, { signal }),
    id,
  );
  const [opened, setOpened] = useState<Opened | null>(null);
  const dialog = { onClose: () => setOpened(null), onDone: reload };
  return (
    <>
      <p>
        <a href={href("/desk/users")}>All users</a>
      </p>
      <Heading>{data === null ? "User" : data.email}</Heading>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Details user={data} open={setOpened} />}
      {data !== null && opened === "suspend" && <SuspendDialog user={data} {...dialog} />}
      {data !== null && opened === "restore" && <RestoreDialog user={data} {...dialog} />}
      {data !== null && opened === "factors" && <FactorsDialog user={data} {...dialog} />}
      {data !== null && opened === "terms" && <TermsDialog user={data} {...dialog} />}
    </>
  );
}

function Details({ user, open }: { user: OperatorUser; open: (opened: Opened) => void }) {
  const { id, balance, daily_activity, terms, suspended_at } = user;
  const isSelf = id === self.value?.id;
  return (
    <>
      <div class="row">
        <UserState user={user} />
        <span class="faint">
          user {id}, since {dateTime(user.created_at)}
        </span>
      </div>
      <div class="row">
        {suspended_at === null ? (
          <button type="button" class="danger" disabled={isSelf} onClick={() => open("suspend")}>
            Suspend
          </button>
        ) : (
          <button type="button" class="primary" onClick={() => open("restore")}>
            End the suspension
          </button>
        )}
        <button type="button" disabled={isSelf} onClick={() => open("terms")}>
          Change the terms
        </button>
        {user.second_factors > 0 && (
          <button type="button" disabled={isSelf} onClick={() => open("factors")}>
            Reset the second factor
          </button>
        )}
        {isSelf && <span class="faint">This is you: another operator must do that.</span>}
      </div>
      <div class="two-panels">
        <section class="panel" aria-labelledby="desk-user-account">
          <h2 id="desk-user-account">Account</h2>
          <Facts
            facts={[
              ["Available", `${money(balance.available)} USDC`],
              ["Held", `${money(balance.held)} USDC`],
              ["In all", `${money(balance.total)} USDC`],
              ["Today", `${money(daily_activity.used)} of ${money(daily_activity.limit)} USDC of activity`],
              ["KYC tier", user.kyc_tier],
              ["E-mail", user.email_verified ? "verified" : "not verified"],
              ["Phone", user.phone === null ? "none" : `${user.phone}${user.phone_verified ? "" : ", not verified"}`],
              ["Second factors", user.second_factors === 0 ? "none" : user.second_factors],
              ["Suspended", suspended_at === null ? "no" : `since ${dateTime(suspended_at)}`],
            ]}
          />
        </section>
        <section class="panel" aria-labelledby="desk-user-terms">
          <h2 id="desk-user-terms">Terms</h2>
          {user.terms_approval !== null && (
            <Notice kind="warn">
              {isOwnApproval(user.terms_approval) ? "You have" : `${user.terms_approval.approved_by} has`} asked for{" "}
              {termsText(user.terms_approval.details)}. Another operator must approve:{" "}
              <a href={href("/desk/approvals")}>approvals</a>.
            </Notice>
          )}
          <Facts
            facts={TERMS.map(({ name, title, show, usual }) => [
              title,
              terms[name] === null ? `${usual(user)}, as usual` : `${show(terms[name])}, its own`,
            ])}
          />
        </section>
      </div>
      <section class="panel stack" aria-labelledby="desk-user-trail">
        <h2 id="desk-user-trail">Who credited, set and approved</h2>
        <Trail userId={id} />
      </section>
      <nav class="row" aria-label="Of this user">
        <a href={href(`/desk/withdrawals?status=all&user_id=${id}`)}>Withdrawals</a>
        <a href={href(`/desk/deposits?user_id=${id}`)}>Deposits</a>
        <a href={href(`/desk/identity?email=${encodeURIComponent(user.email)}`)}>Identity</a>
        <a href={href(`/desk/audit?user_id=${id}`)}>Audit log</a>
      </nav>
    </>
  );
}

// ---------------------------------------------------------------- suspension

interface DialogProps {
  readonly user: OperatorUser;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function SuspendDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Suspend the account"
      confirm="Suspend it"
      isDangerous
      noteHint="The reason, kept in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/suspend`, { body: { note } });
        return `${email} is suspended.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        All its orders are canceled, its connections end, and its tokens and sign-ins are refused until the suspension
        is ended. Balance and positions stay; withdrawals aren't paid meanwhile.
      </p>
    </DecisionDialog>
  );
}

function RestoreDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="End the suspension"
      confirm="End it"
      noteHint="The reason, kept in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/restore`, { body: { note } });
        return `${email} can sign in and trade again.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>It can sign in and trade again, its tokens work again. Orders that were canceled stay so.</p>
    </DecisionDialog>
  );
}

// ---------------------------------------------------------------- a lost second factor

function FactorsDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Reset the second factor"
      confirm="Reset it"
      isDangerous
      noteHint="How you know that it is the owner who asks, kept in the audit log."
      act={async (note) => {
        const path = `/admin/users/${id}/second-factors/reset`;
        const { done } = await request<FactorReset>("POST", path, { body: { note } });
        return done ? `${email} signs in with the password alone now.` : "Another operator must ask for the same.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        It takes two operators, always. Then all second factors and recovery codes of the account are removed and its
        sessions end; the owner is mailed. Be sure who asks: this is what a thief of the password would ask for.
      </p>
    </DecisionDialog>
  );
}

// ---------------------------------------------------------------- terms

interface Term {
  readonly name: keyof Terms;
  readonly title: string;
  readonly unit: string;
  readonly max: number;
  readonly min: number;
  /** What everybody has. */
  readonly usual: (user: OperatorUser) => string;
  readonly show: (value: number | null) => string;
  /** Text of the field, and back: null where it is no such value. */
  readonly write: (value: number) => string;
  readonly read: (text: string) => number | null;
}

const USUAL_LIMIT = (tier: number): string => `${money(DAILY_ACTIVITY_LIMIT_MICRO[tier] ?? 0)} USDC a day`;
const whole = (text: string): number | null => (/^\d{1,9}$/.test(text.trim()) ? Number(text.trim()) : null);
const ofNotional = (bps: number | null): string => `${percent(bps)} of the notional`;

const rate = (name: keyof Terms, title: string, usualBps: number, max: number): Term => ({
  name,
  title,
  unit: "BPS",
  min: 0,
  max,
  usual: () => ofNotional(usualBps),
  show: ofNotional,
  write: String,
  read: whole,
});

const TERMS: readonly Term[] = [
  {
    name: "daily_limit",
    title: "Daily limit",
    unit: "USDC",
    min: 0,
    max: MAX_MONEY_MICRO,
    usual: ({ kyc_tier }) => USUAL_LIMIT(kyc_tier),
    show: (value) => `${money(value ?? 0)} USDC a day`,
    write: (value) => money(value).replaceAll(",", ""),
    read: readMoney,
  },
  rate("trading_fee", "Trading fee of sellers", TRADING_FEE_BPS, MAX_OWN_RATE_BPS),
  rate("maker_rebate", "Maker rebate", MAKER_REBATE_BPS, MAX_OWN_REBATE_BPS),
  rate("pat_rebate", "Maker rebate by token", PAT_REBATE_BPS, MAX_OWN_REBATE_BPS),
  {
    name: "merge_fee",
    title: "Merge fee",
    unit: "BPS",
    min: 0,
    max: MAX_MERGE_FEE_BPS,
    usual: () => "the exchange's merge fee",
    show: (value) => `${percent(value)} of each set`,
    write: String,
    read: whole,
  },
  {
    name: "rate_limit_factor",
    title: "Rate limits, times",
    unit: "×",
    min: 1,
    max: MAX_RATE_LIMIT_FACTOR,
    usual: () => "1 ×",
    show: (value) => `${value} ×`,
    write: String,
    read: whole,
  },
  {
    name: "max_live_orders",
    title: "Live orders at most",
    unit: "orders",
    min: 1,
    max: MAX_OWN_LIVE_ORDERS,
    usual: () => "by KYC tier",
    show: String,
    write: String,
    read: whole,
  },
];

/** @param text empty: as for everybody */
function termProblem({ read, min, max, unit, write }: Term, text: string): string | null {
  if (text.trim() === "") return null;
  const value = read(text);
  return value === null || value < min || value > max ? `${write(min)} to ${write(max)} ${unit}.` : null;
}

function TermsDialog({ user, onClose, onDone }: DialogProps) {
  const [texts, setTexts] = useState<Readonly<Record<keyof Terms, string>>>(() => {
    const entries = TERMS.map(({ name, write }) => {
      const value = user.terms[name];
      return [name, value === null ? "" : write(value)] as const;
    });
    return Object.fromEntries(entries) as Record<keyof Terms, string>;
  });
  const [isChecked, setChecked] = useState(false);
  const changes: TermsChange = {};
  for (const { name, read } of TERMS) {
    const value = texts[name].trim() === "" ? null : read(texts[name]);
    if (value !== user.terms[name]) changes[name] = value;
  }
  return (
    <DecisionDialog
      title="Change the terms"
      confirm="Save the terms"
      noteHint={null}
      check={() => {
        setChecked(true);
        return TERMS.every((term) => termProblem(term, texts[term.name]) === null);
      }}
      act={async () => {
        if (Object.keys(changes).length === 0) return "Nothing was changed.";
        const changed = await request<OperatorUser>("PATCH", `/admin/users/${user.id}/terms`, { body: changes });
        return changed.terms_approval === null
          ? `The terms of ${user.email} are changed.`
          : "Your approval is kept: another operator must ask for the same.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{user.email}</strong>
      </p>
      <p>They hold from the next order on. An empty field: as for everybody.</p>
      {TERMS.map((term) => (
        <Field
          key={term.name}
          label={term.title}
          unit={term.unit}
          inputMode="decimal"
          value={texts[term.name]}
          onInput={(text) => setTexts({ ...texts, [term.name]: text })}
          problem={isChecked ? termProblem(term, texts[term.name]) : null}
          hint={`As usual: ${term.usual(user)}`}
        />
      ))}
      {changes.trading_fee === 0 && (
        <Notice kind="warn">Without a fee, the orders that these sales meet have no rebate.</Notice>
      )}
    </DecisionDialog>
  );
}
