/**
 * What operators do to users over the API: lists, suspension, decisions on identity applications. Each with invalid
 * inputs, with two requests at once, over a kill -9, and with its line in the audit log. The tests share one server and
 * restart it twice: once killed, and once with more users than one read looks at.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_NOTE_LENGTH } from "../../server/http/limits.ts";
import { MAX_USERS_WALKED } from "../../server/operators/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectEnded, expectEndsWell } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { freshEmail, Guests, login, messagesTo, PASSWORD, type SignedIn, signIn, signUp } from "../support/identity.ts";
import { type ApplicationJson, OPERATOR, type OperatorUserJson, operatorOf, userNamed } from "../support/operator.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

const UNKNOWN_ID = 999_999_999;
const PASSPORT = { document_type: "passport", document_number: "C01X00T47", country: "DE" };

let world: World;
let operator: Client;
const guests = new Guests();
beforeAll(async () => {
  const named = {
    operator: OPERATOR,
    other: OPERATOR,
    tier0: { tier: 0 },
    tier1: { tier: 1, password: PASSWORD },
    trader: { password: PASSWORD, deposit: 70 * USDC },
    returner: {},
    twice: {},
  };
  world = await World.start({ users: 3, named, env: { PUBLIC_URL: "http://exchange.test" }, markets: [2, 2, 2] });
  operator = await operatorOf(world.server, "operator", 4);
});
afterAll(async () => {
  operator.close();
  guests.close();
  await expectEndsWell(world);
});

const post = (path: string, body: object = {}, client = operator): Promise<Answer> =>
  client.request("POST", path, { body });
const codes = (answers: readonly Answer[]): number[] => answers.map(({ code }) => code).sort();
const auditsOf = (requestId: unknown): object[] =>
  rowsOf(
    world.server.dataDir,
    "SELECT action, actor, user_id, subject, details FROM audit_log WHERE request_id = ?",
    String(requestId),
  );
const idOf = async (name: string): Promise<number> => (await userNamed(operator, name)).id;

describe("users", () => {
  test("a user is shown with all fields that an operator decides by", async () => {
    const market = world.market();
    const trader = world.client("trader");
    await trader.place(terms(market, 0, BUY, 1_000, 20));
    const user = await userNamed(operator, "trader");
    expect(user).toEqual({
      id: user.id,
      email: "trader@example.com",
      email_verified: true,
      phone: null,
      phone_verified: true,
      kyc_tier: 2,
      role: "user",
      suspended_at: null,
      second_factors: 0,
      balance: { available: 68 * USDC, held: 2 * USDC, total: 70 * USDC },
      daily_activity: { used: 2 * USDC, limit: 10_000 * USDC },
      terms: {
        daily_limit: null,
        trading_fee: null,
        maker_rebate: null,
        pat_rebate: null,
        merge_fee: null,
        rate_limit_factor: null,
        max_live_orders: null,
      },
      terms_approval: null,
      created_at: user.created_at,
    });
    expect(await operator.get(`/admin/users/${user.id}`)).toEqual(user);
    await trader.data("DELETE", "/orders");
  });

  test("the list of users is newest first, by cursor, and takes each filter", async () => {
    const all = await operator.all<OperatorUserJson>("/admin/users", 2);
    expect(all.map(({ id }) => id)).toEqual(all.map((_, i) => all.length - i));
    const emails = async (query: string): Promise<string[]> =>
      (await operator.all<OperatorUserJson>(`/admin/users?${query}`, 2))
        .map(({ email }) => email.split("@")[0]!)
        .sort();
    expect(await emails("role=operator")).toEqual(["operator", "other"]);
    expect(await emails("kyc_tier=0")).toEqual(["tier0"]);
    expect(await emails("kyc_tier=1")).toEqual(["tier1"]);
    expect(await emails("email=TRADER@example.com")).toEqual(["trader"]);
    expect(await emails("email=trader@example.com&role=operator")).toEqual([]);
    expect(await emails("email=nobody@example.com")).toEqual([]);
    expect(await emails("suspended=true")).toEqual([]);
    expect(await emails("suspended=false&role=user&kyc_tier=2")).toEqual([
      "returner",
      "trader",
      "twice",
      "user0",
      "user1",
      "user2",
    ]);
  });

  test.each([
    ["/admin/users?role=admin", /^role: must be one of user, operator/],
    ["/admin/users?kyc_tier=3", /^kyc_tier: /],
    ["/admin/users?suspended=yes", /^suspended: /],
    ["/admin/users?email=nobody", /^email: /],
    ["/admin/users?limit=0", /^limit: /],
    ["/admin/users?cursor=x", /^cursor: /],
    ["/admin/users?name=x", /^name: unknown field/],
    ["/admin/identity-applications?status=open", /^status: must be one of pending, approved, refused/],
  ])("an operator's list of users: %s is rejected", async (path, message) => {
    expect(await operator.request("GET", path)).toMatchObject({ code: 40000, msg: expect.stringMatching(message) });
  });

  test.each([
    ["GET", "/admin/users/0"],
    ["GET", `/admin/users/${UNKNOWN_ID}`],
    ["GET", "/admin/users/trader@example.com"],
    ["POST", `/admin/users/${UNKNOWN_ID}/suspend`],
    ["POST", `/admin/users/${UNKNOWN_ID}/restore`],
    ["POST", `/admin/identity-applications/${UNKNOWN_ID}/approve`],
    ["POST", "/admin/identity-applications/x/refuse"],
  ])("an operator's request for an unknown user: %s %s is 4040", async (method, path) => {
    const answer = await operator.request(method, path, method === "POST" ? { body: {} } : {});
    expect([answer.status, answer.code]).toEqual([404, 4040]);
  });
});

describe("suspension", () => {
  test("of two suspensions at once one succeeds; a repeated one is a conflict, and nobody suspends themselves", async () => {
    const id = await idOf("twice");
    const both = await Promise.all([1, 2].map(() => post(`/admin/users/${id}/suspend`)));
    expect(codes(both)).toEqual([0, 40900]);
    expect(await post(`/admin/users/${id}/suspend`)).toMatchObject({ code: 40900, msg: /already/ });
    const back = await Promise.all([1, 2].map(() => post(`/admin/users/${id}/restore`)));
    expect(codes(back)).toEqual([0, 40900]);
    const sql = "SELECT action FROM audit_log WHERE user_id = ? AND action LIKE 'user.%e%' AND actor LIKE 'operator %'";
    expect(rowsOf(world.server.dataDir, sql, id)).toEqual([{ action: "user.suspend" }, { action: "user.restore" }]);
    const own = await post(`/admin/users/${await idOf("operator")}/suspend`);
    expect(own).toMatchObject({ status: 403, code: 40300, msg: expect.stringMatching(/^the account is your own/) });
    expect((await userNamed(operator, "operator")).suspended_at).toBeNull();
    // One operator may suspend another, who is no operator for the duration.
    const other = await operatorOf(world.server, "other");
    const otherId = await idOf("other");
    expect(await post(`/admin/users/${otherId}/suspend`)).toMatchObject({ code: 0 });
    expect(await other.request("GET", "/admin/users")).toMatchObject({ code: 40300, msg: "the account is suspended" });
    expect(await post(`/admin/users/${otherId}/restore`)).toMatchObject({ code: 0 });
    other.close();
  });

  test("memory and database agree after concurrent suspensions and restorations", async () => {
    const id = await idOf("twice");
    for (let round = 0; round < 10; round++) {
      const wishes = Array.from({ length: 4 }, (_, i) => (i % 2 === round % 2 ? "suspend" : "restore"));
      const answers = await Promise.all(wishes.map((wish) => post(`/admin/users/${id}/${wish}`)));
      for (const { code } of answers) expect([0, 40900]).toContain(code);
      const sql = "SELECT suspended_at FROM users WHERE id = ?";
      const [row] = rowsOf<{ suspended_at: number | null }>(world.server.dataDir, sql, id);
      expect((await userNamed(operator, "twice")).suspended_at).toBe(row!.suspended_at);
    }
    // Another test lists the suspended users.
    if ((await userNamed(operator, "twice")).suspended_at !== null) await post(`/admin/users/${id}/restore`);
  });

  test.each([
    ["an empty note", { note: "" }, /^note: /],
    ["a note that is too long", { note: "x".repeat(MAX_NOTE_LENGTH + 1) }, /^note: /],
    ["a note that is no text", { note: 1 }, /^note: /],
    ["an unknown field", { reason: "x" }, /^reason: unknown field/],
    ["a list", [], /^body: /],
  ])("a suspension: %s is rejected and changes nothing", async (_what, body, message) => {
    const id = await idOf("tier1");
    for (const path of [`users/${id}/suspend`, `users/${id}/restore`, "identity-applications/1/approve"]) {
      const answer = await post(`/admin/${path}`, body);
      expect(answer).toMatchObject({ code: 40000, msg: expect.stringMatching(message) });
    }
    expect((await userNamed(operator, "tier1")).suspended_at).toBeNull();
  });
});

const apply = (client: Client): Promise<ApplicationJson> => client.data("POST", "/me/identity", PASSPORT);

describe("identity applications", () => {
  test("identity applications are listed newest first while they wait, by cursor", async () => {
    const people = await Promise.all(
      [1, 2, 3].map(async (n) => guests.keep(await signUp(world.server, freshEmail(), 1, `+1415555268${n}`))),
    );
    const ids: number[] = [];
    for (const { client } of people) ids.push((await apply(client)).id);
    const pending = await operator.all<ApplicationJson>("/admin/identity-applications?status=pending", 1);
    expect(pending.map(({ id }) => id)).toEqual(ids.toReversed());
    for (const id of ids) expect(await post(`/admin/identity-applications/${id}/refuse`)).toMatchObject({ code: 0 });
    expect(await operator.all("/admin/identity-applications")).toEqual([]);
  });

  test("an operator's own application is for another operator to decide", async () => {
    const { client, user } = await signIn(world.server, "tier1@example.com");
    const { id } = await apply(client);
    expect(await admin(world.server.dataDir, "operator", "grant", "tier1@example.com")).toMatchObject({ code: 0 });
    const own = await post(`/admin/identity-applications/${id}/approve`, {}, client);
    expect([own.status, own.code]).toEqual([403, 40300]);
    expect(await post(`/admin/identity-applications/${id}/approve`)).toMatchObject({
      code: 0,
      data: { user_id: user.id },
    });
    client.close();
  });
});

describe("over a kill -9", () => {
  let market: TestMarket;
  let requestIds: Record<"suspend" | "restore" | "refuse", unknown>;
  const orderAt = (client: Client, price: number): Promise<OrderJson> => client.place(terms(market, 0, BUY, price, 1));

  let orders: OrderJson[];
  let tokens: string[];
  /** A user with orders and sockets is suspended. */
  async function suspendTrader(): Promise<void> {
    const id = await idOf("trader");
    const trader = guests.client(world.server, tokenOf("trader"), 4);
    const session = await guests.signIn(world.server, "trader@example.com");
    tokens = [tokenOf("trader"), session.accessToken];
    orders = await Promise.all([100, 200, 300].map((price) => orderAt(trader, price)));
    const sockets = await Promise.all(tokens.map((token) => Socket.open(world.server, token)));
    const answer = await post(`/admin/users/${id}/suspend`, { note: "asked for papers" });
    expect(answer).toMatchObject({ code: 0, data: { id, suspended_at: expect.any(Number) } });
    requestIds.suspend = answer.headers["x-request-id"];
    await expectEnded(...sockets);
  }

  let returnersOrder: OrderJson;
  async function suspendAndRestore(): Promise<void> {
    const id = await idOf("returner");
    returnersOrder = await orderAt(guests.client(world.server, tokenOf("returner")), 100);
    expect(await post(`/admin/users/${id}/suspend`)).toMatchObject({ code: 0 });
    const restored = await post(`/admin/users/${id}/restore`, { tokens: "restore" });
    expect(restored).toMatchObject({ code: 0, data: { id, suspended_at: null } });
    requestIds.restore = restored.headers["x-request-id"];
  }

  /** A user is suspended whose placements are in flight. */
  async function suspendBusyTrader(): Promise<void> {
    const id = await idOf("user0");
    const trader = guests.client(world.server, tokenOf("user0"), 6);
    let going = true;
    const loops = Array.from({ length: 6 }, async () => {
      while (going) {
        const { code } = await trader.request("POST", "/orders", { body: terms(market, 0, BUY, 100, 1) });
        if (code === 40300) return;
        expect(code).toBe(0);
      }
    });
    await eventually(async () => expect((await userNamed(operator, "user0")).balance.held).toBeGreaterThan(0));
    expect(await post(`/admin/users/${id}/suspend`)).toMatchObject({ code: 0 });
    await Promise.all(loops);
    going = false;
    expect((await userNamed(operator, "user0")).balance.held).toBe(0);
  }

  const expectMail = (email: string, subject: string): Promise<void> =>
    eventually(async () => expect(messagesTo(world.server, email).join()).toContain(`Subject: ${subject}`));
  let applicants: SignedIn[];
  let refused: ApplicationJson;
  /** Each applicant's pending application. */
  let applications: ApplicationJson[];
  async function refuseAndApplyAgain(): Promise<void> {
    const [person] = applicants as [SignedIn];
    const { email } = person.user;
    const { id } = await apply(person.client);
    const listed = await operator.all<ApplicationJson>(`/admin/identity-applications?email=${email.toUpperCase()}`);
    const waiting = {
      ...{ ...PASSPORT, id, user_id: person.user.id, email },
      ...{ status: "pending", note: null, decided_at: null },
    };
    expect(listed).toEqual([{ ...waiting, created_at: expect.any(Number) }]);
    const decision = { status: "refused", note: "the copy can't be read" };
    const answer = await post(`/admin/identity-applications/${id}/refuse`, { note: decision.note });
    expect(answer).toMatchObject({ code: 0, data: { id, ...decision } });
    refused = answer.data as ApplicationJson;
    requestIds.refuse = answer.headers["x-request-id"];
    expect(await person.client.get("/me/identity")).toMatchObject(decision);
    // The kill would take a message that the server has not sent yet.
    await expectMail(email, "We could not verify your identity");
    applications = await Promise.all(applicants.map(({ client }) => apply(client)));
    // The decision on the first application is final.
    expect(await post(`/admin/identity-applications/${id}/approve`)).toMatchObject({ status: 409, code: 40900 });
  }

  /** Three concurrent decisions on one application: one succeeds. */
  async function decideOnce(applicant: SignedIn, { id }: ApplicationJson): Promise<"approved" | "refused"> {
    const answers = await Promise.all(
      (["approve", "approve", "refuse"] as const).map((name) => post(`/admin/identity-applications/${id}/${name}`)),
    );
    expect(codes(answers)).toEqual([0, 40900, 40900]);
    if (answers[2]!.code === 0) return "refused";
    await expectMail(applicant.user.email, "Your identity is verified");
    return "approved";
  }

  async function expectDecided({ user }: SignedIn, { id }: ApplicationJson, status: string): Promise<void> {
    expect((await operator.get<OperatorUserJson>(`/admin/users/${user.id}`)).kyc_tier).toBe(
      status === "approved" ? 2 : 1,
    );
    const query = `status=${status}&email=${user.email}`;
    const [found] = await operator.all<ApplicationJson>(`/admin/identity-applications?${query}`);
    expect(found).toMatchObject({ id, status, note: null });
  }

  let decidedBefore: "approved" | "refused";
  beforeAll(async () => {
    market = world.market();
    requestIds = { suspend: null, restore: null, refuse: null };
    await suspendTrader();
    await suspendAndRestore();
    await suspendBusyTrader();
    applicants = [
      guests.keep(await signUp(world.server, freshEmail(), 1)),
      guests.keep(await signUp(world.server, freshEmail(), 1)),
    ];
    await refuseAndApplyAgain();
    decidedBefore = await decideOnce(applicants[1]!, applications[1]!);
    // All of it is durable by now.
    operator.close();
    await world.server.kill();
    world.server = await world.server.restart();
    operator = await operatorOf(world.server, "operator", 4);
  });

  test("a suspension ends sockets and orders, rejects tokens, is in the audit log, and lasts over a kill -9", async () => {
    const id = await idOf("trader");
    for (const token of tokens) {
      expect(await guests.client(world.server, token).request("GET", "/me")).toMatchObject({ code: 40300 });
    }
    expect(await login(world.server, "trader@example.com")).toMatchObject({ code: 40300 });
    const rows = rowsOf<{ status: number; reason: number }>(
      world.server.dataDir,
      `SELECT status, reason FROM orders WHERE id IN (${orders.map((order) => order.id).join()})`,
    );
    expect(rows).toEqual(orders.map(() => ({ status: 6, reason: 9 })));
    expect(await operator.all<OperatorUserJson>("/admin/users?suspended=true")).toMatchObject([
      { id: await idOf("user0"), balance: { held: 0 } },
      { id, balance: { held: 0 } },
    ]);
    expect(auditsOf(requestIds.suspend)).toEqual([
      expect.objectContaining({ action: "session.end", user_id: id, details: '{"reason":"account_suspended"}' }),
      {
        action: "user.suspend",
        actor: `operator ${await idOf("operator")}`,
        user_id: id,
        subject: id,
        details: '{"note":"asked for papers"}',
      },
    ]);
    const restored = await post(`/admin/users/${id}/restore`, { tokens: "restore" });
    expect(restored).toMatchObject({ code: 0, data: { id, suspended_at: null } });
    await orderAt(guests.client(world.server, tokenOf("trader")), 100);
  });

  test("a restored user trades, without the orders from before", async () => {
    const client = guests.client(world.server, tokenOf("returner"));
    expect((await client.get<OrderJson>(`/orders/${returnersOrder.id}`)).reason).toBe("operator");
    await orderAt(client, 100);
    const id = await idOf("returner");
    expect(auditsOf(requestIds.restore)).toMatchObject([{ action: "user.restore", user_id: id }]);
  });

  test("the suspension of a user with placements in flight leaves no order behind", async () => {
    expect((await userNamed(operator, "user0")).balance.held).toBe(0);
  });

  test("an identity application is decided once, and the user reads the decision with its note", async () => {
    const [person, other] = applicants as [SignedIn, SignedIn];
    await expectDecided(other, applications[1]!, decidedBefore);
    await expectDecided(person, applications[0]!, await decideOnce(person, applications[0]!));
    expect(auditsOf(requestIds.refuse)).toMatchObject([
      { action: "identity.refuse", user_id: person.user.id, subject: refused.id },
    ]);
  });
});

