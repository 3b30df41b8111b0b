/** The admission of writes: what is in flight together, bounds, deletions, restarts and ids. */
import { expect, test } from "vitest";
import { MarketStatus } from "../../engine/constants.ts";
import { MAX_MONEY_MICRO, MAX_USERS, SEED_REFERENCE } from "../../engine/limits.ts";
import { HOUSE } from "../../engine/log/writes.ts";
import { refusedOutcomeId } from "../../engine/projection/outcome-ids.ts";
import { UNVERIFIED_ACCOUNT_MS } from "../../server/accounts/limits.ts";
import { UnverifiedAccounts } from "../../server/accounts/unverified-accounts.ts";
import { UserIds } from "../../server/accounts/user-ids.ts";
import { ErrorKind, FAILED, outcomeUnknown, overloaded } from "../../server/errors.ts";
import type { RequestedWrite } from "../../server/writes/types.ts";
import { RIG_NOW, WriteRig } from "./write-rig.ts";

const at = RIG_NOW;
const CONFLICT = { kind: { code: 40900 } };

const user = (email: string, isVerified = true): RequestedWrite => {
  const emailVerifiedAt = isVerified ? at : null;
  const rest = { role: "user", kycTier: 0, passwordHash: null, emailVerifiedAt, phoneVerifiedAt: null, at };
  return { kind: "createUser", email, ...rest };
};
const deposit = (userId: number, amount: number, reference: string): RequestedWrite => {
  return { kind: "deposit", userId, amount, reference, at };
};
const fromHouse = (amount: number, reference: string): RequestedWrite => {
  return { kind: "withdrawFromHouse", amount, reference, at };
};
const market = (slug: string, outcomes: number, proposedBy: number | null = null): RequestedWrite => {
  const texts = { question: "?", description: null, category: null, eventId: null, opensAt: null, closesAt: null };
  const names = Array.from({ length: outcomes }, (_, i) => `outcome ${i}`);
  return { kind: "createMarket", slug, outcomes: names, proposedBy, ...texts, at };
};
const audit = (action: string) => {
  const rest = { actor: "admin", details: null, requestId: null, address: null, subject: null };
  return { at, action, userId: "subject", write: 0, ...rest } as const;
};

/** Writes each by itself in one turn, and commits. */
async function writeAll(rig: WriteRig, ...writes: RequestedWrite[]) {
  const results = Promise.allSettled(writes.map((write) => rig.writer.write([write], [audit(write.kind)])));
  await rig.commit();
  return (await results).map((result) => (result.status === "fulfilled" ? result.value[0] : result.reason));
}

test("the second of two equal keys in one turn waits for the first one's commit, and finds its row", async () => {
  const rig = new WriteRig();
  const event = { kind: "createEvent", slug: "e", title: "E", category: null, closesAt: null, at } as const;
  const pairs = [() => user("a@x"), () => ({ ...event }), () => market("m", 2)];
  const written = pairs.flatMap((write) => [rig.writer.write([write()], [audit("x")]), rig.writer.write([write()])]);
  expect(rig.posted.map(({ writes }) => writes[0]?.kind)).toEqual(["createUser", "createEvent", "createMarket"]);
  await rig.commit();
  const results = (await Promise.all(written)).map(([result]) => result);
  expect(results).toEqual([
    ...[1, 1].map((id, i) => ({ id, created: i === 0 })),
    ...[1, 1].map((id, i) => ({ id, created: i === 0 })),
    ...[1, 1].map((id, i) => ({ id, created: i === 0, firstOutcomeId: 1 })),
  ]);
  expect(rig.writer.pendingCount).toBe(0);
});

test("a write of another key goes ahead of one that waits", async () => {
  const rig = new WriteRig();
  const written = [user("a@x"), user("a@x"), user("b@x")].map((write) => rig.writer.write([write]));
  expect(rig.posted.map(({ writes }) => writes)).toMatchObject([[{ email: "a@x", id: 1 }], [{ email: "b@x", id: 2 }]]);
  await rig.commit();
  await Promise.all(written);
});

