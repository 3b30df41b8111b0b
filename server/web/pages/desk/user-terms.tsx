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
import { exactMoney, percent } from "../../../util/format.ts";
import { request } from "../../session.ts";
import type { OperatorUser, TermsChange } from "../../types.ts";
import { AMOUNT, COUNT, NumberField, type NumberKind } from "../../ui/fields.tsx";
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
  /** The default, as text. */
  readonly defaultText: (user: OperatorUser) => string;
  readonly show: (value: number | null) => string;
  readonly kind: NumberKind;
  /** Formats the field's text. */
  readonly format: (value: number) => string;
}

const defaultLimit = (tier: number): string => `${exactMoney(DAILY_ACTIVITY_LIMIT_MICRO[tier] ?? 0)} USDC a day`;

const ofNotional = (bps: number | null): string => `${percent(bps)} of the notional`;

const rateTerm = (name: keyof Terms, title: string, defaultBps: number, max: number): Term => ({
  name,
  title,
  unit: "BPS",
  min: 0,
  max,
  defaultText: () => ofNotional(defaultBps),
  show: ofNotional,
  format: String,
  kind: COUNT,
});

export const TERMS: readonly Term[] = [
  {
    name: "daily_limit",
    title: "Daily limit",
    unit: "USDC",
    min: 0,
    max: MAX_MONEY_MICRO,
    defaultText: ({ kyc_tier }) => defaultLimit(kyc_tier),
    show: (value) => `${exactMoney(value ?? 0)} USDC a day`,
    format: (value) => exactMoney(value).replaceAll(",", ""),
    kind: AMOUNT,
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
    defaultText: () => "the exchange's merge fee",
    show: (value) => `${percent(value)} of each set`,
    format: String,
    kind: COUNT,
  },
  {
    name: "rate_limit_factor",
    title: "Rate limit factor",
    unit: "×",
    min: 1,
    max: MAX_RATE_LIMIT_FACTOR,
    defaultText: () => "1 ×",
    show: (value) => `${value} ×`,
    format: String,
    kind: COUNT,
  },
  {
    name: "max_live_orders",
    title: "Max. open orders",
    unit: "orders",
    min: 1,
    max: MAX_OWN_LIVE_ORDERS,
    defaultText: () => "by KYC tier",
    show: String,
    format: String,
    kind: COUNT,
  },
];

/** @param text empty: the default applies */
function termProblem({ kind, min, max, unit, format }: Term, text: string): string | null {
  if (text.trim() === "") return null;
  const value = kind.parse(text);
  return value === null || value < min || value > max ? `Must be ${format(min)} to ${format(max)} ${unit}.` : null;
}

export function TermsDialog({ user, onClose, onDone }: DialogProps) {
  const [texts, setTexts] = useState<Readonly<Record<keyof Terms, string>>>(() => {
    const entries = TERMS.map(({ name, format }) => {
      const value = user.terms[name];
      return [name, value === null ? "" : format(value)] as const;
    });
    return Object.fromEntries(entries) as Record<keyof Terms, string>;
  });
  const [isChecked, setChecked] = useState(false);
  const changes: TermsChange = {};
  for (const { name, kind } of TERMS) {
    const value = texts[name].trim() === "" ? null : kind.parse(texts[name]);
    if (value !== user.terms[name]) changes[name] = value;
  }
  return (
    <DecisionDialog
      title="Edit terms"
      confirm="Save"
      noteHint={null}
      check={() => {
        setChecked(true);
        return TERMS.every((term) => termProblem(term, texts[term.name]) === null);
      }}
      act={async () => {
        if (Object.keys(changes).length === 0) return "No changes.";
        const changed = await request<OperatorUser>("PATCH", `/admin/users/${user.id}/terms`, { body: changes });
        return changed.terms_approval === null
          ? `Terms of ${user.email} updated.`
          : "Approval recorded: another operator must repeat the action.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{user.email}</strong>
      </p>
      <p>Changes apply from the next order on. Leave a field empty for the default.</p>
      {TERMS.map((term) => (
        <NumberField
          key={term.name}
          label={term.title}
          unit={term.unit}
          kind={term.kind}
          value={texts[term.name]}
          onInput={(text) => setTexts({ ...texts, [term.name]: text })}
          problem={isChecked ? termProblem(term, texts[term.name]) : null}
          hint={`Default: ${term.defaultText(user)}`}
        />
      ))}
      {changes.trading_fee === 0 && (
        <Notice kind="warn">Without a fee, the makers of these sales earn no rebate.</Notice>
      )}
    </DecisionDialog>
  );
}
