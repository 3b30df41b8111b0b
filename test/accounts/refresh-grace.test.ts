/** The memory of refresh tokens that were just spent: what it finds, for how long, and how much it holds. */
import { afterEach, expect, test, vi } from "vitest";
import { DEFAULT_TERMS } from "../../engine/projection/user-terms.ts";
import { Session } from "../../server/accounts/credentials.ts";
import { MAX_RECENT_ROTATIONS, REFRESH_LEEWAY_MS } from "../../server/accounts/limits.ts";
import { RefreshGrace, type Rotation } from "../../server/accounts/refresh-grace.ts";
import { hashToken } from "../../server/accounts/token-hash.ts";

const NOW = 1_800_000_000_000;

afterEach(() => {
  vi.useRealTimers();
});

function sessionOf(id: number): Session {
  const user = {
    ...{ id: 1, email: "a@example.com", role: "user", kycTier: 0, createdAt: NOW, passwordHash: null, phone: null },
    ...{ emailVerifiedAt: NOW, phoneVerifiedAt: null, suspendedAt: null, ...DEFAULT_TERMS },
  };
  const row = {
    ...{
      id,
      userId: 1,
      grantId: null,
      method: "password",
      scopes: "",
      family: `family ${id}`,
      refreshHash: hashToken("now"),
    },
    ...{ userAgent: null, address: null, amr: null, createdAt: NOW, lastUsedAt: NOW, expiresAt: NOW + 1_000_000 },
  };
  return new Session(row, user, null);
}

function rotationOf(spent: string): Rotation {
  return { spentHash: hashToken(spent), refreshToken: `after ${spent}`, durable: Promise.resolve(), at: NOW };
}

test("the last spent secret of a session and the one that followed are known for ten seconds", () => {
  const leeway = new RefreshGrace();
  const [session, other] = [sessionOf(1), sessionOf(2)];
  const rotation = rotationOf("one");
  leeway.note(session, rotation);
  for (const secret of ["one", "now"]) {
    for (const now of [NOW, NOW + REFRESH_LEEWAY_MS - 1]) expect(leeway.find(session, secret, now)).toBe(rotation);
    expect(leeway.find(session, secret, NOW + REFRESH_LEEWAY_MS)).toBeNull();
  }
  expect(leeway.find(session, "two", NOW)).toBeNull();
  expect(leeway.find(other, "one", NOW)).toBeNull();
  leeway.note(session, rotationOf("two"));
  expect(leeway.find(session, "one", NOW)).toBeNull();
  expect(leeway.find(session, "two", NOW)?.refreshToken).toBe("after two");
  leeway.forget(session);
  expect(leeway.find(session, "two", NOW)).toBeNull();
});

test("it is forgotten then, and not when the one before it would have been", () => {
  vi.useFakeTimers();
  const leeway = new RefreshGrace();
  const session = sessionOf(1);
  leeway.note(session, rotationOf("one"));
  vi.advanceTimersByTime(REFRESH_LEEWAY_MS - 1);
  expect(leeway.find(session, "one", NOW)).not.toBeNull();
  leeway.note(session, rotationOf("two"));
  vi.advanceTimersByTime(REFRESH_LEEWAY_MS - 1);
  expect(leeway.find(session, "two", NOW)).not.toBeNull();
  vi.advanceTimersByTime(1);
  expect(leeway.find(session, "two", NOW)).toBeNull();
});

test("of too many the oldest are forgotten", () => {
  vi.useFakeTimers();
  const leeway = new RefreshGrace();
  const sessions = Array.from({ length: MAX_RECENT_ROTATIONS + 2 }, (_, i) => sessionOf(i + 1));
  const rotation = rotationOf("one");
  for (const session of sessions) leeway.note(session, rotation);
  // One that comes again takes its own place.
  leeway.note(sessions.at(-1)!, rotation);
  const known = (at: number): boolean => leeway.find(sessions.at(at)!, "one", NOW) !== null;
  expect([known(0), known(1), known(2), known(3), known(-1)]).toEqual([false, false, true, true, true]);
});
