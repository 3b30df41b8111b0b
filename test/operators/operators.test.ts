/**
 * What operators do to users over the API: lists, suspension, decisions on identity applications. Each with its bad
 * inputs, with two at once, over a kill -9, and with its line in the audit log.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_NOTE_LENGTH } from "../../server/http/limits.ts";
import { MAX_USERS_WALKED } from "../../server/operators/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectEnded, expectEndsWell, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { freshEmail, Guests, login, messagesTo, PASSWORD, signIn, signUp } from "../support/identity.ts";
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

async function restart(): Promise<void> {
  operator.close();
  await world.server.kill();
  world.server = await world.server.restart();
  operator = await operatorOf(world.server, "operator", 4);
}

describe("users", () => {
  test("a user is shown with all that an operator decides by", async () => {
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

  test("the list goes by cursor, newest first, and by each filter", async () => {
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
  ])("%s is refused", async (path, message) => {
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
  ])("%s %s names nobody", async (method, path) => {
    const answer = await operator.request(method, path, method === "POST" ? { body: {} } : {});
    expect([answer.status, answer.code]).toEqual([404, 4040]);
  });
});

describe("suspension", () => {
  test("ends sockets and orders, refuses tokens, is noted, and lasts over a kill -9", async () => {
    const market = world.market();
    const id = await idOf("trader");
    const trader = guests.client(world.server, tokenOf("trader"), 4);
    const session = await guests.signIn(world.server, "trader@example.com");
    const placed = await Promise.all([100, 200, 300].map((price) => trader.place(terms(market, 0, BUY, price, 1))));
    const sockets = await Promise.all(
      [tokenOf("trader"), session.accessToken].map((each) => Socket.open(world.server, each)),
    );
    const answer = await post(`/admin/users/${id}/suspend`, { note: "asked for papers" });
    expect(answer).toMatchObject({ code: 0, data: { id, suspended_at: expect.any(Number) } });
    await expectEnded(...sockets);
    // All of it is durable by now.
    await restart();
    for (const token of [tokenOf("trader"), session.accessToken]) {
      expect(await guests.client(world.server, token).request("GET", "/me")).toMatchObject({ code: 40300 });
    }
    expect(await login(world.server, "trader@example.com")).toMatchObject({ code: 40300 });
    const orders = rowsOf<{ status: number; reason: number }>(
      world.server.dataDir,
      `SELECT status, reason FROM orders WHERE id IN (${placed.map((order) => order.id).join()})`,
    );
    expect(orders).toEqual(placed.map(() => ({ status: 6, reason: 9 })));
    expect(await operator.all<OperatorUserJson>("/admin/users?suspended=true")).toMatchObject([
      { id, balance: { held: 0 } },
    ]);
    expect(auditsOf(answer.headers["x-request-id"])).toEqual([
      {
        action: "user.suspend",
        actor: `operator ${await idOf("operator")}`,
        user_id: id,
        subject: id,
        details: '{"note":"asked for papers"}',
      },
    ]);

    const restored = await post(`/admin/users/${id}/restore`);
    expect(restored).toMatchObject({ code: 0, data: { id, suspended_at: null } });
    await restart();
    const again = guests.client(world.server, tokenOf("trader"));
    expect((await again.get<OrderJson>(`/orders/${placed[0]!.id}`)).reason).toBe("operator");
    await again.place(terms(market, 0, BUY, 100, 1));
    expect(auditsOf(restored.headers["x-request-id"])).toMatchObject([{ action: "user.restore", user_id: id }]);
  });

  test("of two at once one counts; what is so already, and oneself, is a conflict", async () => {
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
    // One operator may suspend another, who is one no longer while it lasts.
    const other = await operatorOf(world.server, "other");
    const otherId = await idOf("other");
    expect(await post(`/admin/users/${otherId}/suspend`)).toMatchObject({ code: 0 });
    expect(await other.request("GET", "/admin/users")).toMatchObject({ code: 40300, msg: "the account is suspended" });
    expect(await post(`/admin/users/${otherId}/restore`)).toMatchObject({ code: 0 });
    other.close();
  });

  test("suspended and restored at random by two, memory and database agree", async () => {
    const id = await idOf("twice");
    for (let round = 0; round < 10; round++) {
      const wishes = Array.from({ length: 4 }, (_, i) => (i % 2 === round % 2 ? "suspend" : "restore"));
      const answers = await Promise.all(wishes.map((wish) => post(`/admin/users/${id}/${wish}`)));
      for (const { code } of answers) expect([0, 40900]).toContain(code);
      const sql = "SELECT suspended_at FROM users WHERE id = ?";
      const [row] = rowsOf<{ suspended_at: number | null }>(world.server.dataDir, sql, id);
      expect((await userNamed(operator, "twice")).suspended_at).toBe(row!.suspended_at);
    }
  });

  test.each([
    ["an empty note", { note: "" }, /^note: /],
    ["a note that is too long", { note: "x".repeat(MAX_NOTE_LENGTH + 1) }, /^note: /],
    ["a note that is no text", { note: 1 }, /^note: /],
    ["an unknown field", { reason: "x" }, /^reason: unknown field/],
    ["a list", [], /^body: /],
  ])("%s is refused and changes nothing", async (_what, body, message) => {
    const id = await idOf("tier1");
    for (const path of [`users/${id}/suspend`, `users/${id}/restore`, "identity-applications/1/approve"]) {
      const answer = await post(`/admin/${path}`, body);
      expect(answer).toMatchObject({ code: 40000, msg: expect.stringMatching(message) });
    }
    expect((await userNamed(operator, "tier1")).suspended_at).toBeNull();
  });

  test("while a user trades, it leaves no order behind", async () => {
    const market: TestMarket = world.market();
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
    await restart();
    expect((await userNamed(operator, "user0")).balance.held).toBe(0);
  });
});

describe("identity applications", () => {
  const apply = (client: Client): Promise<ApplicationJson> => client.data("POST", "/me/identity", PASSPORT);

  test("are listed with what they say, decided once, and told to the user with the note", async () => {
    const email = freshEmail();
    const person = guests.keep(await signUp(world.server, email, 1));
    const { id } = await apply(person.client);
    const listed = await operator.all<ApplicationJson>(`/admin/identity-applications?email=${email.toUpperCase()}`);
    const waiting = {
      ...PASSPORT,
      id,
      user_id: person.user.id,
      email,
      status: "pending",
      note: null,
      decided_at: null,
    };
    expect(listed).toEqual([{ ...waiting, created_at: expect.any(Number) }]);
    const refused = await post(`/admin/identity-applications/${id}/refuse`, { note: "the copy can't be read" });
    expect(refused).toMatchObject({ code: 0, data: { id, status: "refused", note: "the copy can't be read" } });
    expect(await person.client.get("/me/identity")).toMatchObject({
      status: "refused",
      note: "the copy can't be read",
    });
    const expectMail = (subject: string): Promise<void> =>
      eventually(async () => expect(messagesTo(world.server, email).join()).toContain(`Subject: ${subject}`));
    // A message that is still on its way goes with the process.
    await expectMail("We could not verify your identity");
    const second = await apply(person.client);
    // The first is decided for good.
    expect(await post(`/admin/identity-applications/${id}/approve`)).toMatchObject({ status: 409, code: 40900 });
    await restart();
    const approved = await Promise.all(
      (["approve", "approve", "refuse"] as const).map((name) =>
        post(`/admin/identity-applications/${second.id}/${name}`),
      ),
    );
    expect(codes(approved)).toEqual([0, 40900, 40900]);
    const isApproved = approved[2]!.code !== 0;
    if (isApproved) await expectMail("Your identity is verified");
    await restart();
    const user = await operator.get<OperatorUserJson>(`/admin/users/${person.user.id}`);
    expect(user.kyc_tier).toBe(isApproved ? 2 : 1);
    const status = isApproved ? "approved" : "refused";
    const found = await operator.all<ApplicationJson>(`/admin/identity-applications?status=${status}&email=${email}`);
    expect(found[0]).toMatchObject({ id: second.id, status, note: null });
    expect(auditsOf(refused.headers["x-request-id"])).toMatchObject([
      { action: "identity.refuse", user_id: person.user.id, subject: id },
    ]);
  });

  test("wait newest first among many that are decided, and go by cursor", async () => {
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

  test("an operator's own is another's to decide", async () => {
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

test("a filter that fits little looks at so many users, and says where to go on", async () => {
  const lonely = await World.start({
    users: 0,
    named: { operator: OPERATOR },
    env: { PUBLIC_URL: "http://exchange.test" },
  });
  await lonely.server.stop();
  const count = 2 * MAX_USERS_WALKED + 5;
  withDatabase(lonely.server.dataDir, (db) => {
    const numbers = `WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ${count})`;
    // Verified, or they would be deleted; no older than the operator, since times rise with ids.
    const time = db.prepare("SELECT created_at FROM users WHERE id = 1").pluck().get();
    db.exec(`INSERT INTO users (id, email, role, kyc_tier, created_at, email_verified_at)
      ${numbers} SELECT i, 'person-' || i || '@example.com', 'user', 0, ${time}, ${time} FROM n;
      INSERT INTO accounts ${numbers} SELECT i, 0, 0, 0 FROM n;`);
  });
  lonely.server = await lonely.server.restart();
  const client = await operatorOf(lonely.server);
  const first = await client.get<{ items: object[]; next_cursor: string }>("/admin/users?role=operator");
  expect(first).toEqual({ items: [], next_cursor: expect.any(String) });
  expect(await client.all<OperatorUserJson>("/admin/users?role=operator")).toMatchObject([{ id: 1 }]);
  expect((await client.all("/admin/users?kyc_tier=0")).length).toBe(count);
  client.close();
  expectQuiet(lonely.server);
  await lonely.server.stop();
  expectSoundDatabase(lonely.server.dataDir);
});