test("a token of a seed counts once, also where it was revoked and the exchange started again", async () => {
  const token = { name: "t", tokenHash: "h", prefix: "p", scopes: [], allowedAddresses: null, expiresAt: null, at };
  const create = (): RequestedWrite => ({ kind: "createToken", userId: 1, ...token });
  let rig = new WriteRig();
  await writeAll(rig, user("a@x"));
  expect(await writeAll(rig, create(), create())).toMatchObject([{ created: true }, { id: 1, created: false }]);
  const revoke = { kind: "update", table: "personal_access_tokens", id: 1, set: { revokedAt: at } } as const;
  await writeAll(rig, revoke);
  rig = rig.restart();
  expect(await writeAll(rig, create())).toEqual([{ id: 1, created: false }]);
});

test("a reference counts once, in any case: in one turn, later, and after a restart", async () => {
  let rig = new WriteRig();
  await writeAll(rig, user("a@x"), user("b@x"));
  const both = [deposit(1, 5, "r"), deposit(1, 5, "R"), deposit(1, 6, "R"), deposit(2, 5, "r"), fromHouse(5, "R")];
  const refused = { ...CONFLICT, message: "reference: deposit 1 of 5 micro-USDC to user 1 has it" };
  const expected = [{ id: 1, created: true }, { id: 1, created: false }, refused, refused, refused];
  expect(await writeAll(rig, ...both)).toMatchObject(expected);
  rig = rig.restart();
  expect(await writeAll(rig, ...both)).toMatchObject([{ id: 1, created: false }, ...expected.slice(1)]);
  expect(rig.exchange.ledger.balance(1)).toBe(5);
  const seeded = `${SEED_REFERENCE}a@x`;
  expect(await writeAll(rig, deposit(1, 5, seeded), deposit(1, 7, seeded))).toEqual([
    { id: 2, created: true },
    { id: 2, created: false },
  ]);
});

test("two withdrawals can't be paid with one reference", async () => {
  const rig = new WriteRig();
  await writeAll(rig, user("a@x"));
  await writeAll(rig, deposit(1, 10, "r"));
  const request = (): RequestedWrite => {
    rig.exchange.cash.hold(1, 5);
    const row = { userId: 1, amount: 5, address: "0x0", status: "pending", createdAt: at };
    return { kind: "insert", table: "withdrawals", row };
  };
  expect(await writeAll(rig, request(), request())).toMatchObject([{ id: 1 }, { id: 2 }]);
  const pay = (id: number, reference = "paid"): RequestedWrite => {
    return { kind: "payWithdrawal", id, userId: 1, amount: 5, reference, note: null, at };
  };
  const taken = { ...CONFLICT, message: "reference: withdrawal 1 has it" };
  expect(await writeAll(rig, pay(1), pay(2, "PAID"))).toMatchObject([{ id: 1, created: true }, taken]);
  expect(await writeAll(rig, pay(2))).toMatchObject([taken]);
});

