// Loaded into a server before its own code: its clock is CLOCK_OFFSET_MS off, and an hour more behind with each SIGUSR2.
import { isMainThread } from "node:worker_threads";

const HOUR_MS = 3_600_000;
const { now } = Date;
let offset = Number(process.env["CLOCK_OFFSET_MS"] ?? 0);
Date.now = () => now() + offset;
if (isMainThread) {
  process.on("SIGUSR2", () => {
    offset -= HOUR_MS;
  });
}
