/** `npm run crash -- --standby`: each disturbance of a pair once, then by chance. */
import { expect, test } from "vitest";
import { hashesOf, journalBodies, NO_NATS, Nodes } from "../replication/streamed-log.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { DISTURBANCES, describePair, runPair } from "./pair-loop.ts";

const ROUNDS = DISTURBANCES.length + EFFORT;

test.skipIf(NO_NATS)(
  "a pair keeps every answer through takeovers, switches, cuts, dead nodes and full disks",
  {
    timeout: 60_000 * ROUNDS,
  },
  async () => {
    const report = await runPair({
      random: Random.printed("pair"),
      rounds: ROUNDS,
      onEnd: async (cluster, dataDir) => {
        const stream = await Nodes.connect(cluster);
        expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(dataDir)));
      },
    });
    console.log(describePair(report));
    expect(report.answered).toBeGreaterThan(20 * ROUNDS);
    expect(report.took.size + report.skipped.length).toBe(8);
  },
);
