/**
 * How personal access tokens end and what is seen of their use: immediate revocation, the bound on their number, the
 * last use, and the rebates of orders placed with one.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEnded, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import type { Client, OwnFillJson } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { type CreatedPatJson, Guests, PASSWORD, signIn } from "../support/identity.ts";
import { notional, rebateOn } from "../support/reference.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { amend, BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, type UserSpec, World } from "../support/world.ts";
import { askMe, enter as enterAs, list, make as makeFor, PATH, recordOf, revoke, tryMake } from "./pat-holder.ts";

const MAX_PATS = 100;
const TRADING = ["orders:write", "portfolio:read"];

const NAMES = ["using", "revoking", "owner", "stranger", "managing", "crowd", "maker", "taker"];

let world: World;
const guests = new Guests();
const { secrets } = guests;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name): [string, UserSpec] => [name, { password: PASSWORD, scopes: [] }]));
  world = await World.start({
    named,
    users: 1,
    markets: [2, 2, 2],
    env: { PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
});

afterAll(async () => {
  guests.close();
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

const clientOf = (token: string, sockets = 1): Client => guests.client(world.server, token, sockets);
const enter = (name: string): Promise<Client> => enterAs(guests, world, name);
const make = (session: Client, more?: object): Promise<CreatedPatJson> => makeFor(guests, session, more);

describe("the end of a token", () => {
  test("a token's revocation ends all of its connections and sockets at once, and no other token's", async () => {
    const session = await enter("revoking");
    const { server } = world;
    const [made, other] = [await make(session), await make(session)];
    const connections = [clientOf(made.token), clientOf(made.token), clientOf(made.token)];
    for (const client of connections) expect((await askMe(client)).code).toBe(0);
    const sockets = await Promise.all([1, 2].map(() => Socket.open(server, made.token)));
    const [otherSocket, ownSocket] = [await Socket.open(server, other.token), await Socket.open(server, session.token)];
    for (const id of ["0", "-1", "x", "1.5", `0${made.id}`, `${made.id}x`, "999999999", "99999999999999999999"]) {
      await expectRefused(revoke(session, id), 404, 4040);
    }
    expect(await revoke(session, made.id)).toMatchObject({ status: 200, code: 0, data: null });
    const answers = await Promise.all(connections.map((client) => askMe(client)));
    expect(answers.map(({ status, code }) => [status, code])).toEqual(connections.map(() => [401, 40100]));
    await expectEnded(...sockets);
    expect(await refusedUpgrade(server, made.token)).toEqual([401, 40100]);
    await expectRefused(revoke(session, made.id), 404, 4040);
    expect((await list(session)).map(({ id }) => id)).toEqual([other.id]);
    for (const socket of [otherSocket, ownSocket]) {
      await socket.fence();
      await socket.close();
    }
    expect((await askMe(clientOf(other.token))).code).toBe(0);
  });

  test("another user cannot see or revoke a token, and a logout doesn't end it", async () => {
    const [owner, stranger] = [await enter("owner"), await enter("stranger")];
    const made = await make(owner);
    await expectRefused(revoke(stranger, made.id), 404, 4040);
    expect(await list(stranger)).toEqual([]);
    await owner.data("POST", "/auth/logout");
    expect((await askMe(clientOf(made.token))).code).toBe(0);
    expect((await list(await enter("owner"))).map(({ id }) => id)).toEqual([made.id]);
  });

  test("a token cannot manage the account", async () => {
    const session = await enter("managing");
    const made = await make(session);
    const client = clientOf(made.token);
    const [{ id }] = (await session.all<{ id: number }>("/me/sessions")) as [{ id: number }];
    const password = { current: PASSWORD, new: "nine lanterns over the weir" };
    const oauthClient = { name: "c", redirect_uris: ["https://client.example/"], confidential: true };
    const document = { document_type: "passport", document_number: "1", country: "PT" };
    const calls: [method: string, path: string, body?: object][] = [
      ["GET", PATH],
      ["POST", PATH, { name: "more", scopes: ALL_SCOPES }],
      ["DELETE", `${PATH}/${made.id}`],
      ["GET", "/me/sessions"],
      ["DELETE", `/me/sessions/${id}`],
      ["POST", "/auth/logout"],
      ["POST", "/me/password", password],
      ["POST", "/me/phone", { phone: "+14155552671" }],
      ["POST", "/me/phone/verify", { code: "123456" }],
      ["POST", "/me/identity", document],
      ["GET", "/me/identity"],
      ["GET", "/me/oauth-grants"],
      ["DELETE", "/me/oauth-grants/1"],
      ["GET", "/me/oauth-clients"],
      ["POST", "/me/oauth-clients", oauthClient],
      ["DELETE", "/me/oauth-clients/1"],
      ["POST", "/oauth/authorize", { decision: "approve" }],
    ];
    for (const [method, path, body] of calls) {
      const answer = await client.request(method, path, body === undefined ? {} : { body });
      expect([method, path, answer.status, answer.code]).toEqual([method, path, 403, 40300]);
    }
    // The server checks access before anything else.
    await expectRefused(client.request("POST", PATH, { body: "{" }), 403, 40300);
    expect((await askMe(session)).code).toBe(0);
    expect((await list(session)).map((each) => each.id)).toEqual([made.id]);
    expect((await signIn(world.server, "managing@example.com")).user.email).toBe("managing@example.com");
  });

  test("a user has a hundred at most, even if parallel requests create them", async () => {
    const session = await enter("crowd");
    const crowd = clientOf(session.token!, 32);
    const tries = Array.from({ length: MAX_PATS + 10 }, (_, i) => tryMake(crowd, { name: `bot ${i}` }));
    const answers = await Promise.all(tries);
    const made = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status, code }) => status === 409 && code === 40900);
    expect([made.length, refused.length]).toEqual([MAX_PATS, 10]);
    expect(await list(session, 30)).toHaveLength(MAX_PATS);
    await expectRefused(tryMake(session, {}), 409, 40900);
    expect((await revoke(session, made[0]!.data.id)).code).toBe(0);
    await make(session);
    await expectRefused(tryMake(session, {}), 409, 40900);
  });
});

describe("the use of a token", () => {
  test("a token's last use is recorded, over HTTP and on a socket", async () => {
    const session = await enter("using");
    const [used, opened, idle] = [await make(session), await make(session), await make(session)];
    const before = Date.now();
    await expectRefused(clientOf(used.token).request("GET", "/me/sessions"), 403, 40300);
    const socket = await Socket.open(world.server, opened.token);
    await socket.close();
    const after = Date.now();
    for (const { id } of [used, opened]) {
      const { last_used_at } = await recordOf(session, id);
      expect(last_used_at).toBeGreaterThanOrEqual(before);
      expect(last_used_at).toBeLessThanOrEqual(after);
    }
    expect((await recordOf(session, idle.id)).last_used_at).toBeNull();
  });

  test("a maker's rebate is 10 BPS for an order placed with a token, and 5 with a session", async () => {
    const market = world.market();
    const maker = await enter("maker");
    const pat = clientOf((await make(maker, { scopes: TRADING })).token);
    const taker = clientOf((await make(await enter("taker"), { scopes: TRADING })).token);
    const [sessionSocket, patSocket] = [
      await Socket.open(world.server, maker.token),
      await Socket.open(world.server, pat.token),
    ];
    const place = (price: number) => terms(market, 0, BUY, price, 3);
    const viaSocket = async (socket: Socket, price: number): Promise<number> =>
      (await socket.data<{ id: number }>("order.place", place(price))).id;
    /** Maps each order's id to the kind of token that placed it. */
    const makers = new Map<number, "session" | "pat">();
    makers.set((await maker.place(place(6_789))).id, "session");
    makers.set((await pat.place(place(6_677))).id, "pat");
    makers.set(await viaSocket(sessionSocket, 6_543), "session");
    makers.set(await viaSocket(patSocket, 6_431), "pat");
    // An amended order keeps its original kind.
    const [amendedPat, amendedSession] = [await pat.place(place(5_001)), await maker.place(place(5_003))];
    await amend(maker, amendedPat.id, { price: 6_333 });
    await amend(pat, amendedSession.id, { price: 6_211 });
    makers.set(amendedPat.id, "pat").set(amendedSession.id, "session");

    await world.split(taker, market, 3 * makers.size);
    const { house } = await taker.solvency();
    await taker.place(terms(market, 0, SELL, 6_000, 3 * makers.size));
    const fills = await maker.all<OwnFillJson>("/me/fills");
    expect(fills.map(({ order_id }) => order_id).sort()).toEqual([...makers.keys()].sort());
    let rebates = 0;
    for (const { order_id, price, quantity, role, rebate } of fills) {
      const expected = rebateOn(notional(price, quantity), makers.get(order_id) === "pat");
      expect([order_id, role, rebate]).toEqual([order_id, "maker", expected]);
      rebates += rebate;
    }
    const credited = await maker.all<{ amount: number }>("/wallet/transactions?type=rebate");
    expect(credited.reduce((sum, { amount }) => sum + amount, 0)).toBe(rebates);
    const taken = await taker.all<OwnFillJson>("/me/fills");
    expect(taken.map(({ role, rebate }) => [role, rebate])).toEqual(taken.map(() => ["taker", 0]));
    const fees = taken.reduce((sum, { fee }) => sum + fee, 0);
    expect((await taker.solvency()).house - house).toBe(fees - rebates);
    for (const socket of [sessionSocket, patSocket]) await socket.close();
  });
});