test("reversals in one turn take no more than the deposit, and no more than is available", async () => {
  const rig = new WriteRig();
  await writeAll(rig, user("a@x"));
  const { ledger } = rig.exchange;
  await writeAll(rig, deposit(1, 10, "a"), deposit(1, 3, "b"), deposit(HOUSE, 5, "c"));
  const reverse = (depositId: number, amount: number, reference: string, userId = 1): RequestedWrite => {
    return { kind: "reverseDeposit", userId, depositId, amount, reference, at };
  };
  const left = (amount: number) => ({
    ...CONFLICT,
    message: `amount: of deposit 1, ${amount} micro-USDC can still be reversed`,
  });
  expect(
    await writeAll(rig, reverse(1, 4, "r"), reverse(1, 7, "s"), reverse(1, 6, "t"), reverse(1, 1, "u")),
  ).toMatchObject([{ id: 4, created: true }, left(6), { id: 5, created: true }, left(0)]);
  expect([ledger.balance(1), ledger.held(1)]).toEqual([3, 0]);
  // What is held can't be taken; what is taken is held until it is committed.
  ledger.hold(1, 1);
  const poor = { kind: ErrorKind.insufficientBalance, message: "amount: user 1 has 0 micro-USDC available" };
  expect(await writeAll(rig, reverse(2, 2, "v"), reverse(2, 1, "w"))).toMatchObject([{ id: 6, created: true }, poor]);
  const repeats = [reverse(1, 4, "R"), reverse(1, 3, "R"), reverse(2, 4, "r"), deposit(1, 4, "r"), fromHouse(1, "r")];
  const other = { ...CONFLICT, message: "reference: the reversal of deposit 1, 4, of 4 micro-USDC from user 1 has it" };
  const refused = [{ id: 4, created: false }, other, other, other, other];
  expect(await writeAll(rig, ...repeats)).toMatchObject(refused);
  const poorHouse = { kind: ErrorKind.insufficientBalance, message: "amount: the house has 1 micro-USDC available" };
  expect(await writeAll(rig, reverse(3, 4, "x", HOUSE), reverse(3, 1, "y", HOUSE))).toMatchObject([
    { id: 7, created: true },
    { id: 8, created: true },
  ]);
  await writeAll(rig, deposit(HOUSE, 5, "d"));
  await writeAll(rig, fromHouse(4, "e"));
  expect(await writeAll(rig, reverse(9, 2, "z", HOUSE))).toMatchObject([poorHouse]);
  expect(ledger.totals).toEqual({ deposits: 6, withdrawals: 4, usersTotal: 1, collateral: 0, house: 1 });
  const columns = "deposits, withdrawals, users_total AS usersTotal, collateral, house";
  expect(rig.rows(`SELECT ${columns} FROM totals`)).toEqual([ledger.totals]);
  expect(await writeAll(rig.restart(), ...repeats)).toMatchObject(refused);
});

test("bounds count what is in flight", async () => {
  const rig = new WriteRig();
  await writeAll(rig, user("a@x"));
  const most = { ...CONFLICT, message: "the total deposit limit is reached" };
  const [first, second, rest] = [deposit(1, 1, "a"), deposit(HOUSE, MAX_MONEY_MICRO, "b"), deposit(HOUSE, 10, "c")];
  expect(await writeAll(rig, first, second, rest)).toMatchObject([{ created: true }, most, { created: true }]);
  const poor = { ...CONFLICT, message: "amount: exceeds the house balance" };
  expect(await writeAll(rig, fromHouse(6, "d"), fromHouse(5, "e"), fromHouse(4, "f"))).toMatchObject([
    { created: true },
    poor,
    { created: true },
  ]);
  const { totals } = rig.exchange.ledger;
  expect(totals).toEqual({ deposits: 11, withdrawals: 10, usersTotal: 1, collateral: 0, house: 0 });
  const columns = "deposits, withdrawals, users_total AS usersTotal, collateral, house";
  expect(rig.rows(`SELECT ${columns} FROM totals`)).toEqual([totals]);
});

test("an account isn't deleted while a deposit to it is in flight, nor credited once its deletion is", async () => {
  const rig = new WriteRig();
  const later = at + UNVERIFIED_ACCOUNT_MS;
  const unverified = new UnverifiedAccounts(rig.accounts, rig.writer);
  await writeAll(rig, user("a@x", false), user("b@x", false));
  const credited = rig.writer.write([deposit(1, 5, "r")]);
  // The lookup of the reference resolves; the deposit is posted.
  await new Promise((resolve) => setImmediate(resolve));
  const deleted = unverified.deleteOverdue(later);
  const late = rig.writer.write([deposit(2, 5, "s")]);
  const refused = expect(late).rejects.toMatchObject({ kind: { code: 4040 } });
  // Registered again while the old account's deletion is in flight.
  const again = rig.writer.write([user("b@x", false)]);
  await rig.commit();
  expect(await deleted).toBe(1);
  await refused;
  expect([(await credited)[0]?.created, await again]).toEqual([true, [{ id: 3, created: true }]]);
  expect(await unverified.deleteOverdue(later - 1)).toBe(0);
  expect(rig.rows("SELECT id, email FROM users ORDER BY id")).toEqual([
    { id: 1, email: "a@x" },
    { id: 3, email: "b@x" },
  ]);
  expect(rig.rows("SELECT id FROM free_user_ids")).toEqual([{ id: 2 }]);
});

