/** A chance as the largest number of a page, and how far one has moved. */
import { chanceText } from "../../util/format.ts";
import { Icon } from "./icon.tsx";

/** @param size "huge": the number that a page is about */
export function BigChance({ bps, size = "huge" }: { bps: number | null; size?: "huge" | "big-chance" }) {
  const text = chanceText(bps);
  const [number, unit] = text.endsWith("%") ? [text.slice(0, -1), "%"] : [text, ""];
  return (
    <b class={size} translate={false}>
      {number}
      {unit !== "" && <small>{unit}</small>}
    </b>
  );
}

/** "▲ 3.1": points of a percent, with words for those who hear it. */
export function Change({ bps }: { bps: number }) {
  const text = Math.abs(bps / 100).toFixed(1);
  if (bps === 0) return <span class="change">{text}</span>;
  return (
    <span class={`change ${bps > 0 ? "up" : "down"}`} translate={false}>
      <Icon name={bps > 0 ? "up" : "down"} size={9} />
      <span class="hidden">{bps > 0 ? "up" : "down"} </span>
      {text}
    </span>
  );
}
