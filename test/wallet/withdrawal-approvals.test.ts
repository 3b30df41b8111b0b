/**
 * The two-person rule: a payment out, to a user or from the house, takes the approval of one operator and the payment of
 * another. What one operator may do is withdrawals.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Answer } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import {
  ADDRESS,
  type ApprovalJson,
  auditOf,
  cancel,
  type DecisionJson,
  deposit,
  expectAddsUp,
  pay,
  refuse,
  type WithdrawalJson,
  withdraw,
} from "../support/money.ts";
import { expectRefused } from "../support/trading.ts";
import { USDC } from "../support/world.ts";
import { balanceOf, WithdrawalDesk } from "./withdrawal-desk.ts";

let desk: WithdrawalDesk;
beforeAll(async () => {
  desk = await WithdrawalDesk.start({ TWO_PERSON_RULE: "withdrawals" });
});
afterAll(() => desk.stop());

const approvals = (): Promise<ApprovalJson[]> => desk.chief.all<ApprovalJson>("/admin/approvals");

test("the second of two operators pays; the first does not, however often it repeats the request", async () => {
  const user = await desk.person();
  const { id } = await withdraw(user, USDC);
  const body = { reference: "two", note: "paid by two" };
  const first = await pay(desk.chief, id, body);
  expect(first.data.withdrawal.status).toBe("pending");
  const { approval } = first.data;
  expect(approval).toEqual({
    ...{ id: approval!.id, action: "withdrawal.pay", subject: id, approved_by: desk.chiefName },
    details: { user_id: user.userId, amount: USDC, address: ADDRESS, ...body },
    created_at: approval!.created_at,
  });
  expect(desk.actions(first)).toEqual(["withdrawal.pay.approve"]);
  const repeated = await pay(desk.chief, id, body);
  expect([repeated.data, desk.actions(repeated)]).toEqual([first.data, []]);
  expect(await approvals()).toEqual([approval]);
  await expectRefused(
    pay(desk.deputy, id, { reference: "other", note: "paid by two" }),
    409,
    40900,
    /something different/,
  );
  expect(await user.balance()).toEqual(balanceOf(USDC));
  const second = await pay(desk.deputy, id, body);
  expect(second.data).toMatchObject({ withdrawal: { status: "paid", ...body }, approval: null });
  expect(auditOf(desk.world.server.dataDir, second)).toMatchObject([
    { action: "withdrawal.pay", actor: desk.deputyName },
  ]);
  expect(await approvals()).toEqual([]);
  expect(await user.balance()).toEqual(balanceOf(0, 99 * USDC));
  expect((await pay(desk.chief, id, body)).data).toEqual(second.data);
});

test("two operators at once make one approval, and a payment when both repeat it", async () => {
  const user = await desk.person();
  const { id } = await withdraw(user, USDC);
  const answers = await Promise.all([pay(desk.chief, id), pay(desk.deputy, id)]);
  expect(answers.map(({ code }) => code).sort()).toEqual([0, 40900]);
  expect(await approvals()).toHaveLength(1);
  for (const operator of [desk.chief, desk.deputy]) await pay(operator, id);
  expect(await approvals()).toEqual([]);
  expect(await user.balance()).toEqual(balanceOf(0, 99 * USDC));
  await expectAddsUp(user);
});

test("an operator can't approve a payment to their own account", async () => {
  const { id } = await withdraw(desk.chief, USDC);
  await expectRefused(pay(desk.chief, id), 403, 40300, /^the account is your own/);
  expect((await pay(desk.deputy, id)).data.approval).not.toBeNull();
  await expectRefused(pay(desk.chief, id), 403, 40300, /^the account is your own/);
  expect((await refuse(desk.deputy, id)).data.withdrawal.status).toBe("refused");
  expect(await approvals()).toEqual([]);
});

test("a cancel or a refusal, by one person, ends an approval", async () => {
  const user = await desk.person();
  for (const end of [(id: number) => cancel(user, id), (id: number) => refuse(desk.deputy, id)] as const) {
    const { id } = await withdraw(user, USDC);
    await pay(desk.chief, id, { reference: `open ${id}` });
    expect(await approvals()).toHaveLength(1);
    expect(((await end(id)) as Answer).code).toBe(0);
    expect(await approvals()).toEqual([]);
    expect(await user.balance()).toEqual(balanceOf(0));
    await expectRefused(pay(desk.deputy, id, { reference: `open ${id}` }), 409, 40900);
  }
  const open = rowsOf(desk.world.server.dataDir, "SELECT id FROM approvals WHERE ended_at IS NULL");
  expect(open).toEqual([]);
});

test("any operator can revoke an approval; then a payment takes two again", async () => {
  const user = await desk.person();
  const { id } = await withdraw(user, USDC);
  for (const operator of [desk.chief, desk.deputy]) {
    const { approval } = (await pay(desk.chief, id)).data;
    const answer = await operator.request<ApprovalJson>("DELETE", `/admin/approvals/${approval!.id}`);
    expect(answer.data).toEqual(approval);
    const actor = operator === desk.chief ? desk.chiefName : desk.deputyName;
    expect(auditOf(desk.world.server.dataDir, answer)).toMatchObject([
      { action: "withdrawal.pay.take_back", actor, subject: id },
    ]);
    await expectRefused(operator.request("DELETE", `/admin/approvals/${approval!.id}`), 404, 4040);
    expect(await approvals()).toEqual([]);
  }
  expect((await pay(desk.deputy, id)).data.approval).toMatchObject({ approved_by: desk.deputyName });
  expect(await user.balance()).toEqual(balanceOf(USDC));
  await cancel(user, id);
});

test("of a revocation and a payment at once, a payment is final and leaves no approval", async () => {
  const user = await desk.person();
  for (let i = 0; i < 10; i++) {
    const { id } = await withdraw(user, 1);
    const { approval } = (await pay(desk.chief, id)).data;
    const revoke = (): Promise<Answer> => desk.chief.request("DELETE", `/admin/approvals/${approval!.id}`);
    const second = (): Promise<Answer<DecisionJson>> => pay(desk.deputy, id);
    const racing = i % 2 === 0 ? [revoke(), second()] : [second(), revoke()];
    await Promise.all(racing);
    const { status } = await user.get<WithdrawalJson>(`/wallet/withdrawals/${id}`);
    const left = await approvals();
    if (status === "paid") expect(left).toEqual([]);
    else await refuse(desk.deputy, id);
    expect(await approvals()).toEqual([]);
  }
  await expectAddsUp(user);
});

test("first approvals are listed page by page, and outlive a kill -9", async () => {
  let user = await desk.person();
  const ids: number[] = [];
  for (let i = 0; i < 5; i++) ids.unshift((await withdraw(user, USDC)).id);
  for (const id of ids.toReversed()) await pay(desk.chief, id);
  const before = await desk.chief.all<ApprovalJson>("/admin/approvals", 2);
  expect(before.filter(({ subject }) => ids.includes(subject)).map(({ subject }) => subject)).toEqual(ids);
  await desk.world.server.kill();
  await desk.restart();
  user = desk.again(user);
  expect(await desk.chief.all<ApprovalJson>("/admin/approvals", 2)).toEqual(before);
  expect((await pay(desk.chief, ids[0]!)).data.approval).not.toBeNull();
  expect((await pay(desk.deputy, ids[0]!)).data.withdrawal.status).toBe("paid");
  expect(await user.balance()).toEqual(balanceOf(4 * USDC, 99 * USDC));
});

test("a withdrawal from the house takes two as well; deposits don't", async () => {
  const path = "/admin/house/withdrawals";
  await desk.chief.data("POST", "/admin/house/deposits", { amount: 5 * USDC, reference: "fund" });
  const { house } = await desk.world.anonymous().solvency();
  const body = { amount: 2 * USDC, reference: "profit" };
  const first = await desk.chief.request<{ withdrawal: null; approval: ApprovalJson }>("POST", path, { body });
  expect(first.data).toMatchObject({
    withdrawal: null,
    approval: { action: "house.withdraw", subject: 0, details: body },
  });
  expect((await desk.world.anonymous().solvency()).house).toBe(house);
  await expectRefused(
    desk.deputy.request("POST", path, { body: { ...body, amount: USDC } }),
    409,
    40900,
    /something different/,
  );
  const second = await desk.deputy.request<{ withdrawal: { id: number }; approval: null }>("POST", path, { body });
  expect(second.data).toMatchObject({ withdrawal: body, approval: null });
  expect((await desk.world.anonymous().solvency()).house).toBe(house - 2 * USDC);
  expect((await desk.chief.request("POST", path, { body })).data).toEqual(second.data);
  expect((await desk.world.anonymous().solvency()).house).toBe(house - 2 * USDC);
  expect(await approvals()).not.toContainEqual(expect.objectContaining({ action: "house.withdraw" }));
  const user = await desk.person();
  await deposit(desk.chief, user.userId, USDC, "alone");
});