test("ids of users: fresh ones first, then those of deleted accounts, the lowest first", () => {
  const ids = new UserIds({ user: MAX_USERS - 1, freeUsers: [9, 4] });
  ids.free(6);
  expect(Array.from({ length: 5 }, () => ids.next())).toEqual([MAX_USERS, 4, 6, 9, null]);
});

test("ids continue after a restart", async () => {
  let rig = new WriteRig();
  const row = () => ({ userId: 1, purpose: "verify_email", createdAt: at, expiresAt: at });
  const link = (tokenHash: string): RequestedWrite => {
    return { kind: "insert", table: "email_tokens", row: { ...row(), tokenHash } };
  };
  await writeAll(rig, user("a@x"), market("m", 3), link("a"), link("b"), deposit(HOUSE, 5, "r"));
  rig = rig.restart();
  expect(await writeAll(rig, user("b@x"), market("n", 2), link("c"), deposit(1, 5, "s"))).toEqual([
    { id: 2, created: true },
    { id: 2, created: true, firstOutcomeId: 4 },
    { id: 3, created: true },
    { id: 2, created: true },
  ]);
});

test("a refused proposal frees its outcomes' ids for the next market, in the same turn", async () => {
  const rig = new WriteRig();
  await writeAll(rig, user("a@x"), market("m", 3, 1), market("n", 2));
  const refuse: RequestedWrite = { kind: "refuseMarket", marketId: 1, note: null, at };
  const [, made] = await writeAll(rig, refuse, market("o", 3, 1));
  expect(made).toEqual({ id: 3, created: true, firstOutcomeId: 1 });
  const { registry } = rig.exchange;
  expect([registry.marketOf(1).slug, registry.market(1).status]).toEqual(["o", MarketStatus.rejected]);
  const ids = "SELECT min(id) AS first, count(*) AS count FROM outcomes WHERE market_id =";
  expect(rig.rows(`${ids} 1`)).toEqual([{ first: refusedOutcomeId(1), count: 3 }]);
  expect(rig.rows(`${ids} 3`)).toEqual([{ first: 1, count: 3 }]);
  const again = rig.restart();
  expect(await writeAll(again, market("p", 2))).toMatchObject([{ id: 4, firstOutcomeId: 6 }]);
});

test("audit lines name the rows that their writes create; a write that changes nothing leaves none", async () => {
  const rig = new WriteRig();
  await writeAll(rig, user("a@x"), user("a@x"));
  await writeAll(rig, deposit(1, 5, "r"), deposit(1, 5, "r"), deposit(HOUSE, 5, "s"));
  expect(rig.rows("SELECT action, subject FROM audit_log ORDER BY id")).toEqual([
    { action: "createUser", subject: 1 },
    { action: "deposit", subject: 1 },
    { action: "deposit", subject: 2 },
  ]);
});

test("what waits while the log fails was not done, what is posted may have been", async () => {
  const rig = new WriteRig();
  const written = [user("a@x"), user("a@x"), deposit(HOUSE, 5, "r")].map((write) => rig.writer.write([write]));
  rig.exchange.gate.fail(overloaded(FAILED));
  rig.writer.failPending(outcomeUnknown(FAILED));
  const errors = await Promise.allSettled(written);
  expect(errors).toMatchObject([50000, 50300, 50300].map((code) => ({ reason: { kind: { code } } })));
  expect(rig.writer.pendingCount).toBe(0);
});
