/**
 * Withdrawals from the request to their end: what is held and when it is free, who may decide, that exactly one of two
 * decisions wins, the two-person rule, and that a killed server knows at its next start what it had said.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import { MAX_NOTE_LENGTH } from "../../server/http/limits.ts";
import { MAX_PENDING_WITHDRAWALS } from "../../server/wallet/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, BalanceJson, Client, TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { Guests, messagesTo, PASSWORD } from "../support/identity.ts";
import {
  ADDRESS,
  type AdminWithdrawalJson,
  type ApprovalJson,
  ask,
  auditOf,
  cancel,
  type DecisionJson,
  deposit,
  expectAddsUp,
  pay,
  refuse,
  type WithdrawalJson,
  type WithdrawalWithTrailJson,
  withdraw,
} from "../support/money.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

const DEPOSIT = 100 * USDC;
const PEOPLE = 18;
const OPERATORS = ["chief", "deputy"];

let world: World;
let market: TestMarket;
const guests = new Guests();
let chief: Client;
let deputy: Client;
let chiefName: string;
let deputyName: string;

async function start(env: Record<string, string> = {}): Promise<void> {
  const operators = OPERATORS.map((name) => [
    name,
    { role: "operator" as const, password: PASSWORD, deposit: DEPOSIT },
  ]);
  const people = Array.from({ length: PEOPLE }, (_, n) => [`person${n}`, { deposit: DEPOSIT, password: PASSWORD }]);
  const named = Object.fromEntries([...operators, ...people, ["small", { tier: 1, password: PASSWORD }]]);
  world = await World.start({ users: 0, named, env: { PUBLIC_URL, ...env } });
  market = world.market();
  const signedIn = await Promise.all(OPERATORS.map((name) => guests.signIn(world.server, `${name}@example.com`)));
  [chief, deputy] = signedIn.map(({ client }) => client) as [Client, Client];
  [chiefName, deputyName] = signedIn.map(({ user }) => `operator ${user.id}`) as [string, string];
}

let people = 0;
/** A fresh user's session, with 100 USDC. */
async function person(): Promise<Client & { userId: number; email: string }> {
  const email = `person${people++}@example.com`;
  const { client, user } = await guests.signIn(world.server, email);
  return Object.assign(client, { userId: user.id, email });
}

/** Sessions outlive the server, not its port. */
const again = <T extends Client>(client: T): T =>
  Object.assign(guests.client(world.server, client.token), { ...client, server: world.server }) as unknown as T;

const balanceOf = (held: number, total = DEPOSIT): BalanceJson => ({ available: total - held, held, total });
const actions = (answer: Answer): string[] => auditOf(world.server.dataDir, answer).map(({ action }) => action);

async function stop(): Promise<void> {
  await expectBalanced(world.anonymous());
  guests.close();
  await expectEndsWell(world);
}

