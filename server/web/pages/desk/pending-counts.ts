/** Counts of pending operator work, loaded when the desk opens, every minute, and after each decision. */
import { signal } from "@preact/signals";
import { request } from "../../session.ts";
import type { Page } from "../../types.ts";

interface Count {
  readonly count: number;
  /** There are more than fit on one page. */
  readonly isMore: boolean;
}
export type PendingCounts = Readonly<
  Record<"proposals" | "applications" | "withdrawals" | "approvals" | "resolutions", Count>
>;

/** Null until loaded. */
export const pendingCounts = signal<PendingCounts | null>(null);
/** Error of the last load; null after a success. */
export const pendingCountsError = signal<unknown>(null);

const PAGE = 200;

export async function refreshPendingCounts(): Promise<void> {
  try {
    const [proposals, applications, withdrawals, approvals, resolutions] = await Promise.all([
      count("/admin/proposals", "proposed"),
      count("/admin/identity-applications", "pending"),
      count("/admin/withdrawals", "pending"),
      count("/admin/approvals", null),
      count("/markets", "closed"),
    ]);
    pendingCounts.value = { proposals, applications, withdrawals, approvals, resolutions };
    pendingCountsError.value = null;
  } catch (error) {
    pendingCountsError.value = error;
  }
}

async function count(path: string, status: string | null): Promise<Count> {
  const { items, next_cursor } = await request<Page<unknown>>("GET", path, { query: { status, limit: PAGE } });
  return { count: items.length, isMore: next_cursor !== null };
}

/** "12", "200+". */
export const countText = ({ count: shown, isMore }: Count): string => (isMore ? `${shown}+` : String(shown));
