/** The status of a market, withdrawal or application as a badge. */
import { statusText } from "../../../util/format.ts";
import { Badge } from "../../ui/badge.tsx";

const TONES: Readonly<Record<string, "good" | "bad" | "warn">> = {
  open: "good",
  paid: "good",
  approved: "good",
  resolved: "good",
  proposed: "warn",
  pending: "warn",
  halted: "warn",
  closed: "warn",
  refused: "bad",
  rejected: "bad",
};

export function StatusBadge({ status }: { status: string }) {
  return <Badge text={statusText(status)} tone={TONES[status] ?? ""} />;
}
