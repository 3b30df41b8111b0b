/** Known addresses of accounts: kept for 30 days, with a bound per account and a bound on accounts. */
import { expect, test } from "vitest";
import { KnownAddresses } from "../../server/accounts/known-addresses.ts";
import {
  KNOWN_ADDRESS_MS,
  MAX_KNOWN_ADDRESS_USERS,
  MAX_KNOWN_ADDRESSES_PER_USER,
} from "../../server/accounts/limits.ts";

const NOON = 1_760_000_000_000;
const HOME = "192.0.2.1";

test("an address is known to its account for 30 days after the last sign-in, and to nobody else", () => {
  const known = new KnownAddresses();
  known.note(1, HOME, NOON);
  known.note(2, "", NOON);
  for (const [userId, client] of [
    [2, HOME],
    [2, ""],
    [1, "192.0.2.2"],
    [65, HOME],
  ] as const) {
    expect(known.has(userId, client, NOON)).toBe(false);
  }
  expect(known.has(1, HOME, NOON + KNOWN_ADDRESS_MS - 1)).toBe(true);
  expect(known.has(1, HOME, NOON + KNOWN_ADDRESS_MS)).toBe(false);
  known.note(1, HOME, NOON + 1_000);
  expect(known.has(1, HOME, NOON + KNOWN_ADDRESS_MS)).toBe(true);
  known.forgetExpired(NOON + KNOWN_ADDRESS_MS);
  expect(known.has(1, HOME, NOON)).toBe(true);
  known.forgetExpired(NOON + KNOWN_ADDRESS_MS + 1_000);
  expect(known.has(1, HOME, NOON)).toBe(false);
  known.note(1, HOME, NOON);
  known.forget(1);
  expect(known.has(1, HOME, NOON)).toBe(false);
});

test("of one account the last few addresses are known", () => {
  const known = new KnownAddresses();
  const address = (n: number): string => `192.0.2.${n}`;
  for (let n = 0; n < MAX_KNOWN_ADDRESSES_PER_USER; n++) known.note(1, address(n), NOON + n);
  known.note(1, address(0), NOON + 100);
  known.note(1, address(200), NOON + 101);
  // The least recently used address was evicted.
  expect(known.has(1, address(1), NOON)).toBe(false);
  for (const n of [0, 2, MAX_KNOWN_ADDRESSES_PER_USER - 1, 200]) expect([n, known.has(1, address(n), NOON)]).toEqual([n, true]); // biome-ignore format: one line
});

test("of more accounts than the bound those that signed in last are known", () => {
  const known = new KnownAddresses();
  const last = MAX_KNOWN_ADDRESS_USERS + 1_000;
  for (let userId = 1; userId <= last; userId++) {
    known.note(userId, HOME, NOON + userId);
    // A user who keeps signing in is not evicted.
    if (userId % 1_000 === 0) known.note(7, HOME, NOON + userId);
  }
  expect([1, 6, 7, 8, 2_000, last].map((userId) => known.has(userId, HOME, NOON))).toEqual([false, false, true, false, true, true]); // biome-ignore format: one line
});
