/** The foot of the ticket: what the order costs and brings, what stands in its way, and the button that sends it. */
import { useEffect, useState } from "preact/hooks";
import { cents, money, percent, SHARE_MICRO, shares } from "../../util/format.ts";
import { ApiError } from "../api.ts";
import { errorMessage } from "../error-messages.ts";
import { pathAfterSignIn, withReturnPath } from "../pages/return-path.ts";
import { here, href } from "../router.ts";
import { sessionState, user } from "../session.ts";
import { setChoice, settings } from "../settings.ts";
import type { Outcome, PlaceOrder } from "../types.ts";
import { Checkbox } from "../ui/fields.tsx";
import { Note } from "../ui/note.tsx";
import type { Children } from "../ui/use-data.ts";
import { averageBps } from "./fills.ts";
import { priceInput } from "./order-name.tsx";
import type { ChangeDraft, Draft, OrderPreview, PreviewContext, PreviewSummary } from "./order-preview.ts";
import { FarNote, ObstacleNote, WarningNote } from "./ticket-notes.tsx";

/** An order that the exchange refused, and why. */
export interface Refused {
  readonly error: unknown;
  readonly body: PlaceOrder;
}

interface FooterProps {
  readonly draft: Draft;
  readonly change: ChangeDraft;
  readonly preview: OrderPreview;
  readonly context: PreviewContext;
  readonly outcomes: readonly Outcome[];
  readonly onOutcome: (id: number) => void;
  readonly isBusy: boolean;
  /** An order without a response, which the button retries. */
  readonly unanswered: PlaceOrder | null;
  readonly refused: Refused | null;
  /** Why the last order ended without a fill; null if it didn't. */
  readonly notPlaced: string | null;
  /** Sends the order although its price is far from the market. */
  readonly sendFar: () => void;
}

export function TicketFooter(props: FooterProps) {
  const { draft, preview, context, isBusy, unanswered, refused, notPlaced } = props;
  const { obstacle, far, warnings } = preview;
  if (isBusy) {
    return (
      <Foot>
        <Summary {...props} />
        <SendButton {...props} text="Placing order" />
      </Foot>
    );
  }
  if (unanswered !== null) {
    return (
      <Foot>
        <Note title="We don't know yet whether the order was placed." role="alert">
          The exchange hasn't answered. Retrying repeats the same order, which can't be placed twice.
        </Note>
        <SendButton {...props} text="Retry" />
      </Foot>
    );
  }
  if (refused !== null) return <RefusedFoot {...props} refused={refused} />;
  if (sessionState.value === "out") return <GuestFoot {...props} />;
  if (user.value !== null && user.value.kyc_tier === 0) {
    return (
      <Foot>
        <Note title="Confirm your phone to trade." icon="user" tone="info">
          One text message. Until then you can look at everything.
        </Note>
        <a class="button primary send" href={href(pathAfterSignIn(user.value, here()))}>
          Confirm phone
        </a>
      </Foot>
    );
  }
  if (obstacle !== null) {
    return (
      <Foot>
        <NotPlaced why={notPlaced} />
        <ObstacleNote {...props} obstacle={obstacle} />
        <SendButton {...props} isOff />
      </Foot>
    );
  }
  if (far !== null && settings.asksWhenFar.value) return <FarFoot {...props} far={far} />;
  return (
    <Foot>
      <NotPlaced why={notPlaced} />
      {warnings.map((warning) => (
        <WarningNote key={warning.kind} {...props} warning={warning} />
      ))}
      <Summary {...props} />
      {context.depth === null && preview.summary !== null && (
        <p class="hint">The order books aren't available. You'll see what fills once the order is placed.</p>
      )}
      <SendButton {...props} isOff={user.value === null} text={sendText(draft, preview, context.outcome)} />
    </Foot>
  );
}

function NotPlaced({ why }: { why: string | null }) {
  if (why === null) return null;
  return (
    <Note title="Not placed." role="alert">
      {why}
    </Note>
  );
}

const Foot = ({ children }: { children: Children }) => <div class="ticket-foot">{children}</div>;

/** "Buy Yes"; "Place bid for Yes" if all of it rests. */
export function sendText({ side, kind }: Draft, { summary }: OrderPreview, { name }: Outcome): string {
  const rests = kind === "limit" && summary !== null && summary.fills.quantity === 0 && summary.resting > 0;
  if (rests) return side === "buy" ? `Place bid for ${name}` : `Place offer of ${name}`;
  return `${side === "buy" ? "Buy" : "Sell"} ${name}`;
}

function SendButton({
  draft,
  context,
  isBusy,
  isOff = false,
  text = sendText(draft, { summary: null } as OrderPreview, context.outcome),
}: Pick<FooterProps, "draft" | "context" | "isBusy"> & { isOff?: boolean; text?: string }) {
  return (
    <button
      type="submit"
      translate={false}
      class={`${draft.side} send`}
      disabled={isOff}
      aria-disabled={isBusy ? true : undefined}
    >
      {isBusy && <span class="spinner" aria-hidden="true" />}
      {text}
    </button>
  );
}

