/**
 * Reads the log and believes no batch before the next one confirms it: a batch that was changed is named, not passed on. The
 * log's last batch has no next one; its hash may be known from elsewhere.
 */
import { BrokenLog } from "./broken-log.ts";
import { type ChainLink, LogChain } from "./chain.ts";
import type { LogReader } from "./log-reader.ts";

/**
 * The batches from `first` on, each once it is confirmed. Costs one SHA-256 a batch.
 * @param known a batch whose hash is known, such as the last one that the tables include; null for none
 * @throws BrokenLog that names the first batch that was changed, or that doesn't continue the one before
 */
export function* checkedBodies(log: LogReader, first: number, known: ChainLink | null): Generator<Buffer> {
  const chain = new LogChain();
  let held: Buffer | null = null;
  for (const body of log.bodies(first)) {
    const { batch } = chain.next(body);
    if (batch === known?.batch && chain.hash !== known.hash) {
      throw new BrokenLog(`batch ${batch} of the log was changed: SHA-256 mismatch`);
    }
    if (held !== null) yield held;
    held = body;
  }
  if (held !== null) yield held;
}
