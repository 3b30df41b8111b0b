/** The status of a market, an order or an application. */
export function Badge({ text, tone = "" }: { text: string; tone?: "" | "good" | "bad" | "warn" }) {
  return <span class={`badge ${tone}`}>{text}</span>;
}
