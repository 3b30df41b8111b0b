/**
 * The two-person rule under races, repetition and a kill -9: one deposit for one request, nothing done after its
 * approval was withdrawn, and an approval that counts only while its operator holds the role. The tests share one
 * server, and those of the kill share one restart.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_TRAIL } from "../../server/queries/limits.ts";
import { admin } from "../support/admin.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Answer, Client, MarketJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { ask, asOperator, OPERATORS, type SettlementJson, take } from "../support/markets.ts";
import {
  type ApprovalJson,
  auditOf,
  type DepositJson,
  type NewDepositJson,
  pay,
  type WithdrawalWithTrailJson,
  withdraw,
} from "../support/money.ts";
import { OPERATOR, type OperatorUserJson, userNamed } from "../support/operator.ts";
import { expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

const RACED_MARKETS = 10;
const RESOLUTION = { payouts: [10_000, 0] };

/** A request that needs two operators, and the operator who sends it. */
type Request = (operator: Client) => Promise<Answer<NewDepositJson>>;
const crediting =
  (userId: number, amount: number, reference: string): Request =>
  (operator) =>
    operator.request("POST", "/admin/deposits", { body: { user_id: userId, amount, reference } });
const funding =
  (amount: number, reference: string): Request =>
  (operator) =>
    operator.request("POST", "/admin/house/deposits", { body: { amount, reference } });

let world: World;
let first: Client;
let second: Client;

async function signOperatorsIn(): Promise<void> {
  [first, second] = await Promise.all([asOperator(world), asOperator(world, "second")]);
}

const referenceOf = ({ details }: ApprovalJson): unknown => (details as { reference?: unknown }).reference;

/** What waits for a second operator. */
async function waitingFor(operator: Client, action: string, ...subjects: number[]): Promise<ApprovalJson[]> {
  const all = await operator.all<ApprovalJson>("/admin/approvals");
  return all.filter((approval) => approval.action === action && subjects.includes(approval.subject!));
}

