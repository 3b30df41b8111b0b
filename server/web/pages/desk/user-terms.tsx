/** A user's own terms: their definitions, and the dialog that changes them. */
import { useState } from "preact/hooks";
import {
  DAILY_ACTIVITY_LIMIT_MICRO,
  MAKER_REBATE_BPS,
  MAX_MERGE_FEE_BPS,
  MAX_MONEY_MICRO,
  MAX_OWN_RATE_BPS,
  PAT_REBATE_BPS,
  TRADING_FEE_BPS,
} from "../../../../engine/limits.ts";
import { MAX_OWN_LIVE_ORDERS, MAX_OWN_REBATE_BPS, MAX_RATE_LIMIT_FACTOR } from "../../../accounts/limits.ts";
import { money, parseMoney, percent } from "../../format.ts";
import { request } from "../../session.ts";
import type { OperatorUser, TermsChange } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { Notice } from "../../ui/notices.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { DialogProps } from "./user-dialogs.tsx";

export type Terms = OperatorUser["terms"];

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

const defaultLimit = (tier: number): string => `${money(DAILY_ACTIVITY_LIMIT_MICRO[tier] ?? 0)} USDC a day`;

const whole = (text: string): number | null => (/^\d{1,9}$/.test(text.trim()) ? Number(text.trim()) : null);

const ofNotional = (bps: number | null): string => `${percent(bps)} of the notional`;

const rateTerm = (name: keyof Terms, title: string, usualBps: number, max: number): Term => ({
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

export const TERMS: readonly Term[] = [
  {
    name: "daily_limit",
    title: "Daily limit",
    unit: "USDC",
    min: 0,
    max: MAX_MONEY_MICRO,
    usual: ({ kyc_tier }) => defaultLimit(kyc_tier),
    show: (value) => `${money(value ?? 0)} USDC a day`,
    write: (value) => money(value).replaceAll(",", ""),
    read: parseMoney,
  },
  rateTerm("trading_fee", "Trading fee of sellers", TRADING_FEE_BPS, MAX_OWN_RATE_BPS),
  rateTerm("maker_rebate", "Maker rebate", MAKER_REBATE_BPS, MAX_OWN_REBATE_BPS),
  rateTerm("pat_rebate", "Maker rebate by token", PAT_REBATE_BPS, MAX_OWN_REBATE_BPS),
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

export function TermsDialog({ user, onClose, onDone }: DialogProps) {
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
