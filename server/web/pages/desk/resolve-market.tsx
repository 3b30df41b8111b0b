/** The end of a closed market: what each outcome pays, looked at once more before everybody is paid. */
import { useState } from "preact/hooks";
import { FULL_PRICE_BPS, MICRO_PER_BPS } from "../../../../engine/limits.ts";
import { equalPart } from "../../../../engine/money.ts";
import { money, percent, SHARE_MICRO, shares } from "../../format.ts";
import { request } from "../../session.ts";
import type { Approval, MarketRecord, MarketSettlement } from "../../types.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, SegmentedControl } from "../../ui/fields.tsx";
import { Notice } from "../../ui/notices.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";

export interface ResolutionRequest {
  readonly status: "resolved" | "voided";
  /** BPS of each outcome; null: to be chosen. */
  readonly payouts: readonly number[] | null;
  /** Of the first approval. */
  readonly note: string | null;
  /** Another operator's approval of the same. */
  readonly first: Approval | null;
}

interface Props {
  readonly market: MarketRecord;
  readonly ending: ResolutionRequest;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Payouts are chosen first, and shown with what they come to then. */
export function ResolveDialog(props: Props) {
  const { market, ending } = props;
  const count = market.outcomes.length;
  const equal = market.outcomes.map((_, index) => equalPart(FULL_PRICE_BPS, index, count));
  const [payouts, setPayouts] = useState(ending.status === "voided" ? equal : ending.payouts);
  if (payouts === null) return <PayoutsDialog {...props} onChosen={setPayouts} />;
  return <ReviewDialog {...props} payouts={payouts} />;
}

// ---------------------------------------------------------------- what each outcome pays

function PayoutsDialog({ market, onClose, onChosen }: Props & { onChosen: (payouts: readonly number[]) => void }) {
  const [kind, setKind] = useState<"winner" | "split">("winner");
  const [winner, setWinner] = useState("");
  const [texts, setTexts] = useState<readonly string[]>(market.outcomes.map(() => ""));
  const [isChecked, setChecked] = useState(false);
  const parts = texts.map(readShare);
  const problem = kind === "winner" ? (winner === "" ? "Choose the outcome that came true." : null) : sumProblem(parts);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (problem !== null) return;
    const whole = market.outcomes.map(({ id }) => (String(id) === winner ? FULL_PRICE_BPS : 0));
    onChosen(kind === "winner" ? whole : parts.map((bps) => bps ?? 0));
  };
  return (
    <Dialog title="Resolve the market" onClose={onClose}>
      <form noValidate onSubmit={submit}>
        <p>
          <strong>{market.question}</strong>
        </p>
        <SegmentedControl
          label="How it ended"
          value={kind}
          options={[
            ["winner", "One came true"],
            ["split", "Split the payout"],
          ]}
          onChange={setKind}
        />
        {kind === "winner" ? (
          <fieldset class="radios">
            <legend class="hidden">The outcome that came true</legend>
            {market.outcomes.map(({ id, name }) => (
              <label key={id}>
                <input
                  type="radio"
                  name="winner"
                  checked={String(id) === winner}
                  onChange={() => setWinner(String(id))}
                />
                {name}
              </label>
            ))}
          </fieldset>
        ) : (
          market.outcomes.map(({ id, name }, i) => (
            <Field
              key={id}
              label={name}
              unit="%"
              inputMode="decimal"
              value={texts[i]!}
              onInput={(text) => setTexts(texts.map((each, at) => (at === i ? text : each)))}
              problem={isChecked && parts[i] === null ? "0 to 100, with two decimals at most." : null}
            />
          ))
        )}
        {kind === "split" && (
          <p class="faint" aria-live="polite">
            In all {percent(sumOf(parts))} of 100 %.
          </p>
        )}
        {isChecked && problem !== null && (
          <div class="notice bad" role="alert">
            {problem}
          </div>
        )}
        <div class="row ends">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Look at what is paid…
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A part of the payout in percent, as typed, in BPS; nothing is 0, null where it is none. */
function readShare(text: string): number | null {
  if (text.trim() === "") return 0;
  const match = /^(\d{1,3})(?:\.(\d{0,2}))?$/.exec(text.trim());
  if (match === null) return null;
  const bps = Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0"));
  return bps <= FULL_PRICE_BPS ? bps : null;
}

const sumOf = (parts: readonly (number | null)[]): number => parts.reduce<number>((sum, bps) => sum + (bps ?? 0), 0);

function sumProblem(parts: readonly (number | null)[]): string | null {
  if (parts.includes(null)) return "Some of these aren't percentages.";
  const left = FULL_PRICE_BPS - sumOf(parts);
  if (left === 0) return null;
  return left > 0 ? `${percent(left)} are still to be given out.` : `These are ${percent(-left)} too many.`;
}

// ---------------------------------------------------------------- what that comes to

function ReviewDialog({ market, ending, payouts, onClose, onDone }: Props & { payouts: readonly number[] }) {
  const [isSure, setSure] = useState(false);
  const [isChecked, setChecked] = useState(false);
  const isVoid = ending.status === "voided";
  const sets = market.open_interest;
  const act = async (given: string | null): Promise<string> => {
    const note = ending.first === null ? given : ending.note;
    const body = isVoid ? { note } : { payouts, note };
    const path = `/admin/markets/${market.id}/${isVoid ? "void" : "resolve"}`;
    const { approval } = await request<MarketSettlement>("POST", path, { body });
    if (approval !== null) return "Your approval is kept: another operator must ask for the same.";
    return isVoid ? "The market is voided, and everybody is paid." : "The market is resolved, and everybody is paid.";
  };
  return (
    <DecisionDialog
      title={isVoid ? "Void the market" : "Resolve the market"}
      confirm={isVoid ? "Void it and pay" : "Resolve it and pay"}
      isDangerous
      noteHint={ending.first === null ? "Everybody reads it beside the result: name the source that decided." : null}
      check={() => {
        setChecked(true);
        return isSure;
      }}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{market.question}</strong>
      </p>
      <table class="payouts">
        <caption class="hidden">What each outcome pays</caption>
        <thead>
          <tr>
            <th scope="col">Outcome</th>
            <th scope="col" class="right">
              A share pays, USDC
            </th>
            <th scope="col" class="right">
              {shares(sets)} shares, USDC
            </th>
          </tr>
        </thead>
        <tbody>
          {market.outcomes.map(({ id, name, index }) => (
            <tr key={id}>
              <th scope="row">{name}</th>
              <td class="right number">{money(payouts[index]! * MICRO_PER_BPS)}</td>
              <td class="right number">{money(payouts[index]! * MICRO_PER_BPS * sets)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>The whole collateral of {money(sets * SHARE_MICRO)} USDC goes to the holders. All are paid at once.</p>
      {ending.first !== null && (
        <Notice kind="warn">
          {ending.first.approved_by} has asked for exactly this, with the note: {ending.note ?? "none"}. Yours is the
          second approval.
        </Notice>
      )}
      <Notice kind="bad">
        <strong>This can't be undone:</strong> what is paid is the holders' own.
      </Notice>
      <Checkbox
        label="I have compared this with the source of the result."
        checked={isSure}
        onChange={setSure}
        {...(isChecked && !isSure ? { hint: "Do that first." } : {})}
      />
    </DecisionDialog>
  );
}
