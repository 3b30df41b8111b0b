/** Resolves or voids a closed market: choose the payouts, review them, then pay all holders. */
import { useState } from "preact/hooks";
import { FULL_PRICE_BPS, MICRO_PER_BPS } from "../../../../engine/limits.ts";
import { equalPart } from "../../../../engine/money.ts";
import { exactMoney, percent, SHARE_MICRO, shares } from "../../../util/format.ts";
import { parsePercent } from "../../parse.ts";
import { request } from "../../session.ts";
import type { Approval, MarketRecord, MarketSettlement } from "../../types.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, NumberField, PERCENT } from "../../ui/fields.tsx";
import { Notice } from "../../ui/notices.tsx";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";

export interface ResolutionRequest {
  readonly status: "resolved" | "voided";
  /** BPS by outcome; null: still to be chosen. */
  readonly payouts: readonly number[] | null;
  /** Note of the first approval. */
  readonly note: string | null;
  /** Another operator's first approval of this resolution. */
  readonly first: Approval | null;
}

interface Props {
  readonly market: MarketRecord;
  readonly resolution: ResolutionRequest;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Asks for the payouts first, then for confirmation of the amounts. */
export function ResolveDialog(props: Props) {
  const { market, resolution } = props;
  const count = market.outcomes.length;
  const equal = market.outcomes.map((_, index) => equalPart(FULL_PRICE_BPS, index, count));
  const [payouts, setPayouts] = useState(resolution.status === "voided" ? equal : resolution.payouts);
  if (payouts === null) return <PayoutsDialog {...props} onChosen={setPayouts} />;
  return <ReviewDialog {...props} payouts={payouts} />;
}

function PayoutsDialog({ market, onClose, onChosen }: Props & { onChosen: (payouts: readonly number[]) => void }) {
  const [kind, setKind] = useState<"winner" | "split">("winner");
  const [winner, setWinner] = useState("");
  const [texts, setTexts] = useState<readonly string[]>(market.outcomes.map(() => ""));
  const [isChecked, setChecked] = useState(false);
  const parts = texts.map(readShare);
  const problem = kind === "winner" ? (winner === "" ? "Select the winning outcome." : null) : sumProblem(parts);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (problem !== null) return;
    const whole = market.outcomes.map(({ id }) => (String(id) === winner ? FULL_PRICE_BPS : 0));
    onChosen(kind === "winner" ? whole : parts.map((bps) => bps ?? 0));
  };
  return (
    <Dialog title="Resolve market" onClose={onClose}>
      <form noValidate onSubmit={submit}>
        <p>
          <strong>{market.question}</strong>
        </p>
        <SegmentedControl
          label="Result"
          value={kind}
          options={[
            ["winner", "Single winner"],
            ["split", "Split payout"],
          ]}
          onChange={setKind}
        />
        {kind === "winner" ? (
          <WinnerChoice outcomes={market.outcomes} winner={winner} onChange={setWinner} />
        ) : (
          market.outcomes.map(({ id, name }, i) => (
            <NumberField
              key={id}
              label={name}
              unit="%"
              kind={PERCENT}
              value={texts[i] ?? ""}
              onInput={(text) => setTexts(texts.map((each, at) => (at === i ? text : each)))}
              problem={isChecked && parts[i] === null ? "Must be 0 to 100, with at most two decimals." : null}
            />
          ))
        )}
        {kind === "split" && (
          <p class="faint" aria-live="polite">
            Total: {percent(sumOf(parts))} of 100%.
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
            Review payouts…
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface WinnerProps {
  outcomes: MarketRecord["outcomes"];
  /** Outcome id, "" for none. */
  winner: string;
  onChange: (id: string) => void;
}

function WinnerChoice({ outcomes, winner, onChange }: WinnerProps) {
  return (
    <fieldset class="radios">
      <legend class="hidden">Winning outcome</legend>
      {outcomes.map(({ id, name }) => (
        <label key={id}>
          <input type="radio" name="winner" checked={String(id) === winner} onChange={() => onChange(String(id))} />
          {name}
        </label>
      ))}
    </fieldset>
  );
}

/** Parses a payout in percent to BPS. Empty text is 0; null if invalid. */
function readShare(text: string): number | null {
  if (text.trim() === "") return 0;
  const bps = parsePercent(text);
  return bps !== null && bps <= FULL_PRICE_BPS ? bps : null;
}

/** Payout of a share, micro-USDC. */
const payoutMicro = (payouts: readonly number[], index: number): number => (payouts[index] ?? 0) * MICRO_PER_BPS;

const sumOf = (parts: readonly (number | null)[]): number => parts.reduce<number>((sum, bps) => sum + (bps ?? 0), 0);

function sumProblem(parts: readonly (number | null)[]): string | null {
  if (parts.includes(null)) return "Enter valid percentages.";
  const left = FULL_PRICE_BPS - sumOf(parts);
  if (left === 0) return null;
  return left > 0 ? `${percent(left)} not allocated yet.` : `${percent(-left)} over 100%.`;
}

function PayoutTable({ market, payouts }: { market: MarketRecord; payouts: readonly number[] }) {
  const sets = market.open_interest;
  return (
    <table class="payouts">
      <caption class="hidden">Payout by outcome</caption>
      <thead>
        <tr>
          <th scope="col">Outcome</th>
          <th scope="col" class="right">
            Per share, USDC
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
            <td class="right number" translate={false}>
              {exactMoney(payoutMicro(payouts, index))}
            </td>
            <td class="right number" translate={false}>
              {exactMoney(payoutMicro(payouts, index) * sets)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ReviewDialog({ market, resolution, payouts, onClose, onDone }: Props & { payouts: readonly number[] }) {
  const [isConfirmed, setConfirmed] = useState(false);
  const [isChecked, setChecked] = useState(false);
  const isVoid = resolution.status === "voided";
  const sets = market.open_interest;
  const act = async (given: string | null): Promise<string> => {
    const note = resolution.first === null ? given : resolution.note;
    const body = isVoid ? { note } : { payouts, note };
    const path = `/admin/markets/${market.id}/${isVoid ? "void" : "resolve"}`;
    const { approval } = await request<MarketSettlement>("POST", path, { body });
    if (approval !== null) return "Approval recorded: another operator must repeat the action.";
    return isVoid ? "Market voided. All holders are paid." : "Market resolved. All holders are paid.";
  };
  return (
    <DecisionDialog
      title={isVoid ? "Void market" : "Resolve market"}
      confirm={isVoid ? "Void and pay" : "Resolve and pay"}
      isDangerous
      noteHint={resolution.first === null ? "Public, shown with the result: name the source." : null}
      check={() => {
        setChecked(true);
        return isConfirmed;
      }}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{market.question}</strong>
      </p>
      <PayoutTable market={market} payouts={payouts} />
      <p>The entire collateral of {exactMoney(sets * SHARE_MICRO)} USDC is paid to the holders immediately.</p>
      {resolution.first !== null && (
        <Notice kind="warn">
          First approval by {resolution.first.approved_by}, with note: {resolution.note ?? "none"}. Yours is the second
          approval.
        </Notice>
      )}
      <Notice kind="bad">
        <strong>This can't be undone:</strong> payouts belong to the holders.
      </Notice>
      <Checkbox
        label="I have checked this against the source of the result."
        checked={isConfirmed}
        onChange={setConfirmed}
        {...(isChecked && !isConfirmed ? { hint: "Required." } : {})}
      />
    </DecisionDialog>
  );
}