/** Two lines: shares and average, cost; fee and daily limit, payout. */
function Summary({ draft, preview: { summary, bound }, context }: Pick<FooterProps, "draft" | "preview" | "context">) {
  if (summary === null) return <NoSummary draft={draft} context={context} />;
  const { fills, resting, notional, fee, payout } = summary;
  const parts = [
    ...(fills.quantity > 0 ? [`${shares(fills.quantity)} shares at ${cents(averageBps(fills))}`] : []),
    ...(resting > 0 ? [`${shares(resting)} ${fills.quantity > 0 ? "rest" : "shares rest"} at ${cents(bound)}`] : []),
  ];
  const isBuy = draft.side === "buy";
  const profit = notional === 0 ? 0 : Math.round((100 * (payout - notional)) / notional);
  return (
    <Lines
      first={[parts.join(", "), isBuy ? "Cost" : "Sale", money(notional)]}
      second={
        isBuy
          ? [`Fee 0.00${todayText(summary, context)}`, "Pays", money(payout)]
          : [`Fee ${percent(context.feeBps)} −${money(fee)}`, "You get", money(notional - fee)]
      }
      profit={isBuy ? `+${shares(profit)}%` : null}
    />
  );
}

/** The same two lines before an amount is entered: nothing moves when it is. */
function NoSummary({ draft, context }: Pick<FooterProps, "draft" | "context">) {
  const isBuy = draft.side === "buy";
  return (
    <Lines
      first={["No amount yet", isBuy ? "Cost" : "Sale", "–"]}
      second={isBuy ? ["Fee 0.00", "Pays", "–"] : [`Fee ${percent(context.feeBps)}`, "You get", "–"]}
      profit={null}
    />
  );
}

type Line = readonly [what: string, label: string, amount: string];

/** @param profit on what is paid, in percent */
function Lines({ first, second, profit }: { first: Line; second: Line; profit: string | null }) {
  return (
    <dl class="order-summary" translate={false}>
      {[first, second].map(([what, label, amount]) => (
        <div key={label}>
          <dt>{what}</dt>
          <dd>
            {label} <b>{amount}</b>
            {label === second[1] && profit !== null && <span class="faint"> {profit}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What counts toward the daily limit, with this order. */
function todayText({ notional }: PreviewSummary, { activity }: PreviewContext): string {
  if (activity === null) return "";
  const whole = (micro: number): string => shares(Math.round(micro / SHARE_MICRO));
  return ` · ${whole(activity.used + notional)} of ${whole(activity.limit)} today`;
}

function GuestFoot(props: FooterProps) {
  const { draft, context } = props;
  return (
    <Foot>
      <Summary {...props} />
      <a class="button primary send" translate={false} href={href(withReturnPath("/sign-up"))}>
        Sign up to {draft.side} {context.outcome.name}
      </a>
      <p class="hint centred">
        Have an account? <a href={href(withReturnPath("/sign-in"))}>Sign in</a>. Your order waits here.
      </p>
    </Foot>
  );
}

function FarFoot(props: FooterProps & { far: NonNullable<OrderPreview["far"]> }) {
  const { draft, change, far, sendFar } = props;
  const [isLast, setLast] = useState(false);
  const verb = draft.side === "buy" ? "Buy" : "Sell";
  return (
    <Foot>
      <FarNote far={far} side={draft.side}>
        <Checkbox label="Don't ask again" checked={isLast} onChange={setLast} />
      </FarNote>
      <div class="row halves">
        <button
          type="button"
          class="send"
          translate={false}
          onClick={() => {
            if (isLast) setChoice("asksWhenFar", false);
            sendFar();
          }}
        >
          {verb} at {cents(far.price)}
        </button>
        <button
          type="button"
          class={`${draft.side} send`}
          translate={false}
          onClick={() => change({ price: priceInput(far.best) })}
        >
          Use {cents(far.best)}
        </button>
      </div>
    </Foot>
  );
}

const BUSY = 50300;
const TOO_MANY = 42900;

function RefusedFoot(props: FooterProps & { refused: Refused }) {
  const { refused, draft } = props;
  const { error } = refused;
  const { code = 0, traceId = null, retryAfter = null } = error instanceof ApiError ? error : {};
  const left = useCountdown(error, code === BUSY || code === TOO_MANY ? (retryAfter ?? 1) : null);
  if (left === null) {
    return (
      <Foot>
        <Note title="Not placed." role="alert">
          {errorMessage(error)} Nothing was charged.
        </Note>
        <Summary {...props} />
        <SendButton {...props} />
      </Foot>
    );
  }
  return (
    <Foot>
      <Note title={code === BUSY ? "Not placed: the exchange is busy." : "Not placed: too many requests."} role="alert">
        Nothing was charged. Retrying the same order can't place it twice.
      </Note>
      <button type="submit" class={`${draft.side} send`} disabled={left > 0}>
        {left > 0 ? `Retry in ${left} s` : "Retry"}
      </button>
      <p class="hint centred">
        Error {code}
        {traceId !== null && ` · reference ${traceId}`}
      </p>
    </Foot>
  );
}

/** Seconds left. @param of counts anew for each @param seconds null: nothing to wait for */
function useCountdown(of: unknown, seconds: number | null): number | null {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    setLeft(seconds);
    if (seconds === null) return;
    const timer = setInterval(() => setLeft((before) => (before === null ? null : Math.max(0, before - 1))), 1_000);
    return () => clearInterval(timer);
  }, [of]);
  return seconds === null ? null : left;
}
