/** Opens, halts, resumes and closes a market: the buttons and their confirmation. */
import { request } from "../../session.ts";
import type { Market, MarketRecord } from "../../types.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { DialogProps } from "./edit-market.tsx";
import type { Opened, Record } from "./market.tsx";

export type Step = "open" | "halt" | "resume" | "close";

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

export function Steps({ market, open }: { market: MarketRecord; open: (opened: Opened) => void }) {
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
              open({ kind: "end", resolution: { status: "resolved", payouts: null, note: null, first: null } })
            }
          >
            Resolve…
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => open({ kind: "end", resolution: { status: "voided", payouts: null, note: null, first: null } })}
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

export function StepDialog({ market, step, onClose, onDone }: DialogProps & { step: Step }) {
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