test("a rare filter value takes several reads, each of which names the cursor to go on from", async () => {
  const before = {
    operators: await operator.all<OperatorUserJson>("/admin/users?role=operator"),
    tier0: await operator.all<OperatorUserJson>("/admin/users?kyc_tier=0"),
  };
  operator.close();
  await world.server.stop();
  const count = 2 * MAX_USERS_WALKED + 5;
  withDatabase(world.server.dataDir, (db) => {
    const from = 1 + (db.prepare("SELECT max(id) FROM users").pluck().get() as number);
    const numbers = `WITH RECURSIVE n (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${from + count - 1})`;
    // The server deletes unverified users. Times rise with ids.
    const time = db.prepare("SELECT max(created_at) FROM users").pluck().get();
    db.exec(`INSERT INTO users (id, email, role, kyc_tier, created_at, email_verified_at)
      ${numbers} SELECT i, 'person-' || i || '@example.com', 'user', 0, ${time}, ${time} FROM n;
      INSERT INTO accounts (user_id, balance, activity_day, activity_used) ${numbers} SELECT i, 0, 0, 0 FROM n;`);
  });
  world.server = await world.server.restart();
  operator = await operatorOf(world.server);
  const first = await operator.get<{ items: object[]; next_cursor: string }>("/admin/users?role=operator");
  expect(first).toEqual({ items: [], next_cursor: expect.any(String) });
  expect(await operator.all<OperatorUserJson>("/admin/users?role=operator")).toEqual(before.operators);
  expect(before.operators.at(-1)).toMatchObject({ id: 1 });
  expect((await operator.all("/admin/users?kyc_tier=0")).length).toBe(before.tier0.length + count);
});
