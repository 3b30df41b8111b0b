/** The cache of recently spent refresh tokens: lookups, retention and capacity. */
import { afterEach, expect, test, vi } from "vitest";
import { DEFAULT_TERMS } from "../../engine/log/user-terms.ts";
import { Session } from "../../server/accounts/credentials.ts";
import { MAX_RECENT_ROTATIONS, REFRESH_GRACE_MS } from "../../server/accounts/limits.ts";
import { RefreshGrace, type Rotation } from "../../server/accounts/refresh-grace.ts";
import { hashToken } from "../../server/accounts/token-hash.ts";

const NOW = 1_800_000_000_000;

afterEach(() => {
  vi.useRealTimers();
});

function sessionOf(id: number): Session {
  const user = {
    ...{ id: 1, email: "a@example.com", role: "user", kycTier: 0, createdAt: NOW, passwordHash: null, phone: null },
    ...{
      emailVerifiedAt: NOW,
      phoneVerifiedAt: null,
      suspendedAt: null,
      watchlist: null,
      ...DEFAULT_TERMS,
      ...{ notifications: null, priceAlerts: null },
    },
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
  const grace = new RefreshGrace();
  const [session, other] = [sessionOf(1), sessionOf(2)];
  const rotation = rotationOf("one");
  grace.add(session, rotation);
  for (const secret of ["one", "now"]) {
    for (const now of [NOW, NOW + REFRESH_GRACE_MS - 1]) expect(grace.find(session, secret, now)).toBe(rotation);
    expect(grace.find(session, secret, NOW + REFRESH_GRACE_MS)).toBeNull();
  }
  expect(grace.find(session, "two", NOW)).toBeNull();
  expect(grace.find(other, "one", NOW)).toBeNull();
  grace.add(session, rotationOf("two"));
  expect(grace.find(session, "one", NOW)).toBeNull();
  expect(grace.find(session, "two", NOW)?.refreshToken).toBe("after two");
  grace.forget(session);
  expect(grace.find(session, "two", NOW)).toBeNull();
});

test("it is forgotten then, and not when the one before it would have been", () => {
  vi.useFakeTimers();
  const grace = new RefreshGrace();
  const session = sessionOf(1);
  grace.add(session, rotationOf("one"));
  vi.advanceTimersByTime(REFRESH_GRACE_MS - 1);
  expect(grace.find(session, "one", NOW)).not.toBeNull();
  grace.add(session, rotationOf("two"));
  vi.advanceTimersByTime(REFRESH_GRACE_MS - 1);
  expect(grace.find(session, "two", NOW)).not.toBeNull();
  vi.advanceTimersByTime(1);
  expect(grace.find(session, "two", NOW)).toBeNull();
});

test("of too many the oldest are forgotten", () => {
  vi.useFakeTimers();
  const grace = new RefreshGrace();
  const sessions = Array.from({ length: MAX_RECENT_ROTATIONS + 2 }, (_, i) => sessionOf(i + 1));
  const rotation = rotationOf("one");
  for (const session of sessions) grace.add(session, rotation);
  // A repeated session replaces its own entry.
  grace.add(sessions.at(-1)!, rotation);
  const known = (at: number): boolean => grace.find(sessions.at(at)!, "one", NOW) !== null;
  expect([known(0), known(1), known(2), known(3), known(-1)]).toEqual([false, false, true, true, true]);
});
