// Loaded into a server before its own code: its clock is CLOCK_OFFSET_MS off. Each SIGUSR2 takes the next of CLOCK_STEPS_MS,
// a list of further offsets, or else sets it an hour back.
import { isMainThread } from "node:worker_threads";

const HOUR_MS = 3_600_000;
const { now } = Date;
let offset = Number(process.env["CLOCK_OFFSET_MS"] ?? 0);
const steps = (process.env["CLOCK_STEPS_MS"] ?? "").split(",").filter(Boolean).map(Number);
Date.now = () => now() + offset;
if (isMainThread) {
  process.on("SIGUSR2", () => {
    offset += steps.shift() ?? -HOUR_MS;
  });
}
