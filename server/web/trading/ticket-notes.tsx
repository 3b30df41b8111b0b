/** What the ticket says about an order before it is sent: what stands in its way, and what may surprise. */
import { FULL_PRICE_BPS, MICRO_PER_BPS } from "../../../engine/limits.ts";
import { notionalMicro } from "../../../engine/money.ts";
import { cents, money, shares, spendable } from "../../util/format.ts";
import { navigate } from "../router.ts";
import type { Outcome } from "../types.ts";
import { Note, type NoteAction } from "../ui/note.tsx";
import type { Children } from "../ui/use-data.ts";
import { averageBps } from "./fills.ts";
import { priceInput } from "./order-name.tsx";
import {
  type ChangeDraft,
  type Draft,
  type FarPrice,
  maxAmount,
  type Obstacle,
  type PreviewContext,
  unitOf,
  type Warning,
} from "./order-preview.ts";

interface NoteProps {
  readonly draft: Draft;
  readonly change: ChangeDraft;
  readonly context: PreviewContext;
  readonly outcomes: readonly Outcome[];
  readonly onOutcome: (id: number) => void;
}

export function ObstacleNote({ obstacle, ...props }: NoteProps & { obstacle: Obstacle }) {
  const { draft, change, context } = props;
  const { name } = context.outcome;
  const isBuy = draft.side === "buy";
  switch (obstacle.kind) {
    case "funds": {
      const { available, maxShares, bound } = obstacle;
      const max = maxAmount(draft, context);
      const useMax: NoteAction[] = max === null ? [] : [{ text: "Use Max", run: () => change({ amount: max }) }];
      const until =
        draft.kind === "market" ? `held at the ${cents(bound)} bound until they fill` : `at ${cents(bound)}`;
      return (
        <Note
          title={`You have ${spendable(available)} USDC.`}
          actions={[...useMax, { text: "Deposit", run: () => navigate("/wallet") }]}
        >
          {maxShares === 0
            ? `One share costs up to ${cents(bound)}.`
            : `Max buys ${shares(maxShares)} shares, ${until}.`}
        </Note>
      );
    }
    case "shares":
      return <NoShares {...obstacle} {...props} />;
    case "empty":
      return (
        <Note
          icon="info"
          tone="info"
          title={isBuy ? `No offers of ${name} yet.` : `No bids for ${name} yet.`}
          actions={[{ text: isBuy ? "Place a bid" : "Place an offer", run: () => change({ kind: "limit" }) }]}
        >
          A limit order waits in the book at your price.
        </Note>
      );
    case "beyond":
      return (
        <Note
          title={`The best ${isBuy ? "offer" : "bid"} is ${cents(obstacle.best)}.`}
          actions={[{ text: `Use ${cents(obstacle.best)}`, run: () => change({ price: priceInput(obstacle.best) }) }]}
        >
          Nothing would fill at your price, and this order doesn't rest.
        </Note>
      );
    case "too-few":
      return (
        <Note
          title={`Only ${shares(obstacle.found)} shares are ${isBuy ? "offered" : "bid for"} at this price.`}
          actions={[{ text: `Use ${shares(obstacle.found)}`, run: () => change(amountOf(draft, obstacle.found)) }]}
        >
          A fill-or-kill order fills completely or not at all.
        </Note>
      );
    case "crosses": {
      const { next, best } = obstacle;
      return (
        <Note
          title={`${draft.price.trim()}¢ would trade at once: the best ${isBuy ? "offer" : "bid"} is ${cents(best)}.`}
          actions={
            next === null ? [] : [{ text: `Use ${cents(next)}`, run: () => change({ price: priceInput(next) }) }]
          }
        >
          A post-only order only rests in the book.
        </Note>
      );
    }
    case "not-live":
      return (
        <Note title="Trading resumes with the connection." icon="alert">
          What you typed stays here. Nothing is sent later without you.
        </Note>
      );
  }
}

/** The change that makes the amount a number of shares. */
const amountOf = (draft: Draft, count: number): Partial<Draft> =>
  unitOf(draft) === "shares" ? { amount: String(count) } : { amount: String(count), unit: "shares" };

/** Of two outcomes, buying the other one takes the same side. */
function NoShares({
  free,
  owned,
  draft,
  change,
  context,
  outcomes,
  onOutcome,
}: NoteProps & { free: number; owned: number }) {
  const { name, id } = context.outcome;
  if (free > 0) {
    return (
      <Note
        title={`You have ${shares(free)} shares of ${name} to sell.`}
        actions={[{ text: `Sell ${shares(free)}`, run: () => change({ amount: String(free) }) }]}
      >
        {owned > free ? `${shares(owned - free)} more are on hold for open offers.` : undefined}
      </Note>
    );
  }
  const title =
    owned > 0
      ? `All ${shares(owned)} of your ${name} shares are on hold for open offers.`
      : `You have no shares of ${name} to sell.`;
  const other = outcomes.length === 2 ? outcomes.find((each) => each.id !== id) : undefined;
  const price = other?.implied_ask ?? null;
  if (other === undefined || price === null || owned > 0) return <Note title={title} icon="info" tone="info" />;
  const count = Number(draft.amount);
  const cost = Number.isSafeInteger(count) && count > 0 ? notionalMicro(price, count) : null;
  return (
    <Note
      title={title}
      icon="info"
      tone="info"
      actions={[
        {
          text: `Buy ${other.name} at ${cents(price)} instead`,
          icon: "swap",
          run: () => {
            onOutcome(other.id);
            const limit = draft.kind === "limit" ? { price: priceInput(price) } : {};
            change({ side: "buy", unit: "shares", amount: draft.amount, ...limit });
          },
        },
      ]}
    >
      Buying {other.name} at {cents(price)} takes the same side
      {cost === null
        ? "."
        : `: ${shares(count)} shares cost ${money(cost)} and pay ${money(count * FULL_PRICE_BPS * MICRO_PER_BPS)} if ${other.name}.`}
    </Note>
  );
}

export function WarningNote({ warning, draft, change }: NoteProps & { warning: Warning }) {
  switch (warning.kind) {
    case "partial":
      return (
        <Note title={`Only ${shares(warning.found)} shares fill at this price.`}>
          The other {shares(warning.rest)} are canceled.
        </Note>
      );
    case "own":
      return (
        <Note title="This meets an order of your own.">
          Your orders don't trade with each other: the rest of the new one would be canceled.
        </Note>
      );
    case "limit": {
      const { over, limit, maxShares } = warning;
      return (
        <Note
          title={`This order goes ${money(over)} over today's limit of ${money(limit)}.`}
          actions={
            maxShares === 0
              ? []
              : [{ text: `Buy ${shares(maxShares)} instead`, run: () => change(amountOf(draft, maxShares)) }]
          }
        >
          The exchange may refuse it. The limit resets at 00:00 UTC.
        </Note>
      );
    }
  }
}

/** A limit far beyond the market: what it means, before the user decides between it and the best price. */
export function FarNote({
  far: { price, best, fills, worst },
  side,
  children,
}: {
  far: FarPrice;
  side: Draft["side"];
  children: Children;
}) {
  const isBuy = side === "buy";
  const beyond = cents(Math.abs(price - best));
  return (
    <Note title={`${cents(price)} is ${beyond} ${isBuy ? "above the best offer" : "below the best bid"}.`} role="alert">
      About {money(fills.notional)} USDC {isBuy ? "fills" : "sells"} now at {cents(averageBps(fills))}. If those{" "}
      {isBuy ? "offers" : "bids"} go first, it can {isBuy ? "cost up to" : "bring as little as"} {money(worst)}.
      {children}
    </Note>
  );
}
