/** A price that changes while it is shown: it is marked for a moment, by where it went. */
import "./ticking-price.css";
import { useLayoutEffect, useRef } from "preact/hooks";

/** As --d-flash. A price that goes on changing meanwhile isn't marked again: nothing flickers. */
const MARKED_MS = 600;

/** @param bps null: no price @param text as it is shown */
export function TickingPrice({ bps, text }: { bps: number | null; text: string }) {
  const ref = useRef<HTMLElement>(null);
  const before = useRef(bps);
  useLayoutEffect(() => {
    const [element, was] = [ref.current, before.current];
    before.current = bps;
    if (element === null || was === null || bps === null || was === bps || element.dataset["moved"]) return;
    element.dataset["moved"] = bps > was ? "up" : "down";
    setTimeout(() => delete element.dataset["moved"], MARKED_MS);
  }, [bps]);
  return <b ref={ref}>{text}</b>;
}
