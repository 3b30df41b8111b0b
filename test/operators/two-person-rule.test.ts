/** The two-person rule under races: what was taken back is not done, and an approval counts while who gave it is in office. */
import { expect, test } from "vitest";
import { MAX_TRAIL } from "../../server/queries/limits.ts";
import { admin } from "../support/admin.ts";
import type { Answer, Client, MarketJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { ask, asOperator, OPERATORS, type SettlementJson, take } from "../support/markets.ts";
import {
  type ApprovalJson,
  auditOf,
  type NewDepositJson,
  pay,
  type WithdrawalWithTrailJson,
  withdraw,
} from "../support/money.ts";
import { type OperatorUserJson, userNamed } from "../support/operator.ts";
import { alone, expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, USDC, type World } from "../support/world.ts";

const MARKETS = 10;
const OPTIONS = {
  users: 4,
  named: { ...OPERATORS, payee: { password: PASSWORD, deposit: 100 * USDC } },
  markets: new Array<number>(MARKETS).fill(2),
  env: { PUBLIC_URL, TWO_PERSON_RULE: "withdrawals,resolutions" },
};
const WISH = { payouts: [10_000, 0] };

const ALL = "withdrawals,resolutions,deposits,terms";
/** A request and what an operator may do with it. */
type Ask = (operator: Client) => Promise<Answer<NewDepositJson>>;
const crediting =
  (userId: number, amount: number, reference: string): Ask =>
  (operator) =>
    operator.request("POST", "/admin/deposits", { body: { user_id: userId, amount, reference } });
const funding =
  (amount: number, reference: string): Ask =>
  (operator) =>
    operator.request("POST", "/admin/house/deposits", { body: { amount, reference } });

const both = (world: World) => Promise.all([asOperator(world), asOperator(world, "second")]);

test("a first approval that was taken back resolves nothing, and what was resolved was not taken back", async () => {
  await alone(OPTIONS, async (world) => {
    const [first, second] = await both(world);
    const seen = new Set<string>();
    for (const [i, { id }] of world.markets.entries()) {
      for (let user = 0; user < 4; user++) await world.split(world.client(`user${user}`), world.markets[i]!, 5);
      await take(first, { id }, "close");
      const { approval } = (await ask<SettlementJson>(first, { id }, "resolve", WISH)).data;
      const path = `/admin/approvals/${approval!.id}`;
      const resolve = () => ask<SettlementJson>(second, { id }, "resolve", WISH);
      const takeBack = () => first.request("DELETE", path);
      const asked = i % 2 === 0 ? [resolve(), takeBack()] : [takeBack(), resolve()];
      const codes = (await Promise.all(asked)).map(({ code }) => code);
      const [taken] = i % 2 === 0 ? codes.reverse() : codes;
      const { status } = await first.get<MarketJson>(`/markets/${id}`);
      expect([id, status, taken]).toEqual([id, taken === 0 ? "closed" : "resolved", taken]);
      const lines = rowsOf(
        world.server.dataDir,
        "SELECT id FROM audit_log WHERE action = 'market.resolve.take_back' AND subject = ?",
        id,
      );
      expect(lines).toHaveLength(taken === 0 ? 1 : 0);
      seen.add(status);
    }
    expect(seen.size).toBeGreaterThan(0);
    first.close();
    second.close();
  });
});

test("a payment and a taking back at once: one of them, and the log tells of that one alone", async () => {
  await alone(OPTIONS, async (world) => {
    const [first, second] = await both(world);
    const { client: payee } = await signIn(world.server, "payee@example.com");
    for (let i = 0; i < 10; i++) {
      const { id } = await withdraw(payee, USDC);
      const { approval } = (await pay(first, id, { reference: `out ${i}` })).data;
      const [paid, taken] = await Promise.all([
        pay(second, id, { reference: `out ${i}` }),
        first.request("DELETE", `/admin/approvals/${approval!.id}`),
      ]);
      const isPaid = paid.code === 0 && paid.data.withdrawal.status === "paid";
      expect([isPaid, taken.code === 0]).toEqual([isPaid, !isPaid]);
      const sql = "SELECT id FROM audit_log WHERE action = 'withdrawal.pay.take_back' AND subject = ?";
      expect(rowsOf(world.server.dataDir, sql, id)).toHaveLength(isPaid ? 0 : 1);
    }
    for (const client of [first, second, payee]) client.close();
  });
});

test("the approval of one who is an operator no more, or suspended, is none; nor is it over a kill -9", async () => {
  await alone(OPTIONS, async (world) => {
    let [first, second] = await both(world);
    const [market, other] = [world.market(), world.market()];
    for (const each of [market, other]) {
      await take(first, each, "close");
      await ask<SettlementJson>(first, each, "resolve", WISH);
    }
    const { id } = await userNamed(second, "operator");
    await second.data("POST", `/admin/users/${id}/suspend`, {});
    expect(await second.all("/admin/approvals")).toEqual([]);
    // It begins anew, with the other as the first.
    const begun = (await ask<SettlementJson>(second, market, "resolve", WISH)).data;
    expect([begun.market.status, begun.approval?.approved_by]).toEqual([
      "closed",
      expect.stringMatching(/^operator \d+$/),
    ]);
    await second.data("POST", `/admin/users/${id}/restore`, {});
    expect(await admin(world.server.dataDir, "operator", "remove", "operator@example.com")).toMatchObject({ code: 0 });
    for (const client of [first, second]) client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    [first, second] = await both(world);
    expect((await ask<SettlementJson>(second, other, "resolve", WISH)).data.market.status).toBe("closed");
    expect((await ask(first, market, "resolve", WISH)).code).toBe(40300);
    // The shell is somebody else.
    const resolved = await admin(world.server.dataDir, "market", "resolve", String(market.id), "--payouts", "10000,0");
    expect(JSON.parse(resolved.out)).toMatchObject({ market: { status: "resolved" }, approval: null });
    for (const client of [first, second]) client.close();
  });
});

test("a deposit is credited once, by the second of two, whatever is repeated, at once or over a kill -9", async () => {
  await alone({ ...OPTIONS, env: { PUBLIC_URL, TWO_PERSON_RULE: ALL } }, async (world) => {
    let [first, second] = await both(world);
    const payee = await userNamed(first, "payee");
    const total = async (): Promise<number> => (await userNamed(first, "payee")).balance.total;
    const wire = crediting(payee.id, 7 * USDC, "wire 1");
    const asked = await wire(first);
    const { approval } = asked.data;
    expect(asked.data).toEqual({
      ...{ id: null, user_id: payee.id, amount: 7 * USDC, reference: "wire 1", created_at: null },
      approval: {
        ...{ id: approval!.id, action: "wallet.deposit", subject: payee.id, created_at: approval!.created_at },
        ...{ details: { amount: 7 * USDC, reference: "wire 1" }, approved_by: approval!.approved_by },
      },
    });
    expect(auditOf(world.server.dataDir, asked).map(({ action }) => action)).toEqual(["wallet.deposit.approve"]);
    // The first alone credits nothing, and another amount is another request.
    expect((await wire(first)).data).toEqual(asked.data);
    await expectRefused(crediting(payee.id, 8 * USDC, "wire 1")(second), 409, 40900, /requested something different/);
    // Several of one user wait at one time, each with its reference.
    const others = await Promise.all([2, 3].map((n) => crediting(payee.id, n, `wire ${n}`)(first)));
    expect(others.map(({ data }) => data.id)).toEqual([null, null]);
    expect((await first.all<ApprovalJson>("/admin/approvals")).map(({ details }) => details)).toHaveLength(3);
    expect(await total()).toBe(100 * USDC);
    for (const client of [first, second]) client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    [first, second] = await both(world);
    const credited = await wire(second);
    expect(credited.data).toMatchObject({ id: expect.any(Number), amount: 7 * USDC, approval: null });
    const [line] = auditOf(world.server.dataDir, credited);
    expect(line).toMatchObject({ action: "wallet.deposit", subject: credited.data.id });
    expect(line!.details).toEqual({
      ...{ amount: 7 * USDC, reference: "wire 1" },
      ...{ approved_by: approval!.approved_by, approved_at: approval!.created_at },
    });
    for (const operator of [first, second]) expect((await wire(operator)).data).toEqual(credited.data);
    await expectRefused(crediting(payee.id, 8 * USDC, "wire 1")(first), 409, 40900, /another one has it/);
    expect(await total()).toBe(107 * USDC);
    // Each asks at once, several times over, and now the one comes first, now the other: one deposit, and nothing waits.
    const racing = crediting(payee.id, USDC, "race");
    for (let round = 0; ; round++) {
      const racers = round % 2 === 0 ? [first, second, first, second] : [second, first, second, first];
      const answers = await Promise.all(racers.map((operator) => racing(operator)));
      for (const { code } of answers) expect([0, 40900]).toContain(code);
      if (answers.some(({ data }) => data?.id != null)) break;
      expect(round).toBeLessThan(10);
    }
    expect(await total()).toBe(108 * USDC);
    const waiting = await first.all<{ details: { reference: string } }>("/admin/approvals");
    expect(waiting.map(({ details }) => details.reference)).not.toContain("race");
    // The house too, and the shell is one person more.
    expect((await funding(5, "lent")(first)).data).toMatchObject({ id: null, user_id: null });
    const funded = await admin(world.server.dataDir, "house", "deposit", "5", "lent");
    expect(JSON.parse(funded.out)).toMatchObject({ id: expect.any(Number), approval: null });
    const alone = await admin(world.server.dataDir, "deposit", "payee@example.com", "1usdc", "shell");
    expect(JSON.parse(alone.out)).toMatchObject({ id: null, approval: { approved_by: "admin" } });
    expect(await total()).toBe(108 * USDC);
    for (const client of [first, second]) client.close();
  });
});

test("who looks at a withdrawal sees who credited its money, set the terms and decided on the identity, and who approved", async () => {
  const env = { PUBLIC_URL, TWO_PERSON_RULE: "deposits,terms" };
  const named = { ...OPTIONS.named, newcomer: { tier: 1, password: PASSWORD, deposit: 3 } };
  await alone({ ...OPTIONS, named, env }, async (world) => {
    const [first, second] = await both(world);
    const [firstName, secondName] = await Promise.all(
      [first, second].map(async (each) => `operator ${(await each.get<{ id: number }>("/me")).id}`),
    );
    const { client: newcomer, user } = await signIn(world.server, "newcomer@example.com");
    const wire = crediting(user.id, 40 * USDC, "wire");
    const asked = (await wire(second)).data.approval!;
    const credited = (await wire(first)).data;
    const path = `/admin/users/${user.id}`;
    const wish = { maker_rebate: 9 };
    const termsAsked = (await first.data<OperatorUserJson>("PATCH", `${path}/terms`, wish)).terms_approval!;
    await second.data("PATCH", `${path}/terms`, wish);
    const identity = { document_type: "passport", document_number: "C01X00T47", country: "DE" };
    const applied = await newcomer.data<{ id: number }>("POST", "/me/identity", identity);
    await second.data("POST", `/admin/identity-applications/${applied.id}/approve`, { note: "seen" });
    const { id } = await withdraw(newcomer, 5 * USDC);
    const { trail, ...withdrawal } = await first.get<WithdrawalWithTrailJson>(`/admin/withdrawals/${id}`);
    expect(withdrawal).toMatchObject({ id, user_id: user.id, amount: 5 * USDC });
    const [at, termsAt, decidedAt] = [credited.created_at, trail.terms[0]!.set_at, trail.identity[0]!.decided_at];
    expect(trail).toEqual({
      deposits: [
        {
          ...{ id: credited.id, amount: 40 * USDC, reference: "wire", created_at: at },
          ...{ credited_by: firstName, approved_by: secondName, approved_at: asked.created_at },
        },
        {
          ...{ id: trail.deposits[1]!.id, amount: 3, reference: "seed:newcomer@example.com" },
          ...{ created_at: trail.deposits[1]!.created_at, credited_by: "seed", approved_by: null, approved_at: null },
        },
      ],
      terms: [
        {
          ...{ set_at: termsAt, set_by: secondName, changes: wish },
          ...{ approved_by: firstName, approved_at: termsAsked.created_at },
        },
      ],
      identity: [
        {
          ...{ application_id: applied.id, status: "approved" },
          ...{ decided_at: decidedAt, decided_by: secondName, note: "seen" },
        },
      ],
      has_more: false,
    });
    expect(await second.get(`${path}/trail`)).toEqual(trail);
    await expectRefused(second.request("GET", "/admin/users/999/trail"), 404, 4040);
    const shell = await admin(world.server.dataDir, "user", "trail", "newcomer@example.com");
    expect(JSON.parse(shell.out)).toEqual(trail);
    // The newest fifty of each kind.
    for (let n = 0; n < MAX_TRAIL; n++) for (const by of [first, second]) await crediting(user.id, 1, `more ${n}`)(by);
    const long = await first.get<WithdrawalWithTrailJson["trail"]>(`${path}/trail`);
    expect([long.deposits.length, long.has_more]).toEqual([MAX_TRAIL, true]);
    expect(long.deposits[0]!.reference).toBe(`more ${MAX_TRAIL - 1}`);
    for (const client of [first, second, newcomer]) client.close();
  });
});

test("terms are set by the second of two who ask for the same, in whatever order of fields, never for their own", async () => {
  await alone({ ...OPTIONS, env: { PUBLIC_URL, TWO_PERSON_RULE: "terms" } }, async (world) => {
    let [first, second] = await both(world);
    const { id, terms: usual } = await userNamed(first, "payee");
    const change = (operator: Client, body: object, user = id) =>
      operator.request<OperatorUserJson>("PATCH", `/admin/users/${user}/terms`, { body });
    const wish = { trading_fee: 50, pat_rebate: 20 };
    const asked = await change(first, wish);
    const { terms_approval } = asked.data;
    expect([asked.data.terms, terms_approval]).toMatchObject([
      usual,
      { action: "user.set_terms", subject: id, details: wish, approved_by: expect.stringMatching(/^operator \d+$/) },
    ]);
    expect(auditOf(world.server.dataDir, asked)).toMatchObject([{ action: "user.set_terms.approve", user_id: id }]);
    expect(await second.all("/admin/approvals")).toEqual([terms_approval]);
    expect((await userNamed(second, "payee")).terms_approval).toEqual(terms_approval);
    await expectRefused(
      change(second, { trading_fee: 51, pat_rebate: 20 }),
      409,
      40900,
      /requested something different/,
    );
    // What can't be done is not approved of.
    await expectRefused(change(second, { trading_fee: 1 }), 400, 40000, /^maker_rebate/);
    for (const client of [first, second]) client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    [first, second] = await both(world);
    const set = await change(second, { pat_rebate: 20, trading_fee: 50 });
    expect(set.data).toMatchObject({ terms: { ...usual, ...wish }, terms_approval: null });
    const [line] = auditOf(world.server.dataDir, set);
    const chain = { approved_by: terms_approval!.approved_by, approved_at: terms_approval!.created_at };
    expect(line).toMatchObject({ action: "user.set_terms", details: { ...wish, ...chain } });
    expect(await first.all("/admin/approvals")).toEqual([]);
    const own = await userNamed(first, "operator");
    expect((await change(second, { daily_limit: 1 }, own.id)).data.terms_approval).not.toBeNull();
    await expectRefused(change(first, { daily_limit: 1 }, own.id), 403, 40300, /^the account is your own/);
    for (const client of [first, second]) client.close();
  });
});