beforeAll(async () => {
  const payee = { password: PASSWORD, deposit: 100 * USDC };
  world = await World.start({
    users: 4,
    named: {
      ...OPERATORS,
      leaver: OPERATOR,
      successor: OPERATOR,
      payee,
      credited: payee,
      valued: payee,
      newcomer: { tier: 1, password: PASSWORD, deposit: 3 },
    },
    markets: new Array<number>(RACED_MARKETS + 2).fill(2),
    env: { PUBLIC_URL, TWO_PERSON_RULE: "withdrawals,resolutions,deposits,terms" },
  });
  await signOperatorsIn();
});
afterAll(async () => {
  for (const client of [first, second]) client.close();
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

test("a withdrawn first approval resolves nothing, and a resolution is never withdrawn", async () => {
  const seen = new Set<string>();
  const users = [0, 1, 2, 3].map((n) => world.client(`user${n}`));
  for (let i = 0; i < RACED_MARKETS; i++) {
    const market = world.market();
    const { id } = market;
    for (const user of users) await world.split(user, market, 5);
    await take(first, { id }, "close");
    const { approval } = (await ask<SettlementJson>(first, { id }, "resolve", RESOLUTION)).data;
    const path = `/admin/approvals/${approval!.id}`;
    const resolve = () => ask<SettlementJson>(second, { id }, "resolve", RESOLUTION);
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
});

test("of a payment and the withdrawal of its approval at once, one happens, and the audit log has only that one", async () => {
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
  payee.close();
});

test("a withdrawal shows its trail: who credited the money, set the terms, decided on the identity, and who approved", async () => {
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
        ...{ id: credited.id, amount: 40 * USDC, reference: "wire", reverses: null, created_at: at },
        ...{ credited_by: firstName, approved_by: secondName, approved_at: asked.created_at },
      },
      {
        ...{ id: trail.deposits[1]!.id, amount: 3, reference: "seed:newcomer@example.com", reverses: null },
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
  newcomer.close();
});

describe("over a kill -9", () => {
  const LEAVER = "leaver@example.com";
  let successor: Client;
  let begun: TestMarket;
  let abandoned: TestMarket;

  /** An operator approves two resolutions, is suspended and restored, and then loses the role. */
  async function approveAndLeave(): Promise<void> {
    const leaver = await asOperator(world, "leaver");
    [begun, abandoned] = [world.market(), world.market()];
    for (const market of [begun, abandoned]) {
      await take(leaver, market, "close");
      await ask<SettlementJson>(leaver, market, "resolve", RESOLUTION);
    }
    const waiting = () => waitingFor(successor, "market.resolve", begun.id, abandoned.id);
    expect(await waiting()).toHaveLength(2);
    const { id } = await userNamed(successor, "leaver");
    await successor.data("POST", `/admin/users/${id}/suspend`, {});
    expect(await waiting()).toEqual([]);
    // The request starts over, with the successor as its first operator.
    const { market, approval } = (await ask<SettlementJson>(successor, begun, "resolve", RESOLUTION)).data;
    expect([market.status, approval?.approved_by]).toEqual(["closed", expect.stringMatching(/^operator \d+$/)]);
    await successor.data("POST", `/admin/users/${id}/restore`, {});
    expect(await admin(world.server.dataDir, "operator", "remove", LEAVER)).toMatchObject({ code: 0 });
    leaver.close();
  }

  let credited: OperatorUserJson;
  let wire: Request;
  let wireApproval: ApprovalJson;
  const total = async (): Promise<number> => (await userNamed(first, "credited")).balance.total;

  let reversal: (operator: Client, reference?: string, note?: string) => Promise<Answer<NewDepositJson>>;

  /** One operator asks for a part of the seed's deposit back. */
  async function approveReversal(): Promise<void> {
    const [{ id: depositId }] = (await first.all<DepositJson>(`/admin/deposits?user_id=${credited.id}`)) as [
      DepositJson,
    ];
    reversal = (operator, reference = "0xab back", note = "wrong account") => {
      const body = { amount: 10 * USDC, reference, note };
      return operator.request("POST", `/admin/deposits/${depositId}/reverse`, { body });
    };
    const { data } = await reversal(first);
    const details = { deposit: depositId, amount: 10 * USDC, reference: "0xab back", note: "wrong account" };
    expect(data).toMatchObject({ id: null, amount: -10 * USDC, reverses: depositId, approval: { details } });
    // The same again, in capitals: still the first approval. Another note is another request.
    expect((await reversal(first, "0xAB BACK")).data).toEqual(data);
    await expectRefused(reversal(second, "0xAB back", "other"), 409, 40900, /requested something different/);
    // What can't be taken back isn't asked for.
    const tooMuch = first.request("POST", `/admin/deposits/${depositId}/reverse`, {
      body: { amount: 101 * USDC, reference: "x" },
    });
    await expectRefused(tooMuch, 409, 40900, /^amount/);
    expect(await total()).toBe(100 * USDC);
  }

  /** One operator asks for three deposits. */
  async function approveDeposits(): Promise<void> {
    credited = await userNamed(first, "credited");
    wire = crediting(credited.id, 7 * USDC, "wire 1");
    const asked = await wire(first);
    wireApproval = asked.data.approval!;
    expect(asked.data).toEqual({
      ...{ id: null, user_id: credited.id, amount: 7 * USDC, reference: "wire 1", reverses: null, created_at: null },
      approval: {
        ...{ id: wireApproval.id, action: "wallet.deposit", subject: credited.id, created_at: wireApproval.created_at },
        ...{ details: { amount: 7 * USDC, reference: "wire 1" }, approved_by: wireApproval.approved_by },
      },
    });
    expect(auditOf(world.server.dataDir, asked).map(({ action }) => action)).toEqual(["wallet.deposit.approve"]);
    // The first operator's repetition credits nothing, and another amount is another request.
    expect((await wire(first)).data).toEqual(asked.data);
    const other = crediting(credited.id, 8 * USDC, "wire 1");
    await expectRefused(other(second), 409, 40900, /requested something different/);
    // Several deposits to one user wait at the same time, each under its reference.
    const others = await Promise.all([2, 3].map((n) => crediting(credited.id, n, `wire ${n}`)(first)));
    expect(others.map(({ data }) => data.id)).toEqual([null, null]);
    expect(await waitingFor(first, "wallet.deposit", credited.id)).toHaveLength(3);
    expect(await total()).toBe(100 * USDC);
  }

  const TERMS = { trading_fee: 50, pat_rebate: 20 };
  let valued: OperatorUserJson;
  let termsApproval: OperatorUserJson["terms_approval"];
  const changeTerms = (operator: Client, body: object, user = valued.id) =>
    operator.request<OperatorUserJson>("PATCH", `/admin/users/${user}/terms`, { body });

  /** One operator asks for a user's terms. */
  async function approveTerms(): Promise<void> {
    valued = await userNamed(first, "valued");
    const asked = await changeTerms(first, TERMS);
    termsApproval = asked.data.terms_approval;
    expect([asked.data.terms, termsApproval]).toMatchObject([
      valued.terms,
      {
        ...{ action: "user.set_terms", subject: valued.id, details: TERMS },
        approved_by: expect.stringMatching(/^operator \d+$/),
      },
    ]);
    expect(auditOf(world.server.dataDir, asked)).toMatchObject([
      { action: "user.set_terms.approve", user_id: valued.id },
    ]);
    expect(await waitingFor(second, "user.set_terms", valued.id)).toEqual([termsApproval]);
    expect((await userNamed(second, "valued")).terms_approval).toEqual(termsApproval);
    const other = { trading_fee: 51, pat_rebate: 20 };
    await expectRefused(changeTerms(second, other), 409, 40900, /requested something different/);
    // Invalid terms are rejected even as a request for approval.
    await expectRefused(changeTerms(second, { trading_fee: 1 }), 400, 40000, /^maker_rebate/);
  }

  beforeAll(async () => {
    successor = await asOperator(world, "successor");
    await approveAndLeave();
    await approveDeposits();
    await approveReversal();
    await approveTerms();
    for (const client of [first, second, successor]) client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    await signOperatorsIn();
    successor = await asOperator(world, "successor");
  });
  afterAll(() => successor.close());

  test("the approval of an operator who was suspended or lost the role counts for nothing", async () => {
    const { data } = await ask<SettlementJson>(successor, abandoned, "resolve", RESOLUTION);
    expect(data.market.status).toBe("closed");
    const leaver = await asOperator(world, "leaver");
    expect((await ask(leaver, begun, "resolve", RESOLUTION)).code).toBe(40300);
    leaver.close();
    // The shell counts as another person.
    const resolved = await admin(world.server.dataDir, "market", "resolve", String(begun.id), "--payouts", "10000,0");
    expect(JSON.parse(resolved.out)).toMatchObject({ market: { status: "resolved" }, approval: null });
  });

  test("the second of two operators credits a deposit, and no repetition credits it again", async () => {
    const deposited = await wire(second);
    expect(deposited.data).toMatchObject({ id: expect.any(Number), amount: 7 * USDC, approval: null });
    const [line] = auditOf(world.server.dataDir, deposited);
    expect(line).toMatchObject({ action: "wallet.deposit", subject: deposited.data.id });
    expect(line!.details).toEqual({
      ...{ amount: 7 * USDC, reference: "wire 1" },
      ...{ approved_by: wireApproval.approved_by, approved_at: wireApproval.created_at },
    });
    for (const operator of [first, second]) expect((await wire(operator)).data).toEqual(deposited.data);
    await expectRefused(
      crediting(credited.id, 8 * USDC, "wire 1")(first),
      409,
      40900,
      /^reference: deposit \d+ of .* has it$/,
    );
    expect(await total()).toBe(107 * USDC);
    // Both send the same request twice at once, in alternating order: one deposit, and nothing waits.
    const racing = crediting(credited.id, USDC, "race");
    for (let round = 0; ; round++) {
      const racers = round % 2 === 0 ? [first, second, first, second] : [second, first, second, first];
      const answers = await Promise.all(racers.map((operator) => racing(operator)));
      for (const { code } of answers) expect([0, 40900]).toContain(code);
      if (answers.some(({ data }) => data?.id != null)) break;
      expect(round).toBeLessThan(10);
    }
    expect(await total()).toBe(108 * USDC);
    const waiting = await waitingFor(first, "wallet.deposit", credited.id);
    expect(waiting.map(({ details }) => details)).not.toContainEqual(expect.objectContaining({ reference: "race" }));
    // Deposits to the house need two operators as well, and the shell counts as one more.
    expect((await funding(5, "lent")(first)).data).toMatchObject({ id: null, user_id: null });
    const funded = await admin(world.server.dataDir, "house", "deposit", "5", "lent");
    expect(JSON.parse(funded.out)).toMatchObject({ id: expect.any(Number), approval: null });
    const asked = await admin(world.server.dataDir, "deposit", "credited@example.com", "1usdc", "shell");
    expect(JSON.parse(asked.out)).toMatchObject({ id: null, approval: { approved_by: "admin" } });
    expect(await total()).toBe(108 * USDC);
  });

  test("the second of two operators takes a deposit back, whatever the case of its reference", async () => {
    const before = await total();
    const { data } = await reversal(second, "0XAB Back");
    expect(data).toMatchObject({ id: expect.any(Number), amount: -10 * USDC, reference: "0xab back", approval: null });
    expect(data).not.toHaveProperty("repeats");
    expect(await total()).toBe(before - 10 * USDC);
    expect(await waitingFor(first, "wallet.reverse_deposit", credited.id)).toEqual([]);
    expect((await reversal(first, "0XAB Back")).data).toEqual({ ...data, repeats: data.id });
    expect(await total()).toBe(before - 10 * USDC);
    // A deposit in two cases is one payment as well.
    const [typed, shouted] = [crediting(credited.id, 5, "0xcd"), crediting(credited.id, 5, "0XCD")];
    expect((await typed(first)).data.id).toBeNull();
    expect((await shouted(second)).data).toMatchObject({ id: expect.any(Number), reference: "0xcd" });
    // From the shell too; nobody takes back a deposit to their own account.
    const { dataDir } = world.server;
    const asked = await admin(dataDir, "deposit", "reverse", String(data.reverses), "5", "from the shell");
    expect(JSON.parse(asked.out)).toMatchObject({ id: null, amount: -5, approval: { approved_by: "admin" } });
    const own = await userNamed(first, "second");
    expect((await crediting(own.id, 5, "an operator's")(first)).data.id).toBeNull();
    const made = JSON.parse((await admin(dataDir, "deposit", "second@example.com", "5", "an operator's")).out);
    const path = `/admin/deposits/${made.id}/reverse`;
    await expectRefused(second.request("POST", path, { body: { amount: 5, reference: "own" } }), 403, 40300, /own/);
  });

  test("a payment that was made ends the first approvals of all others with its reference", async () => {
    const other = await userNamed(first, "valued");
    const reference = "mixed up";
    const wishes = [crediting(other.id, 3, reference), funding(3, reference), crediting(credited.id, 4, reference)];
    for (const wish of wishes) expect((await wish(first)).data.id).toBeNull();
    const waiting = async (): Promise<ApprovalJson[]> =>
      (await first.all<ApprovalJson>("/admin/approvals")).filter((each) => referenceOf(each) === reference);
    expect(await waiting()).toHaveLength(3);
    expect((await wishes[0]!(second)).data.id).not.toBeNull();
    expect(await waiting()).toEqual([]);
    for (const wish of wishes.slice(1))
      await expectRefused(wish(first), 409, 40900, /^reference: deposit \d+ of .* has it$/);
    // Asked for and made at the same time, again and again: nothing is left.
    for (let round = 0; round < 10; round++) {
      const [one, two] = [crediting(other.id, 1, `raced ${round}`), crediting(credited.id, 1, `raced ${round}`)];
      await one(first);
      await Promise.all([one(second), two(first), two(second)]);
      if ((await one(second)).data === null) await two(first);
      const left = await first.all<ApprovalJson>("/admin/approvals");
      const made = rowsOf(world.server.dataDir, "SELECT id FROM entries WHERE reference = ?", `raced ${round}`);
      if (made.length > 0) expect(left.filter((each) => referenceOf(each) === `raced ${round}`)).toEqual([]);
    }
  });

  test("the second of two operators sets the terms that both ask for, in any order of fields, and never their own", async () => {
    const set = await changeTerms(second, { pat_rebate: 20, trading_fee: 50 });
    expect(set.data).toMatchObject({ terms: { ...valued.terms, ...TERMS }, terms_approval: null });
    const [line] = auditOf(world.server.dataDir, set);
    const chain = { approved_by: termsApproval!.approved_by, approved_at: termsApproval!.created_at };
    expect(line).toMatchObject({ action: "user.set_terms", details: { ...TERMS, ...chain } });
    expect(await waitingFor(first, "user.set_terms", valued.id)).toEqual([]);
    const own = await userNamed(first, "operator");
    expect((await changeTerms(second, { daily_limit: 1 }, own.id)).data.terms_approval).not.toBeNull();
    await expectRefused(changeTerms(first, { daily_limit: 1 }, own.id), 403, 40300, /^the account is your own/);
  });
});
