/** The live order books of a market's outcomes: a snapshot of each, then deltas. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type StreamEvent, subscribe } from "../stream.ts";
import type { Market, OutcomeBook } from "../types.ts";
import { useThrottled } from "../ui/throttle.ts";
import { applyChanges, type Ladder, type Level } from "./depth.ts";

interface Sides {
  /** Quantities by price. */
  readonly bids: Map<number, number>;
  readonly asks: Map<number, number>;
}

/** Returns ladders by outcome id. Outcomes without a snapshot are missing. */
export function useBooks({ id, outcomes }: Market): ReadonlyMap<number, Ladder> {
  const [ladders, setLadders] = useState<ReadonlyMap<number, Ladder>>(new Map());
  const books = useRef(new Map<number, Sides>());
  const changed = useRef(new Set<number>());
  const show = useThrottled(() => {
    const ids = [...changed.current];
    changed.current.clear();
    setLadders((before) => {
      const next = new Map(before);
      for (const each of ids) {
        const book = books.current.get(each);
        if (book !== undefined) next.set(each, ladderOf(book));
      }
      return next;
    });
  });
  useEffect(() => {
    books.current.clear();
    changed.current.clear();
    setLadders(new Map());
    const apply = ({ event, data }: StreamEvent): void => {
      const { outcome_id, bids, asks } = data as OutcomeBook;
      if (event === "book.snapshot") books.current.set(outcome_id, { bids: new Map(), asks: new Map() });
      const book = books.current.get(outcome_id);
      if (book === undefined) return;
      applyChanges(book.bids, bids);
      applyChanges(book.asks, asks);
      changed.current.add(outcome_id);
      show();
    };
    const unsubscribers = outcomes.map((outcome) => subscribe("book", id, outcome.id, apply));
    return () => {
      for (const unsubscribe of unsubscribers) unsubscribe();
    };
  }, [id]);
  return ladders;
}

function ladderOf({ bids, asks }: Sides): Ladder {
  const sorted = (levels: Map<number, number>, sign: number): Level[] =>
    [...levels].sort((a, b) => sign * (a[0] - b[0]));
  return { bids: sorted(bids, -1), asks: sorted(asks, 1) };
}
