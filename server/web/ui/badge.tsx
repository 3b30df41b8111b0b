/** A state of a market, an order, an application: in words and in a colour. */
export function Badge({ text, tone = "" }: { text: string; tone?: "" | "good" | "bad" | "warn" }) {
  return <span class={`badge ${tone}`}>{text}</span>;
}