describe("one operator is enough", () => {
  beforeAll(() => start());
  afterAll(stop);

  test("what is asked for is held at once, told to the user, and mailed", async () => {
    const user = await person();
    const socket = await world.socket(user);
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
    expect(auditOf(world.server.dataDir, answer)).toEqual([
      {
        ...{ action: "withdrawal.request", actor: `user ${user.userId}`, user_id: user.userId, subject: data.id },
        details: { amount: 30 * USDC + 1, address: ADDRESS },
      },
    ]);
    await eventually(async () => {
      const mails = messagesTo(world.server, user.email).filter((text) => text.includes("was requested"));
      expect(mails).toHaveLength(1);
      expect(mails[0]).toContain("30.000001 USDC");
      expect(mails[0]).toContain(`\n${ADDRESS}\n`);
    });
    // What is held buys nothing, and can't be asked for again.
    await expectRefused(ask(user, 70 * USDC), 422, 42201, /available/);
    const order = terms(market, 0, BUY, 9_999, 71);
    await expectRefused(user.request("POST", "/orders", { body: order }), 422, 42201);
    await socket.close();
  });

  test("a cancel gives it back, once", async () => {
    const user = await person();
    const { id, ...made } = await withdraw(user, DEPOSIT);
    expect(await user.balance()).toEqual(balanceOf(DEPOSIT));
    const answer = await cancel(user, id);
    expect(answer.data).toEqual({ ...made, id, status: "canceled", decided_at: answer.data.decided_at });
    expect(answer.data.decided_at).toBeGreaterThanOrEqual(made.created_at);
    expect(await user.balance()).toEqual(balanceOf(0));
    expect(actions(answer)).toEqual(["withdrawal.cancel"]);
    await expectRefused(cancel(user, id), 409, 40900, /is canceled/);
    await expectRefused(pay(chief, id), 409, 40900, /is canceled/);
    await expectRefused(refuse(chief, id), 409, 40900, /is canceled/);
    expect(await user.balance()).toEqual(balanceOf(0));
  });

  test("a payment takes it out; its reference makes it repeatable", async () => {
    const user = await person();
    const socket = await world.socket(user);
    const before = await world.anonymous().solvency();
    const made = await withdraw(user, 40 * USDC);
    const answer = await pay(chief, made.id, { reference: "tx-1", note: "Überwiesen" });
    const paid = { ...made, status: "paid", reference: "tx-1", note: "Überwiesen" };
    const decided_at = answer.data.withdrawal.decided_at;
    expect(answer.data).toEqual({
      withdrawal: { ...paid, decided_at, user_id: user.userId, email: user.email },
      approval: null,
    });
    expect(await user.get(`/wallet/withdrawals/${made.id}`)).toEqual({ ...paid, decided_at });
    const { trail, ...shown } = await chief.get<WithdrawalWithTrailJson>(`/admin/withdrawals/${made.id}`);
    expect(shown).toEqual(answer.data.withdrawal);
    expect(trail.deposits).toMatchObject([{ amount: DEPOSIT, credited_by: "seed", approved_by: null }]);
    expect(await user.balance()).toEqual(balanceOf(0, 60 * USDC));
    await socket.frame<BalanceJson>("balance.updated", ({ total, held }) => total === 60 * USDC && held === 0);
    const [last] = await user.all<TransactionJson>("/wallet/transactions?type=withdrawal");
    expect(last).toMatchObject({ type: "withdrawal", amount: -40 * USDC, balance_after: 60 * USDC });
    await expectAddsUp(user);
    expect(auditOf(world.server.dataDir, answer)).toEqual([
      {
        ...{ action: "withdrawal.pay", actor: chiefName, user_id: user.userId, subject: made.id },
        details: {
          ...{ user_id: user.userId, amount: 40 * USDC, address: ADDRESS },
          ...{ reference: "tx-1", note: "Überwiesen" },
        },
      },
    ]);
    expect((await world.anonymous().solvency()).withdrawals).toBe(before.withdrawals + 40 * USDC);
    const repeated = await pay(deputy, made.id, { reference: "tx-1" });
    expect(repeated.data).toEqual(answer.data);
    expect(actions(repeated)).toEqual([]);
    for (const body of [{}, { reference: "tx-2" }, { note: "x" }]) {
      await expectRefused(pay(chief, made.id, body), 409, 40900, /is paid/);
    }
    await expectRefused(refuse(chief, made.id), 409, 40900, /is paid/);
    await expectRefused(cancel(user, made.id), 409, 40900, /is paid/);
    expect(await user.balance()).toEqual(balanceOf(0, 60 * USDC));
    await eventually(async () => {
      expect(messagesTo(world.server, user.email).filter((text) => text.includes("was paid\n"))).toHaveLength(1);
    });
    await socket.close();
  });

  test("a refusal gives it back, with a note and a mail", async () => {
    const user = await person();
    const made = await withdraw(user, 12_500_000);
    const answer = await refuse(chief, made.id, { note: "wrong chain" });
    expect(answer.data).toMatchObject({ withdrawal: { status: "refused", note: "wrong chain" }, approval: null });
    expect(await user.get(`/wallet/withdrawals/${made.id}`)).toMatchObject({ status: "refused", note: "wrong chain" });
    expect(await user.balance()).toEqual(balanceOf(0));
    expect(auditOf(world.server.dataDir, answer)).toEqual([
      {
        ...{ action: "withdrawal.refuse", actor: chiefName, user_id: user.userId, subject: made.id },
        details: { amount: 12_500_000, note: "wrong chain" },
      },
    ]);
    await eventually(async () => {
      const mails = messagesTo(world.server, user.email).filter((text) => text.includes("was refused"));
      expect(mails).toHaveLength(1);
      expect(mails[0]).toContain("12.50 USDC");
    });
  });

  test("a reference pays one withdrawal; one that is another's changes nothing", async () => {
    const user = await person();
    const [first, second] = [await withdraw(user, USDC), await withdraw(user, USDC)];
    await pay(chief, first.id, { reference: "once" });
    await expectRefused(pay(chief, second.id, { reference: "once" }), 409, 40900, /reference/);
    expect(await user.balance()).toEqual(balanceOf(USDC, 99 * USDC));
    expect((await pay(chief, second.id, { reference: "twice" })).data.withdrawal.status).toBe("paid");
    expect(await user.balance()).toEqual(balanceOf(0, 98 * USDC));
  });

  test("two at once never hold more than there is, and neither do an order and a withdrawal", async () => {
    const user = await person();
    const wide = guests.client(world.server, user.token, 8);
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(wide, 30 * USDC)));
    expect(answers.map(({ code }) => code).sort()).toEqual([0, 0, 0, ...Array(5).fill(42201)]);
    expect(await user.balance()).toEqual(balanceOf(90 * USDC));
    const order = terms(market, 0, BUY, 5_000, 20);
    const [placed, asked] = await Promise.all([
      wide.request<{ id: number }>("POST", "/orders", { body: order }),
      ask(wide, 10 * USDC),
    ]);
    expect([placed.code, asked.code].sort()).toEqual([0, 42201]);
    expect(await user.balance()).toEqual(balanceOf(DEPOSIT));
    if (placed.code === 0) await user.cancel(placed.data.id);
  });

  test("a cancel and a payment at once: exactly one wins", async () => {
    const user = await person();
    let total = DEPOSIT;
    for (let i = 0; i < 12; i++) {
      const { id } = await withdraw(user, USDC);
      const deciding = [cancel(user, id), pay(chief, id), refuse(deputy, id)] as Promise<Answer>[];
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

  test("no more than so many may be pending; each end makes room", async () => {
    const user = await person();
    const wide = guests.client(world.server, user.token, 8);
    const answers = await Promise.all(Array.from({ length: MAX_PENDING_WITHDRAWALS + 3 }, () => ask(wide, 1)));
    const made = answers.filter(({ code }) => code === 0);
    expect(made).toHaveLength(MAX_PENDING_WITHDRAWALS);
    expect(answers.filter(({ code }) => code === 42900)).toHaveLength(3);
    await cancel(user, made[0]!.data.id);
    await pay(chief, made[1]!.data.id);
    await refuse(chief, made[2]!.data.id);
    for (let i = 0; i < 3; i++) await withdraw(user, 1);
    await expectRefused(ask(user, 1), 429, 42900, /pending/);
    // Whoever has not the money isn't counted.
    const poor = await person();
    for (let i = 0; i <= MAX_PENDING_WITHDRAWALS; i++) await expectRefused(ask(poor, DEPOSIT + 1), 422, 42201);
    await withdraw(poor, 1);
  });

  test("bad requests name what is wrong, and hold nothing", async () => {
    const user = await person();
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
      await expectRefused(pay(chief, id, body), 400, 40000, /^reference/);
    }
    await expectRefused(pay(chief, id, { note: "x".repeat(MAX_NOTE_LENGTH + 1) }), 400, 40000, /^note/);
    await expectRefused(refuse(chief, id, { note: "a\u0000" }), 400, 40000, /^note/);
    await expectRefused(refuse(chief, id, { reference: "x" }), 400, 40000, /^reference: unknown field/);
    expect((await user.get<WithdrawalJson>(`/wallet/withdrawals/${id}`)).status).toBe("pending");
    await expectRefused(user.request("GET", "/wallet/withdrawals?status=done"), 400, 40000, /^status/);
    await expectRefused(chief.request("GET", "/admin/withdrawals?user_id=0"), 400, 40000, /^user_id/);
  });

  test("tier 2 only, by a session only; another's is not there", async () => {
    const small = (await guests.signIn(world.server, "small@example.com")).client;
    await expectRefused(ask(small, 1), 403, 40300, /tier 2/);
    expect(await small.get("/wallet/withdrawals")).toEqual({ items: [], next_cursor: null });
    await expectRefused(ask(world.client("person0"), 1), 403, 40300, /this kind of token/);
    await expectRefused(world.client("person0").request("GET", "/wallet/withdrawals"), 403, 40300);
    const [owner, other] = [await person(), await person()];
    const { id } = await withdraw(owner, USDC);
    await expectRefused(other.request("GET", `/wallet/withdrawals/${id}`), 404, 4040);
    await expectRefused(cancel(other, id), 404, 4040);
    await expectRefused(cancel(chief, id), 404, 4040);
    await expectRefused(pay(other, id), 403, 40300, /operators only/);
    await expectRefused(pay(chief, 999_999), 404, 4040);
    await expectRefused(refuse(chief, 999_999), 404, 4040);
    await cancel(owner, id);
    await expectRefused(cancel(other, id), 404, 4040);
    // An operator's own: another operator decides on it, the owner may cancel it.
    const own = await withdraw(chief, USDC);
    await expectRefused(pay(chief, own.id), 403, 40300, /^the account is your own/);
    await expectRefused(refuse(chief, own.id), 403, 40300, /^the account is your own/);
    expect(await chief.balance()).toEqual(balanceOf(USDC));
    expect((await pay(deputy, own.id)).data.withdrawal.status).toBe("paid");
  });

  test("lists: newest first by cursor, of one status, of one user", async () => {
    const user = await person();
    const made: WithdrawalJson[] = [];
    for (let i = 1; i <= 6; i++) made.unshift(await withdraw(user, i));
    await cancel(user, made[0]!.id);
    await pay(chief, made[1]!.id);
    const listed = await user.all<WithdrawalJson>("/wallet/withdrawals", 2);
    expect(listed.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(listed.map(({ status }) => status)).toEqual(["canceled", "paid", ...Array(4).fill("pending")]);
    const pending = await user.all<WithdrawalJson>("/wallet/withdrawals?status=pending", 3);
    expect(pending.map(({ id }) => id)).toEqual(made.slice(2).map(({ id }) => id));
    const paths = [`/admin/withdrawals?user_id=${user.userId}`, "/admin/withdrawals", "/admin/withdrawals?status=paid"];
    const [ofUser, all, paid] = await Promise.all(paths.map((path) => chief.all<AdminWithdrawalJson>(path, 5)));
    expect(ofUser!.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(all!.slice(0, 6)).toEqual(ofUser);
    expect(all!.length).toBeGreaterThan(6);
    expect(new Set(paid!.map(({ status }) => status))).toEqual(new Set(["paid"]));
    const waiting = await chief.all<AdminWithdrawalJson>("/admin/withdrawals?status=pending", 3);
    expect(waiting).toEqual(all!.filter(({ status }) => status === "pending"));
  });

  test("a suspended user's stay, and are not paid meanwhile", async () => {
    const user = await person();
    const [first, second] = [await withdraw(user, USDC), await withdraw(user, 2 * USDC)];
    const { dataDir } = world.server;
    expect((await admin(dataDir, "suspend", user.email)).code).toBe(0);
    await expectRefused(pay(chief, first.id), 409, 40900, /suspended/);
    expect((await refuse(chief, second.id)).data.withdrawal.status).toBe("refused");
    expect((await chief.get<AdminWithdrawalJson>(`/admin/withdrawals/${first.id}`)).status).toBe("pending");
    expect((await admin(dataDir, "restore", user.email)).code).toBe(0);
    expect((await pay(chief, first.id)).data.withdrawal.status).toBe("paid");
    const back = (await guests.signIn(world.server, user.email)).client;
    expect(await back.balance()).toEqual(balanceOf(0, 99 * USDC));
  });

  test("kill -9 between request and decision: the hold is back, and nothing happens twice", async () => {
    let user = await person();
    const [paid, canceled, pending] = [
      await withdraw(user, 1),
      await withdraw(user, 2),
      await withdraw(user, 30 * USDC),
    ];
    expect((await pay(chief, paid.id, { reference: "before" })).code).toBe(0);
    expect((await cancel(user, canceled.id)).code).toBe(0);
    const order = await user.place(terms(market, 0, BUY, 5_000, 20));
    await world.server.kill();
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    [user, chief, deputy] = [again(user), again(chief), again(deputy)];
    expect(await user.balance()).toEqual(balanceOf(40 * USDC, DEPOSIT - 1));
    await expectRefused(ask(user, 60 * USDC), 422, 42201);
    expect((await pay(chief, paid.id, { reference: "before" })).data.withdrawal.status).toBe("paid");
    await expectRefused(cancel(user, canceled.id), 409, 40900);
    expect((await pay(chief, pending.id)).data.withdrawal.status).toBe("paid");
    await user.cancel(order.id);
    await eventually(async () => expect(await user.balance()).toEqual(balanceOf(0, 70 * USDC - 1)));
    await expectAddsUp(user);
  });

  test("kill -9 while requests and decisions are under way: what was answered is so, the rest is whole or not at all", async () => {
    let user = await person();
    const made = await Promise.all(Array.from({ length: 10 }, () => withdraw(user, USDC)));
    const wide = guests.client(world.server, user.token, 8);
    const operator = guests.client(world.server, chief.token, 8);
    const answered = new Map<number, string>();
    let first: () => void = () => {};
    const one = new Promise<void>((resolve) => {
      first = resolve;
    });
    const attempts = made.flatMap(({ id }, i) => {
      const asked: Promise<Answer>[] = [i % 2 === 0 ? pay(operator, id) : cancel(wide, id), ask(wide, USDC)];
      return asked.map((attempt, n) =>
        attempt.then(
          ({ code }) => {
            if (code === 0 && n === 0) answered.set(id, i % 2 === 0 ? "paid" : "canceled");
            first();
          },
          () => {},
        ),
      );
    });
    await one;
    await world.server.kill();
    await Promise.all(attempts);
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    [user, chief, deputy] = [again(user), again(chief), again(deputy)];
    const listed = await user.all<WithdrawalJson>("/wallet/withdrawals");
    for (const [id, status] of answered) expect(listed.find((row) => row.id === id)!.status).toBe(status);
    const sum = (wanted: string): number =>
      listed.filter(({ status }) => status === wanted).reduce((total, { amount }) => total + amount, 0);
    expect(await user.balance()).toEqual(balanceOf(sum("pending"), DEPOSIT - sum("paid")));
    await expectAddsUp(user);
  });
});

describe("with the two-person rule", () => {
  beforeAll(async () => {
    people = 0;
    await start({ TWO_PERSON_RULE: "withdrawals" });
  });
  afterAll(stop);

  const approvals = (): Promise<ApprovalJson[]> => chief.all<ApprovalJson>("/admin/approvals");

  test("the second of two operators pays; the first alone does not, however often it asks", async () => {
    const user = await person();
    const { id } = await withdraw(user, USDC);
    const body = { reference: "two", note: "paid by two" };
    const first = await pay(chief, id, body);
    expect(first.data.withdrawal.status).toBe("pending");
    const { approval } = first.data;
    expect(approval).toEqual({
      ...{ id: approval!.id, action: "withdrawal.pay", subject: id, approved_by: chiefName },
      details: { user_id: user.userId, amount: USDC, address: ADDRESS, ...body },
      created_at: approval!.created_at,
    });
    expect(actions(first)).toEqual(["withdrawal.pay.approve"]);
    const repeated = await pay(chief, id, body);
    expect([repeated.data, actions(repeated)]).toEqual([first.data, []]);
    expect(await approvals()).toEqual([approval]);
    await expectRefused(
      pay(deputy, id, { reference: "other", note: "paid by two" }),
      409,
      40900,
      /something different/,
    );
    expect(await user.balance()).toEqual(balanceOf(USDC));
    const second = await pay(deputy, id, body);
    expect(second.data).toMatchObject({ withdrawal: { status: "paid", ...body }, approval: null });
    expect(auditOf(world.server.dataDir, second)).toMatchObject([{ action: "withdrawal.pay", actor: deputyName }]);
    expect(await approvals()).toEqual([]);
    expect(await user.balance()).toEqual(balanceOf(0, 99 * USDC));
    expect((await pay(chief, id, body)).data).toEqual(second.data);
  });

  test("both at once are one approval, or a payment by two", async () => {
    const user = await person();
    const { id } = await withdraw(user, USDC);
    const answers = await Promise.all([pay(chief, id), pay(deputy, id)]);
    expect(answers.map(({ code }) => code).sort()).toEqual([0, 40900]);
    expect(await approvals()).toHaveLength(1);
    for (const operator of [chief, deputy]) await pay(operator, id);
    expect(await approvals()).toEqual([]);
    expect(await user.balance()).toEqual(balanceOf(0, 99 * USDC));
    await expectAddsUp(user);
  });

  test("nobody approves of a payment to oneself", async () => {
    const { id } = await withdraw(chief, USDC);
    await expectRefused(pay(chief, id), 403, 40300, /^the account is your own/);
    expect((await pay(deputy, id)).data.approval).not.toBeNull();
    await expectRefused(pay(chief, id), 403, 40300, /^the account is your own/);
    expect((await refuse(deputy, id)).data.withdrawal.status).toBe("refused");
    expect(await approvals()).toEqual([]);
  });

  test("a cancel or a refusal, by one alone, ends what one approved of", async () => {
    const user = await person();
    for (const end of [(id: number) => cancel(user, id), (id: number) => refuse(deputy, id)] as const) {
      const { id } = await withdraw(user, USDC);
      await pay(chief, id, { reference: `open ${id}` });
      expect(await approvals()).toHaveLength(1);
      expect(((await end(id)) as Answer).code).toBe(0);
      expect(await approvals()).toEqual([]);
      expect(await user.balance()).toEqual(balanceOf(0));
      await expectRefused(pay(deputy, id, { reference: `open ${id}` }), 409, 40900);
    }
    const open = rowsOf(world.server.dataDir, "SELECT id FROM approvals WHERE ended_at IS NULL");
    expect(open).toEqual([]);
  });

  test("an approval can be taken back, by any operator; then it takes two again", async () => {
    const user = await person();
    const { id } = await withdraw(user, USDC);
    for (const operator of [chief, deputy]) {
      const { approval } = (await pay(chief, id)).data;
      const answer = await operator.request<ApprovalJson>("DELETE", `/admin/approvals/${approval!.id}`);
      expect(answer.data).toEqual(approval);
      const actor = operator === chief ? chiefName : deputyName;
      expect(auditOf(world.server.dataDir, answer)).toMatchObject([
        { action: "withdrawal.pay.take_back", actor, subject: id },
      ]);
      await expectRefused(operator.request("DELETE", `/admin/approvals/${approval!.id}`), 404, 4040);
      expect(await approvals()).toEqual([]);
    }
    expect((await pay(deputy, id)).data.approval).toMatchObject({ approved_by: deputyName });
    expect(await user.balance()).toEqual(balanceOf(USDC));
    await cancel(user, id);
  });

  test("taken back and paid at once: what was paid stays paid, and no approval outlives it", async () => {
    const user = await person();
    for (let i = 0; i < 10; i++) {
      const { id } = await withdraw(user, 1);
      const { approval } = (await pay(chief, id)).data;
      const take = (): Promise<Answer> => chief.request("DELETE", `/admin/approvals/${approval!.id}`);
      const second = (): Promise<Answer<DecisionJson>> => pay(deputy, id);
      const racing = i % 2 === 0 ? [take(), second()] : [second(), take()];
      await Promise.all(racing);
      const { status } = await user.get<WithdrawalJson>(`/wallet/withdrawals/${id}`);
      const left = await approvals();
      if (status === "paid") expect(left).toEqual([]);
      else await refuse(deputy, id);
      expect(await approvals()).toEqual([]);
    }
    await expectAddsUp(user);
  });

  test("first approvals are listed by cursor, and outlive a kill -9", async () => {
    let user = await person();
    const ids: number[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await withdraw(user, USDC)).id);
    for (const id of ids.toReversed()) await pay(chief, id);
    const before = await chief.all<ApprovalJson>("/admin/approvals", 2);
    expect(before.filter(({ subject }) => ids.includes(subject)).map(({ subject }) => subject)).toEqual(ids);
    await world.server.kill();
    world.server = await world.server.restart();
    [user, chief, deputy] = [again(user), again(chief), again(deputy)];
    expect(await chief.all<ApprovalJson>("/admin/approvals", 2)).toEqual(before);
    expect((await pay(chief, ids[0]!)).data.approval).not.toBeNull();
    expect((await pay(deputy, ids[0]!)).data.withdrawal.status).toBe("paid");
    expect(await user.balance()).toEqual(balanceOf(4 * USDC, 99 * USDC));
  });

  test("the house's earnings take two as well; its funds and a user's deposit don't", async () => {
    const path = "/admin/house/withdrawals";
    await chief.data("POST", "/admin/house/deposits", { amount: 5 * USDC, reference: "fund" });
    const { house } = await world.anonymous().solvency();
    const body = { amount: 2 * USDC, reference: "profit" };
    const first = await chief.request<{ withdrawal: null; approval: ApprovalJson }>("POST", path, { body });
    expect(first.data).toMatchObject({
      withdrawal: null,
      approval: { action: "house.withdraw", subject: 0, details: body },
    });
    expect((await world.anonymous().solvency()).house).toBe(house);
    await expectRefused(
      deputy.request("POST", path, { body: { ...body, amount: USDC } }),
      409,
      40900,
      /something different/,
    );
    const second = await deputy.request<{ withdrawal: { id: number }; approval: null }>("POST", path, { body });
    expect(second.data).toMatchObject({ withdrawal: body, approval: null });
    expect((await world.anonymous().solvency()).house).toBe(house - 2 * USDC);
    expect((await chief.request("POST", path, { body })).data).toEqual(second.data);
    expect((await world.anonymous().solvency()).house).toBe(house - 2 * USDC);
    expect(await approvals()).not.toContainEqual(expect.objectContaining({ action: "house.withdraw" }));
    const user = await person();
    await deposit(chief, user.userId, USDC, "alone");
  });
});
