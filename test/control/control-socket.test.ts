/** The control socket: it serves the operators' routes of the API without a token, and rejects everything else. */
import { once } from "node:events";
import { type Socket as Connection, connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlRequest, type ControlResponse, sendRequest } from "../../server/control/control-socket.ts";
import { MAX_BODY_BYTES } from "../../server/http/limits.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { login, PASSWORD, register } from "../support/identity.ts";
import { OPERATOR, type OperatorUserJson, operatorOf } from "../support/operator.ts";
import { PUBLIC_URL, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 2, named: { operator: OPERATOR }, env: { PUBLIC_URL } });
});
afterAll(() => expectEndsWell(world));

const path = (): string => join(world.server.dataDir, "control.sock");
const control = async (request: ControlRequest): Promise<ControlResponse> => (await sendRequest(path(), request))!;

/** Sends raw bytes; returns the response. */
async function send(...pieces: (string | Buffer)[]): Promise<ControlResponse> {
  const socket = connect(path());
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  const ended = once(socket, "end");
  for (const piece of pieces) await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
  await ended;
  return JSON.parse(answer) as ControlResponse;
}

describe("routes", () => {
  test("the control socket's routes respond as over HTTP, without a token", async () => {
    const operator = await operatorOf(world.server);
    const user = await operator.get<OperatorUserJson>("/admin/users/2");
    expect(await control({ method: "GET", path: "/admin/users/2" })).toEqual({ code: 0, msg: "ok", data: user });
    const list = await operator.get("/admin/users?role=user&limit=1");
    expect((await control({ method: "GET", path: "/admin/users", query: "role=user&limit=1" })).data).toEqual(list);
    operator.close();
  });

  test("the control socket's routes record the shell as the actor of a change, under a generated request id", async () => {
    const request = { method: "PATCH", path: "/admin/users/2/terms", body: { trading_fee: 70 } };
    expect(await control(request)).toMatchObject({ code: 0, data: { id: 2, terms: { trading_fee: 70 } } });
    const sql = "SELECT actor, user_id, details, address, request_id FROM audit_log WHERE action = 'user.set_terms'";
    expect(rowsOf(world.server.dataDir, sql)).toEqual([
      {
        actor: "admin",
        user_id: 2,
        details: '{"trading_fee":70}',
        address: null,
        request_id: expect.stringMatching(/^[0-9a-f]{12}-\w+$/),
      },
    ]);
  });

  test.each([
    ["a route that isn't for operators", { method: "GET", path: "/me" }, 4040, /no such path/],
    ["another user's routes", { method: "POST", path: "/orders", body: {} }, 4040, /no such path/],
    ["a path above the base", { method: "GET", path: "/api/v1/admin/users" }, 4040, /no such path/],
    ["another method", { method: "DELETE", path: "/admin/users" }, 40500, /takes GET/],
    ["an unknown user", { method: "GET", path: "/admin/users/77" }, 4040, /no such user/],
    ["a wrong query", { method: "GET", path: "/admin/users", query: "kyc_tier=7" }, 40000, /^kyc_tier: /],
    [
      "a wrong body",
      { method: "PATCH", path: "/admin/users/2/terms", body: { trading_fee: -1 } },
      40000,
      /^trading_fee: /,
    ],
    ["no body", { method: "PATCH", path: "/admin/users/2/terms" }, 40000, /^body: /],
    ["a body that isn't wanted", { method: "GET", path: "/admin/users", body: {} }, 40000, /^body: /],
    ["an unknown command", { command: "shutdown", args: [] }, 4040, /no such command: shutdown/],
    ["a command of the prototype", { command: "constructor", args: [] }, 4040, /no such command/],
  ])("the control socket rejects %s with the API's message", async (_what, request, code, message) => {
    expect(await control(request as ControlRequest)).toEqual({ code, msg: expect.stringMatching(message), data: null });
  });

  test.each([
    ["no JSON", "x\n", 40000, /not valid JSON/],
    ["an empty line", "\n", 40000, /not valid JSON/],
    ["malformed UTF-8", Buffer.from([0x22, 0xff, 0x22, 0x0a]), 40000, /not valid JSON/],
    ["a list", '["suspend","a@example.com"]\n', 40000, /required|unknown field|must be object/],
    ["null", "null\n", 40000, /not a JSON object/],
    ["a request without a path", '{"method":"GET"}\n', 40000, /^path: required/],
    ["an unknown field", '{"method":"GET","path":"/admin/users","token":"x"}\n', 40000, /^token: unknown field/],
    ["a command without arguments", '{"command":"keys rotate"}\n', 40000, /^args: required/],
    ["arguments that are no text", '{"command":"keys rotate","args":[1]}\n', 40000, /^args/],
    ["a line that never ends", "x".repeat(MAX_BODY_BYTES + 1), 40000, /larger than/],
  ])("the control socket rejects %s", async (_what, bytes, code, message) => {
    expect(await send(bytes)).toEqual({ code, msg: expect.stringMatching(message), data: null });
  });

  test("a request to the control socket may be large and arrive in pieces", async () => {
    const line = JSON.stringify({ method: "POST", path: "/admin/users/2/suspend", body: { note: "é".repeat(30_000) } });
    expect(await send(line.slice(0, 100), line.slice(100, 20_000), `${line.slice(20_000)}\n`)).toMatchObject({
      code: 40000,
      msg: expect.stringMatching(/^note: /),
    });
  });
});

