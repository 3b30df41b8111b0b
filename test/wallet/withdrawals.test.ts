/**
 * Withdrawals from the request to their end: what is held and when it is released, who may decide, that exactly one of two
 * decisions wins, and that a killed server knows at its next start what it had confirmed. Here one operator decides; two are
 * withdrawal-approvals.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import { MAX_NOTE_LENGTH } from "../../server/http/limits.ts";
import { MAX_PENDING_WITHDRAWALS } from "../../server/wallet/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import type { Answer, BalanceJson, TransactionJson } from "../support/client.ts";
import { messagesTo } from "../support/identity.ts";
import {
  ADDRESS,
  type AdminWithdrawalJson,
  ask,
  auditOf,
  cancel,
  expectAddsUp,
  pay,
  refuse,
  type WithdrawalJson,
  type WithdrawalWithTrailJson,
  withdraw,
} from "../support/money.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { USDC } from "../support/world.ts";
import { balanceOf, DEPOSIT, type Person, WithdrawalDesk } from "./withdrawal-desk.ts";

let desk: WithdrawalDesk;
beforeAll(async () => {
  desk = await WithdrawalDesk.start();
});
afterAll(() => desk.stop());

test("a request holds the amount at once, updates the balance, and sends a mail", async () => {
  const user = await desk.person();
  const socket = await desk.world.socket(user);
  const answer = await ask(user, 30 * USDC + 1, ADDRESS);
  const { data } = answer;
  expect(answer.status).toBe(201);
  expect(data).toEqual({
    ...{ id: data.id, amount: 30 * USDC + 1, address: ADDRESS, status: "pending", reference: null, note: null },
    ...{ created_at: data.created_at, decided_at: null },
  });
  expect(await user.balance()).toEqual(balanceOf(30 * USDC + 1));
  await socket.frame<BalanceJson>("balance.updated", ({ held }) => held === 30 * USDC + 1);
  expect(await user.get(`/wallet/withdrawals/${data.id}`)).toEqual(data);
  expect(await user.get("/wallet/withdrawals")).toEqual({ items: [data], next_cursor: null });
  expect(auditOf(desk.world.server.dataDir, answer)).toEqual([
    {
      ...{ action: "withdrawal.request", actor: `user ${user.userId}`, user_id: user.userId, subject: data.id },
      details: { amount: 30 * USDC + 1, address: ADDRESS },
    },
  ]);
  await eventually(async () => {
    const mails = messagesTo(desk.world.server, user.email).filter((text) => text.includes("was requested"));
    expect(mails).toHaveLength(1);
    expect(mails[0]).toContain("30.000001 USDC");
    expect(mails[0]).toContain(`\n${ADDRESS}\n`);
  });
  // The held amount buys nothing, and can't be withdrawn twice.
  await expectRefused(ask(user, 70 * USDC), 422, 42201, /available/);
  const order = terms(desk.market, 0, BUY, 9_999, 71);
  await expectRefused(user.request("POST", "/orders", { body: order }), 422, 42201);
  await socket.close();
});

test("a cancel releases the amount, once", async () => {
  const user = await desk.person();
  const { id, ...made } = await withdraw(user, DEPOSIT);
  expect(await user.balance()).toEqual(balanceOf(DEPOSIT));
  const answer = await cancel(user, id);
  expect(answer.data).toEqual({ ...made, id, status: "canceled", decided_at: answer.data.decided_at });
  expect(answer.data.decided_at).toBeGreaterThanOrEqual(made.created_at);
  expect(await user.balance()).toEqual(balanceOf(0));
  expect(desk.actions(answer)).toEqual(["withdrawal.cancel"]);
  await expectRefused(cancel(user, id), 409, 40900, /is canceled/);
  await expectRefused(pay(desk.chief, id), 409, 40900, /is canceled/);
  await expectRefused(refuse(desk.chief, id), 409, 40900, /is canceled/);
  expect(await user.balance()).toEqual(balanceOf(0));
});

test("a payment takes the amount; a repeat with its reference returns the first response", async () => {
  const user = await desk.person();
  const socket = await desk.world.socket(user);
  const before = await desk.world.anonymous().solvency();
  const made = await withdraw(user, 40 * USDC);
  const answer = await pay(desk.chief, made.id, { reference: "tx-1", note: "Überwiesen" });
  const paid = { ...made, status: "paid", reference: "tx-1", note: "Überwiesen" };
  const decided_at = answer.data.withdrawal.decided_at;
  expect(answer.data).toEqual({
    withdrawal: { ...paid, decided_at, user_id: user.userId, email: user.email },
    approval: null,
  });
  expect(await user.get(`/wallet/withdrawals/${made.id}`)).toEqual({ ...paid, decided_at });
  const { trail, ...shown } = await desk.chief.get<WithdrawalWithTrailJson>(`/admin/withdrawals/${made.id}`);
  expect(shown).toEqual(answer.data.withdrawal);
  expect(trail.deposits).toMatchObject([{ amount: DEPOSIT, credited_by: "seed", approved_by: null }]);
  expect(await user.balance()).toEqual(balanceOf(0, 60 * USDC));
  await socket.frame<BalanceJson>("balance.updated", ({ total, held }) => total === 60 * USDC && held === 0);
  const [last] = await user.all<TransactionJson>("/wallet/transactions?type=withdrawal");
  expect(last).toMatchObject({ type: "withdrawal", amount: -40 * USDC, balance_after: 60 * USDC });
  await expectAddsUp(user);
  expect(auditOf(desk.world.server.dataDir, answer)).toEqual([
    {
      ...{ action: "withdrawal.pay", actor: desk.chiefName, user_id: user.userId, subject: made.id },
      details: {
        ...{ user_id: user.userId, amount: 40 * USDC, address: ADDRESS },
        ...{ reference: "tx-1", note: "Überwiesen" },
      },
    },
  ]);
  expect((await desk.world.anonymous().solvency()).withdrawals).toBe(before.withdrawals + 40 * USDC);
  const repeated = await pay(desk.deputy, made.id, { reference: "TX-1" });
  expect(repeated.data).toEqual(answer.data);
  expect(desk.actions(repeated)).toEqual([]);
  for (const body of [{}, { reference: "tx-2" }, { note: "x" }]) {
    await expectRefused(pay(desk.chief, made.id, body), 409, 40900, /is paid/);
  }
  await expectRefused(refuse(desk.chief, made.id), 409, 40900, /is paid/);
  await expectRefused(cancel(user, made.id), 409, 40900, /is paid/);
  expect(await user.balance()).toEqual(balanceOf(0, 60 * USDC));
  await eventually(async () => {
    expect(messagesTo(desk.world.server, user.email).filter((text) => text.includes("was paid\n"))).toHaveLength(1);
  });
  await socket.close();
});

test("a refusal releases the amount, with a note and a mail", async () => {
  const user = await desk.person();
  const made = await withdraw(user, 12_500_000);
  const answer = await refuse(desk.chief, made.id, { note: "wrong chain" });
  expect(answer.data).toMatchObject({ withdrawal: { status: "refused", note: "wrong chain" }, approval: null });
  expect(await user.get(`/wallet/withdrawals/${made.id}`)).toMatchObject({ status: "refused", note: "wrong chain" });
  expect(await user.balance()).toEqual(balanceOf(0));
  expect(auditOf(desk.world.server.dataDir, answer)).toEqual([
    {
      ...{ action: "withdrawal.refuse", actor: desk.chiefName, user_id: user.userId, subject: made.id },
      details: { amount: 12_500_000, note: "wrong chain" },
    },
  ]);
  await eventually(async () => {
    const mails = messagesTo(desk.world.server, user.email).filter((text) => text.includes("was refused"));
    expect(mails).toHaveLength(1);
    expect(mails[0]).toContain("12.50 USDC");
  });
});

test("a reference pays one withdrawal, and is rejected for a second", async () => {
  const user = await desk.person();
  const [first, second] = [await withdraw(user, USDC), await withdraw(user, USDC)];
  await pay(desk.chief, first.id, { reference: "once" });
  for (const reference of ["once", "ONCE"]) {
    const has = new RegExp(`^reference: withdrawal ${first.id} has it$`);
    await expectRefused(pay(desk.chief, second.id, { reference }), 409, 40900, has);
  }
  expect(await user.balance()).toEqual(balanceOf(USDC, 99 * USDC));
  expect((await pay(desk.chief, second.id, { reference: "twice" })).data.withdrawal.status).toBe("paid");
  expect(await user.balance()).toEqual(balanceOf(0, 98 * USDC));
});

test("requests at once never hold more than is available, and neither do an order and a request", async () => {
  const user = await desk.person();
  const wide = desk.guests.client(desk.world.server, user.token, 8);
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(wide, 30 * USDC)));
  expect(answers.map(({ code }) => code).sort()).toEqual([0, 0, 0, ...Array(5).fill(42201)]);
  expect(await user.balance()).toEqual(balanceOf(90 * USDC));
  const order = terms(desk.market, 0, BUY, 5_000, 20);
  const [placed, asked] = await Promise.all([
    wide.request<{ id: number }>("POST", "/orders", { body: order }),
    ask(wide, 10 * USDC),
  ]);
  expect([placed.code, asked.code].sort()).toEqual([0, 42201]);
  expect(await user.balance()).toEqual(balanceOf(DEPOSIT));
  if (placed.code === 0) await user.cancel(placed.data.id);
});

test("of a cancel, a payment and a refusal at once, exactly one wins", async () => {
  const user = await desk.person();
  let total = DEPOSIT;
  for (let i = 0; i < 12; i++) {
    const { id } = await withdraw(user, USDC);
    const deciding = [cancel(user, id), pay(desk.chief, id), refuse(desk.deputy, id)] as Promise<Answer>[];
    if (i % 2 === 1) deciding.reverse();
    const answers = await Promise.all(deciding);
    const codes = answers.map(({ code }) => code);
    expect(codes.toSorted((a, b) => a - b)).toEqual([0, 40900, 40900]);
    const { status } = await user.get<WithdrawalJson>(`/wallet/withdrawals/${id}`);
    if (status === "paid") total -= USDC;
    expect(await user.balance()).toEqual(balanceOf(0, total));
  }
  await expectAddsUp(user);
});

test("the number of pending withdrawals is bounded; each end makes room", async () => {
  const user = await desk.person();
  const wide = desk.guests.client(desk.world.server, user.token, 8);
  const answers = await Promise.all(Array.from({ length: MAX_PENDING_WITHDRAWALS + 3 }, () => ask(wide, 1)));
  const made = answers.filter(({ code }) => code === 0);
  expect(made).toHaveLength(MAX_PENDING_WITHDRAWALS);
  expect(answers.filter(({ code }) => code === 42900)).toHaveLength(3);
  await cancel(user, made[0]!.data.id);
  await pay(desk.chief, made[1]!.data.id);
  await refuse(desk.chief, made[2]!.data.id);
  for (let i = 0; i < 3; i++) await withdraw(user, 1);
  await expectRefused(ask(user, 1), 429, 42900, /pending/);
  // A request without the money isn't counted.
  const poor = await desk.person();
  for (let i = 0; i <= MAX_PENDING_WITHDRAWALS; i++) await expectRefused(ask(poor, DEPOSIT + 1), 422, 42201);
  await withdraw(poor, 1);
});

test("a malformed request names the bad field, and holds nothing", async () => {
  const user = await desk.person();
  const bad: [body: object, message: RegExp][] = [
    [{ address: ADDRESS }, /^amount: required/],
    [{ amount: 1 }, /^address: required/],
    [{ amount: 0, address: ADDRESS }, /^amount/],
    [{ amount: -1, address: ADDRESS }, /^amount/],
    [{ amount: 1.5, address: ADDRESS }, /^amount/],
    [{ amount: "1", address: ADDRESS }, /^amount/],
    [{ amount: MAX_MONEY_MICRO + 1, address: ADDRESS }, /^amount/],
    ...["", "a b", "x".repeat(129), "ä", "a\n", "\u0000"].map((address): [object, RegExp] => [
      { amount: 1, address },
      /^address/,
    ]),
    [{ amount: 1, address: `0x${ADDRESS.slice(2).replace("a", "A")}` }, /^address: its checksum \(EIP-55\) is wrong/],
    [{ amount: 1, address: ADDRESS.slice(0, -1) }, /^address: must be 0x and 40 hexadecimal digits/],
    [{ amount: 1, address: ADDRESS, note: "y" }, /^note: unknown field/],
  ];
  for (const [body, message] of bad) {
    await expectRefused(user.request("POST", "/wallet/withdrawals", { body }), 400, 40000, message);
  }
  expect(await user.balance()).toEqual(balanceOf(0));
  const { id } = await withdraw(user, 1);
  for (const body of [{ reference: "" }, { reference: "x".repeat(129) }, { reference: "a\u0301".repeat(100) }]) {
    await expectRefused(pay(desk.chief, id, body), 400, 40000, /^reference/);
  }
  await expectRefused(pay(desk.chief, id, { note: "x".repeat(MAX_NOTE_LENGTH + 1) }), 400, 40000, /^note/);
  await expectRefused(refuse(desk.chief, id, { note: "a\u0000" }), 400, 40000, /^note/);
  await expectRefused(refuse(desk.chief, id, { reference: "x" }), 400, 40000, /^reference: unknown field/);
  expect((await user.get<WithdrawalJson>(`/wallet/withdrawals/${id}`)).status).toBe("pending");
  await expectRefused(user.request("GET", "/wallet/withdrawals?status=done"), 400, 40000, /^status/);
  await expectRefused(desk.chief.request("GET", "/admin/withdrawals?user_id=0"), 400, 40000, /^user_id/);
});

test("a request takes tier 2 and a session; other users' withdrawals are not found", async () => {
  const small = (await desk.guests.signIn(desk.world.server, "small@example.com")).client;
  await expectRefused(ask(small, 1), 403, 40300, /tier 2/);
  expect(await small.get("/wallet/withdrawals")).toEqual({ items: [], next_cursor: null });
  await expectRefused(ask(desk.world.client("person0"), 1), 403, 40300, /this kind of token/);
  await expectRefused(desk.world.client("person0").request("GET", "/wallet/withdrawals"), 403, 40300);
  const [owner, other] = [await desk.person(), await desk.person()];
  const { id } = await withdraw(owner, USDC);
  await expectRefused(other.request("GET", `/wallet/withdrawals/${id}`), 404, 4040);
  await expectRefused(cancel(other, id), 404, 4040);
  await expectRefused(cancel(desk.chief, id), 404, 4040);
  await expectRefused(pay(other, id), 403, 40300, /operators only/);
  await expectRefused(pay(desk.chief, 999_999), 404, 4040);
  await expectRefused(refuse(desk.chief, 999_999), 404, 4040);
  await cancel(owner, id);
  await expectRefused(cancel(other, id), 404, 4040);
  // Another operator decides on an operator's own withdrawal.
  const own = await withdraw(desk.chief, USDC);
  await expectRefused(pay(desk.chief, own.id), 403, 40300, /^the account is your own/);
  await expectRefused(refuse(desk.chief, own.id), 403, 40300, /^the account is your own/);
  expect(await desk.chief.balance()).toEqual(balanceOf(USDC));
  expect((await pay(desk.deputy, own.id)).data.withdrawal.status).toBe("paid");
});

test("lists are newest first, page by page, and filter by status and user", async () => {
  const user = await desk.person();
  const made: WithdrawalJson[] = [];
  for (let i = 1; i <= 6; i++) made.unshift(await withdraw(user, i));
  await cancel(user, made[0]!.id);
  await pay(desk.chief, made[1]!.id);
  const listed = await user.all<WithdrawalJson>("/wallet/withdrawals", 2);
  expect(listed.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
  expect(listed.map(({ status }) => status)).toEqual(["canceled", "paid", ...Array(4).fill("pending")]);
  const pending = await user.all<WithdrawalJson>("/wallet/withdrawals?status=pending", 3);
  expect(pending.map(({ id }) => id)).toEqual(made.slice(2).map(({ id }) => id));
  const paths = [`/admin/withdrawals?user_id=${user.userId}`, "/admin/withdrawals", "/admin/withdrawals?status=paid"];
  const [ofUser, all, paid] = await Promise.all(paths.map((path) => desk.chief.all<AdminWithdrawalJson>(path, 5)));
  expect(ofUser!.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
  expect(all!.slice(0, 6)).toEqual(ofUser);
  expect(all!.length).toBeGreaterThan(6);
  expect(new Set(paid!.map(({ status }) => status))).toEqual(new Set(["paid"]));
  const waiting = await desk.chief.all<AdminWithdrawalJson>("/admin/withdrawals?status=pending", 3);
  expect(waiting).toEqual(all!.filter(({ status }) => status === "pending"));
});

test("a suspended user's withdrawals stay pending, and are not paid until the user is restored", async () => {
  const user = await desk.person();
  const [first, second] = [await withdraw(user, USDC), await withdraw(user, 2 * USDC)];
  const { dataDir } = desk.world.server;
  expect((await admin(dataDir, "suspend", user.email)).code).toBe(0);
  await expectRefused(pay(desk.chief, first.id), 409, 40900, /suspended/);
  expect((await refuse(desk.chief, second.id)).data.withdrawal.status).toBe("refused");
  expect((await desk.chief.get<AdminWithdrawalJson>(`/admin/withdrawals/${first.id}`)).status).toBe("pending");
  expect((await admin(dataDir, "restore", user.email)).code).toBe(0);
  expect((await pay(desk.chief, first.id)).data.withdrawal.status).toBe("paid");
  const back = (await desk.guests.signIn(desk.world.server, user.email)).client;
  expect(await back.balance()).toEqual(balanceOf(0, 99 * USDC));
});

describe("after a kill -9", () => {
  let quiet: Person;
  let ids: Record<"paid" | "canceled" | "pending" | "order", number>;
  let busy: Person;
  let answered: ReadonlyMap<number, string>;
  beforeAll(async () => {
    quiet = await desk.person();
    ids = await decideAndOrder(quiet);
    busy = await desk.person();
    answered = await killUnderLoad(busy);
    [quiet, busy] = [desk.again(quiet), desk.again(busy)];
  });

  /** A paid, a canceled and a pending withdrawal, and a resting order. */
  async function decideAndOrder(user: Person): Promise<typeof ids> {
    const [paid, canceled, pending] = [
      await withdraw(user, 1),
      await withdraw(user, 2),
      await withdraw(user, 30 * USDC),
    ];
    expect((await pay(desk.chief, paid.id, { reference: "before" })).code).toBe(0);
    expect((await cancel(user, canceled.id)).code).toBe(0);
    const order = await user.place(terms(desk.market, 0, BUY, 5_000, 20));
    return { paid: paid.id, canceled: canceled.id, pending: pending.id, order: order.id };
  }

  /** Kills the server amid requests and decisions, and restarts it; returns the decisions that it had confirmed. */
  async function killUnderLoad(user: Person): Promise<ReadonlyMap<number, string>> {
    const made = await Promise.all(Array.from({ length: 10 }, () => withdraw(user, USDC)));
    const wide = desk.guests.client(desk.world.server, user.token, 8);
    const operator = desk.guests.client(desk.world.server, desk.chief.token, 8);
    const decisions = new Map<number, string>();
    let first: () => void = () => {};
    const one = new Promise<void>((resolve) => {
      first = resolve;
    });
    const attempts = made.flatMap(({ id }, i) => {
      const asked: Promise<Answer>[] = [i % 2 === 0 ? pay(operator, id) : cancel(wide, id), ask(wide, USDC)];
      return asked.map((attempt, n) =>
        attempt.then(
          ({ code }) => {
            if (code === 0 && n === 0) decisions.set(id, i % 2 === 0 ? "paid" : "canceled");
            first();
          },
          () => {},
        ),
      );
    });
    await one;
    await desk.world.server.kill();
    await Promise.all(attempts);
    await desk.restart();
    return decisions;
  }

  test("after a kill -9, a pending withdrawal is held as before, and a decision that is repeated has one effect", async () => {
    expect(await quiet.balance()).toEqual(balanceOf(40 * USDC, DEPOSIT - 1));
    await expectRefused(ask(quiet, 60 * USDC), 422, 42201);
    expect((await pay(desk.chief, ids.paid, { reference: "before" })).data.withdrawal.status).toBe("paid");
    await expectRefused(cancel(quiet, ids.canceled), 409, 40900);
    expect((await pay(desk.chief, ids.pending)).data.withdrawal.status).toBe("paid");
    await quiet.cancel(ids.order);
    await eventually(async () => expect(await quiet.balance()).toEqual(balanceOf(0, 70 * USDC - 1)));
    await expectAddsUp(quiet);
  });

  test("after a kill -9, confirmed withdrawals and decisions that were in flight hold, and the others are whole or absent", async () => {
    const listed = await busy.all<WithdrawalJson>("/wallet/withdrawals");
    for (const [id, status] of answered) expect(listed.find((row) => row.id === id)!.status).toBe(status);
    const sum = (wanted: string): number =>
      listed.filter(({ status }) => status === wanted).reduce((total, { amount }) => total + amount, 0);
    expect(await busy.balance()).toEqual(balanceOf(sum("pending"), DEPOSIT - sum("paid")));
    await expectAddsUp(busy);
  });
});
