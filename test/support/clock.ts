/** A server whose clock a test can set forward instead of waiting. Affects the gateway's clock only. */
import { eventually } from "./checks.ts";
import type { Client } from "./client.ts";

/** Each signal sets the clock forward by this much. */
export const CLOCK_STEP_MS = 11_000;

const PRELOAD = `
  import { isMainThread } from "node:worker_threads";
  const now = Date.now;
  let ahead = 0;
  Date.now = () => now() + ahead;
  if (isMainThread) process.on("SIGUSR2", () => (ahead += ${CLOCK_STEP_MS}));
`;

/** Environment of such a server. */
export const MOVABLE_CLOCK = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOAD)}` };

/** Sets the clock forward; resolves when the server uses the new time. */
export async function stepClock(client: Client): Promise<void> {
  const timeOf = async (): Promise<number> => (await client.get<{ now: number }>("/time")).now;
  const before = await timeOf();
  client.server.signal("SIGUSR2");
  await eventually(async () => {
    if ((await timeOf()) < before + CLOCK_STEP_MS) throw new Error("the clock stands where it was");
  });
}
