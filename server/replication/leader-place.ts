/**
 * Where the stream's leader is: publishes stop for seconds when it dies, so it shouldn't die together with a box. The
 * active asks it to step down while its node is the one that a box uses and another node is nobody's.
 */
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../engine/util/clock.ts";
import type { Box } from "./box.ts";
import { API_TIMEOUT_MS, LEADER_CHECK_MS, LEADER_SETTLES_MS, MAX_STEP_DOWNS, STEP_DOWNS_MS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";

export class LeaderPlace {
  private readonly box: Box;
  private readonly status: ReplicationStatus;
  private readonly say: Say;
  /** When leaders were asked to step down within the last STEP_DOWNS_MS, ms. */
  private stepDowns: readonly number[] = [];

  constructor(box: Box, status: ReplicationStatus, say: Say) {
    this.box = box;
    this.status = status;
    this.say = say;
  }

  /** Looks after each election, and every few seconds, for as long as the thread runs. */
  async run(): Promise<never> {
    const { link, stream } = this.box;
    let elected = new AbortController();
    // A user that may not read it notices a new leader later.
    link.nc.subscribe(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${stream.names.stream}`, {
      callback: () => elected.abort(),
    });
    for (;;) {
      // Nodes that don't respond are the stream watch's.
      await this.check().catch(() => {});
      await delay(LEADER_CHECK_MS, undefined, { ref: false, signal: elected.signal }).catch(() => {});
      if (!elected.signal.aborted) continue;
      // The others find their new leader.
      await delay(LEADER_SETTLES_MS, undefined, { ref: false });
      elected = new AbortController();
    }
  }

  private async check(): Promise<void> {
    const { link, stream, beats } = this.box;
    const place = await stream.place();
    if (place === null) return;
    this.status.set("leaderIsLocal", place.leader === link.node ? 1 : 0);
    const used = new Set([link.node, ...beats.others().map(({ node }) => node)]);
    const isFree = place.others.some((node) => !used.has(node));
    // Beside the standby is better than here, where there is nothing else.
    if (!(isFree ? used.has(place.leader) : place.leader === link.node)) return;
    const now = systemClock.elapsed();
    this.stepDowns = this.stepDowns.filter((at) => now - at < STEP_DOWNS_MS);
    // Each is a pause. A node that comes and goes doesn't make the others elect again and again.
    if (place.others.length === 0 || this.stepDowns.length >= MAX_STEP_DOWNS) return;
    this.stepDowns = [...this.stepDowns, now];
    this.say("info", `the node ${place.leader}, which leads the stream, is used by a box: asking for another leader`);
    await link.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream.names.stream}`, "", { timeout: API_TIMEOUT_MS });
  }
}
