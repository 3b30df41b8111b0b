/** What a page's main thread does, measured by Chromium's trace. */
import type { Page } from "playwright-core";

interface TraceEvent {
  readonly name: string;
  /** Phase: that of a whole one, or of the begin of one that the trace's end cut off. */
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** CPU time of the thread, µs. */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** Runs one task of a thread's queue. */
const TASK = "RunTask";
const WHOLE = "X";
const CATEGORIES = ["disabled-by-default-devtools.timeline", "devtools.timeline", "__metadata"];

/**
 * Traces the tasks of a page's main thread from now on. Returns a function that ends the trace and returns the CPU time
 * of each task, ms. CPU time is the page's own: what other programs take of the machine doesn't count.
 */
export async function traceTasks(page: Page): Promise<() => Promise<number[]>> {
  const browser = page.context().browser();
  if (browser === null) throw new Error("the page has no browser");
  await browser.startTracing(page, { categories: CATEGORIES });
  return async () => {
    const text = String(await browser.stopTracing());
    const { traceEvents } = JSON.parse(text) as { traceEvents: TraceEvent[] };
    const mainThreads = new Set(
      traceEvents
        .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
        .map(({ pid, tid }) => `${pid} ${tid}`),
    );
    return traceEvents
      .filter(({ name, ph, pid, tid }) => name === TASK && ph === WHOLE && mainThreads.has(`${pid} ${tid}`))
      .map(({ tdur }) => {
        if (tdur === undefined) throw new Error("the trace has no CPU times");
        return tdur / 1_000;
      });
  };
}
