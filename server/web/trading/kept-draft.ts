/**
 * The order that a guest has prepared. It waits in the browser, shared by its tabs, while the guest signs up: the link in the
 * email opens a tab of its own.
 */
import { kept } from "../browser.ts";
import { exchangeTime } from "../clock.ts";
import type { Draft } from "./order-preview.ts";

interface KeptDraft {
  readonly marketId: number;
  readonly outcomeId: number;
  readonly draft: Draft;
  /** Names the order, such as "192 Yes at 52.0¢". */
  readonly text: string;
  readonly at: number;
}

const KEY = "order-draft";
const MAX_AGE_MS = 24 * 60 * 60 * 1_000;

export function keepDraft(draft: Omit<KeptDraft, "at">): void {
  kept.set(KEY, JSON.stringify({ ...draft, at: exchangeTime() }));
}

export const forgetDraft = (): void => kept.set(KEY, null);

/** Null if there is none from the last 24 hours. */
export function keptDraft(): KeptDraft | null {
  const text = kept.get(KEY);
  if (text === null) return null;
  try {
    const found = JSON.parse(text) as KeptDraft;
    const isRecent = Math.abs(exchangeTime() - found.at) < MAX_AGE_MS;
    return isRecent && typeof found.draft.amount === "string" && typeof found.text === "string" ? found : null;
  } catch {
    return null;
  }
}
