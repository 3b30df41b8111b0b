/** The thread that makes book history, of low priority; it lives for one run. */
import { lowerPriority } from "../../engine/util/low-priority.ts";

/** What trades, and what clients wait for, comes first. */
const NICE = 15;
lowerPriority(NICE);

export { makeHistory } from "../book-history/make-days.ts";