describe("operators", () => {
  test("operators are created, granted and removed; the role applies at once, in open sessions, and over a kill -9", async () => {
    const made = await control({ command: "operator create", args: ["New@Example.com"] });
    expect(made).toMatchObject({ code: 0, data: { email: "new@example.com", role: "operator" } });
    const { id, password } = made.data as { id: number; password: string };
    expect(password.length).toBeGreaterThanOrEqual(20);
    const { data } = await login(world.server, "new@example.com", password);
    expect(data.user).toMatchObject({ id, email_verified: true, kyc_tier: 0, role: "operator" });
    const again = await control({ command: "operator create", args: ["new@example.com"] });
    expect(again).toMatchObject({ code: 40900, msg: "email: already registered" });

    await register(world.server, "plain@example.com");
    const session = (await login(world.server, "plain@example.com")).data.access_token;
    const client = new Client(world.server, session);
    const code = async (): Promise<number> => (await client.request("GET", "/admin/users")).code;
    expect(await code()).toBe(40300);
    const grant = { command: "operator grant", args: ["PLAIN@example.com"] };
    const both = await Promise.all([control(grant), control(grant)]);
    expect(both.map((answer) => answer.code).sort()).toEqual([0, 40900]);
    expect(await code()).toBe(0);
    client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    const later = new Client(world.server, session);
    expect((await later.request("GET", "/admin/users")).code).toBe(0);
    expect(await control({ command: "operator remove", args: ["plain@example.com"] })).toMatchObject({ code: 0 });
    expect(await later.request("GET", "/admin/users")).toMatchObject({ code: 40300, msg: "for operators only" });
    later.close();
    expect(await control({ command: "operator remove", args: ["plain@example.com"] })).toMatchObject({ code: 40900 });
    const sql =
      "SELECT action, actor, user_id FROM audit_log WHERE actor = 'admin' AND action LIKE 'user.%' AND user_id >= ?";
    expect(rowsOf(world.server.dataDir, sql, id)).toEqual([
      { action: "user.create", actor: "admin", user_id: id },
      { action: "user.make_operator", actor: "admin", user_id: id },
      { action: "user.make_operator", actor: "admin", user_id: id + 1 },
      { action: "user.remove_operator", actor: "admin", user_id: id + 1 },
    ]);
  });

  test("of two concurrent creations of one operator one succeeds", async () => {
    const request = { command: "operator create", args: ["twin@example.com"] };
    const both = await Promise.all([control(request), control(request)]);
    expect(both.map(({ code }) => code).sort()).toEqual([0, 40900]);
    const { password } = both.find(({ code }) => code === 0)!.data as { password: string };
    expect(await login(world.server, "twin@example.com", password)).toMatchObject({ code: 0 });
  });

  test("the last operator can be removed: the shell still serves", async () => {
    expect(await control({ command: "operator remove", args: ["operator@example.com"] })).toMatchObject({ code: 0 });
    expect(await login(world.server, "operator@example.com", PASSWORD)).toMatchObject({
      data: { user: { role: "user" } },
    });
    expect(await control({ method: "GET", path: "/admin/users", query: "role=operator" })).toMatchObject({ code: 0 });
  });

  test.each([["operator create"], ["operator grant"], ["operator remove"]])(
    "the control socket's %s requires an email address",
    async (command) => {
      for (const args of [[], [""], ["nobody"]]) {
        const answer = await control({ command, args });
        expect(answer).toMatchObject({ code: 40000, msg: expect.stringMatching(/^email: /) });
      }
      if (command !== "operator create") {
        expect(await control({ command, args: ["nobody@example.com"] })).toMatchObject({ code: 4040 });
      }
    },
  );
});

describe("open connections", () => {
  const connected = async (): Promise<Connection> => {
    const socket = connect({ path: path(), allowHalfOpen: true });
    await once(socket, "connect");
    return socket;
  };

  test("a client that half-closes the control socket after its request gets the response", async () => {
    const socket = await connected();
    let text = "";
    socket.setEncoding("utf8").on("data", (part) => {
      text += part;
    });
    const body = { user_id: 1, amount: 5, reference: "half" };
    socket.end(`${JSON.stringify({ method: "POST", path: "/admin/deposits", body })}\n`);
    await once(socket, "end");
    expect(JSON.parse(text)).toMatchObject({ code: 0, data: body });
  });

  // The last test: it stops the server.
  test("connections of the control socket never delay a stop: one after its request, one within it, one that never sends any", async () => {
    const [answered, asking, silent] = [await connected(), await connected(), await connected()];
    answered.write('{"method":"GET","path":"/admin/users"}\n');
    answered.resume();
    await once(answered, "end");
    asking.write('{"method":"GET"');
    await expectBalanced(world.anonymous());
    await world.server.stop();
    for (const socket of [answered, asking, silent]) socket.destroy();
  });
});
