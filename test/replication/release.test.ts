/** Up to which batch the log may be shown, by what the stream and the standby have. */
import { describe, expect, test } from "vitest";
import { type AckPolicy, Release } from "../../engine/replication/release.ts";
import { Random } from "../support/random.ts";

const LOST_MS = 1_000;
const release = (policy: AckPolicy, lostMs: number | null = LOST_MS): Release =>
  new Release({ policy, lostMs, batch: 10 });

describe("the release", () => {
  test.each(["stream", "none"] as const)("with %s is what the stream has", (policy) => {
    const gate = release(policy);
    gate.ship(12, 0);
    expect([gate.batch, gate.alone, gate.check(1e9)]).toEqual([12, false, false]);
  });

  test("goes with the stream alone until a standby has what it has, then with both", () => {
    const gate = release("standby");
    expect([gate.batch, gate.alone]).toEqual([10, true]);
    gate.ship(11, 0);
    gate.ship(12, 0);
    expect(gate.batch).toBe(12);
    gate.copy(10, 1);
    expect(gate.alone).toBe(true);
    gate.copy(11, 2);
    // Nothing that was released is taken back.
    expect([gate.alone, gate.batch]).toEqual([false, 12]);
    gate.ship(13, 3);
    expect(gate.batch).toBe(12);
    gate.copy(14, 4);
    expect(gate.batch).toBe(13);
    gate.ship(14, 5);
    expect([gate.batch, gate.standby]).toEqual([14, 14]);
  });

  test("leaves a standby behind that lacks something for too long, and takes it back once it has all", () => {
    const gate = release("standby");
    gate.copy(10, 0);
    gate.ship(11, 100);
    gate.ship(12, 900);
    expect([gate.check(100 + LOST_MS - 1), gate.batch]).toEqual([false, 10]);
    expect([gate.check(100 + LOST_MS), gate.batch, gate.alone]).toEqual([true, 12, true]);
    expect(gate.check(1e9)).toBe(false);
    gate.copy(12, 1e9);
    expect(gate.alone).toBe(false);
    // A quiet hour is no loss.
    expect(gate.check(2e9)).toBe(false);
  });

  test("lets a standby go that stops in order, and takes it back, but not where it must wait", () => {
    const release = new Release({ policy: "standby", lostMs: 10_000, batch: 5 });
    release.copy(5, 0);
    release.ship(6, 0);
    expect([release.batch, release.leave(), release.leave(), release.batch]).toEqual([5, true, false, 6]);
    release.copy(6, 1);
    expect(release.alone).toBe(false);
    expect([release.leave(), release.alone]).toEqual([true, true]);
    // Another one that has no more than the one that left.
    release.copy(6, 1);
    release.ship(7, 2);
    expect([release.alone, release.batch]).toEqual([false, 6]);
    const waiting = new Release({ policy: "standby", lostMs: null, batch: 5 });
    waiting.ship(6, 0);
    expect([waiting.leave(), waiting.batch]).toEqual([false, 5]);
  });

  test("waits for ever where it must", () => {
    const gate = release("standby", null);
    gate.ship(11, 0);
    expect([gate.alone, gate.check(1e9), gate.batch]).toEqual([false, false, 10]);
    gate.copy(11, 1e9);
    expect(gate.batch).toBe(11);
  });

  test("never passes the stream, nor a standby that counts, and never falls", () => {
    const random = Random.printed("release");
    for (let run = 0; run < 200; run++) {
      const gate = release("standby", random.chance(0.5) ? LOST_MS : null);
      let [shipped, copied, now, before] = [10, 0, 0, gate.batch];
      for (let step = 0; step < 50; step++) {
        now += random.integer(0, 400);
        const wasAlone = gate.alone;
        if (random.chance(0.4)) gate.ship((shipped += random.integer(1, 3)), now);
        else if (random.chance(0.6)) gate.copy((copied = Math.max(copied, shipped - random.integer(0, 3))), now);
        else gate.check(now);
        const { batch } = gate;
        expect(batch).toBeLessThanOrEqual(shipped);
        expect(batch).toBeGreaterThanOrEqual(before);
        if (!gate.alone && !wasAlone) expect(batch).toBeLessThanOrEqual(Math.max(before, copied));
        before = batch;
      }
    }
  });
});
