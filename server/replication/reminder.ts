/** Lines about a wait that goes on: one every REPORT_MS. */
import { systemClock } from "../../engine/util/clock.ts";
import { REPORT_MS } from "./limits.ts";

/** Writes a line to the program's log. */
export type Say = (level: "info" | "warn" | "error", text: string) => void;

export class Reminder {
  private readonly say: Say;
  private reportedAt: number;

  /** @param isPatient false: the first line comes at once */
  constructor(say: Say, isPatient: boolean) {
    this.say = say;
    this.reportedAt = isPatient ? systemClock.elapsed() : Number.NEGATIVE_INFINITY;
  }

  remind(text: string): void {
    const now = systemClock.elapsed();
    if (now - this.reportedAt < REPORT_MS) return;
    this.reportedAt = now;
    this.say("warn", text);
  }
}
