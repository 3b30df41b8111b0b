/** Opens, halts, resumes and closes a market: the buttons and their confirmation. */
import { request } from "../../session.ts";
import type { Market, MarketRecord } from "../../types.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { DialogProps } from "./edit-market.tsx";
import type { Opened, Step } from "./market-dialogs.ts";

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
              open({ kind: "resolve", resolution: { status: "resolved", payouts: null, note: null, first: null } })
            }
          >
            Resolve…
          </button>
          <button
            type="button"
            class="danger"
            onClick={() =>
              open({ kind: "resolve", resolution: { status: "voided", payouts: null, note: null, first: null } })
            }
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

const STEPS: Readonly<Record<Step, { title: string; confirm: string; effect: string; done: string }>> = {
  open: {
    title: "Open market",
    confirm: "Approve and open",
    effect:
      "Approves the proposal: the market becomes public and opens for trading immediately. The proposer is notified by email.",
    done: "Market open.",
  },
  halt: {
    title: "Halt market",
    confirm: "Halt",
    effect:
      "Matching stops, and new orders are rejected until the market resumes. Open orders stay in the book and can be canceled.",
    done: "Market halted.",
  },
  resume: {
    title: "Resume market",
    confirm: "Resume",
    effect: "Trading resumes immediately with the resting orders.",
    done: "Market resumed.",
  },
  close: {
    title: "Close market",
    confirm: "Close permanently",
    effect: "Trading ends permanently, and all orders are canceled. The market can't reopen; resolve or void it next.",
    done: "Market closed.",
  },
};

export function StepDialog({ market, step, onClose, onDone }: DialogProps & { step: Step }) {
  const { title, confirm, effect, done } = STEPS[step];
  return (
    <DecisionDialog
      title={title}
      confirm={confirm}
      isDangerous={step === "halt" || step === "close"}
      noteHint={step === "open" ? "Emailed to the proposer." : "Recorded in the audit log."}
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
      <p>{effect}</p>
    </DecisionDialog>
  );
}
