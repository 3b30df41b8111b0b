/** The thread of the log's upkeep (log-upkeep-job.ts), of low priority; it lives for one run. */
import { lowerPriority } from "../../engine/util/low-priority.ts";

/** What trades, and what clients wait for, comes first. */
const NICE = 15;
lowerPriority(NICE);

export { keepLog } from "./log-upkeep-job.ts";
