/** Where two logs went on separately. */
import { expect, test } from "vitest";
import { lastEqual } from "../../engine/replication/positions.ts";
import { Random } from "../support/random.ts";

const ROUNDS = 500;

test("the last equal batch is found wherever it is, with few reads", async () => {
  const random = Random.printed("positions");
  for (let round = 0; round < ROUNDS; round++) {
    const first = random.integer(1, 1_000);
    const last = first + random.integer(0, 5_000);
    const equal = random.integer(first, last);
    let reads = 0;
    const found = await lastEqual(first, last, async (batch) => {
      expect(batch).toBeGreaterThan(first);
      expect(batch).toBeLessThanOrEqual(last);
      reads++;
      return batch <= equal;
    });
    expect(found).toBe(equal);
    expect(reads).toBeLessThanOrEqual(Math.ceil(Math.log2(last - first + 1)));
  }
});
