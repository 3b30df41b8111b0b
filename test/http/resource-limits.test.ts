/**
 * Limits on resources that all clients share: WebSocket connections of an IP address, third-party clients of an account and
 * of an address. Limits on orders are test/trading/, rates of requests are rate-limits.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { freshAddress, PASSWORD, signIn } from "../support/identity.ts";
import { expectRefused } from "../support/trading.ts";
import { World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  const names = ["one", "two", "maker"];
  const named = Object.fromEntries(names.map((name) => [name, { password: PASSWORD }]));
  const env = { MAX_SOCKETS_PER_ADDRESS: "3", RATE_LIMITS: "on", TRUSTED_PROXIES: "127.0.0.1" };
  world = await World.start({ users: 1, named, env });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe("WebSocket connections of one IP address", () => {
  /** Opens one from an address; returns the socket, or the status where the server rejects it. */
  function open(address: string, query = ""): Promise<WebSocket | number> {
    const url = `ws://127.0.0.1:${world.server.port}/api/v1/ws${query}`;
    const socket = new WebSocket(url, { headers: { "X-Forwarded-For": address } });
    return new Promise((resolve) => {
      socket.on("open", () => resolve(socket));
      socket.on("unexpected-response", (_, { statusCode = 0, headers }) => {
        if (statusCode === 429) expect(Number(headers["retry-after"])).toBeGreaterThan(0);
        resolve(statusCode);
      });
      socket.on("error", () => {});
    });
  }

  test("WebSocket connections are bounded by the client's address behind a proxy; each close makes room", async () => {
    const [address, other] = [freshAddress(), freshAddress()];
    const sockets = await Promise.all(Array.from({ length: 5 }, () => open(address)));
    expect(sockets.filter((socket) => socket === 429)).toHaveLength(2);
    const opened = sockets.filter((socket) => typeof socket !== "number");
    expect(typeof (await open(other))).toBe("object");
    opened[0]!.close();
    await expect.poll(async () => typeof (await open(address))).toBe("object");
    expect(await open(address)).toBe(429);
    // An upgrade with a wrong token takes no place.
    for (let i = 0; i < 5; i++) expect(await open(freshAddress(), "?token=wrong")).toBe(401);
    const last = freshAddress();
    for (let i = 0; i < 5; i++) expect(await open(last, "?token=wrong")).toBe(401);
    const three = await Promise.all(Array.from({ length: 3 }, () => open(last)));
    expect(three.map((socket) => typeof socket)).toEqual(["object", "object", "object"]);
  });
});

describe("third-party clients", () => {
  const URI = "https://app.example/";
  /** Registers a client from an address, by default one that nobody else uses. */
  const register = (client: Client, redirect_uris: readonly string[], address = freshAddress()) => {
    const body = { name: "app", redirect_uris, confidential: true };
    const headers = { "X-Forwarded-For": address };
    return client.request<{ id: number }>("POST", "/me/oauth-clients", { body, headers });
  };
  const uri = (length: number): string => `${URI}${"x".repeat(length - 20)}`;
  const BYTES = "SELECT coalesce(sum(length(name) + length(redirect_uris)), 0) FROM oauth_clients";
  const ROWS = "SELECT count(*) FROM oauth_clients";
  /** The only value of the only row. */
  const count = (sql: string): number =>
    Object.values(rowsOf<Record<string, number>>(world.server.dataDir, sql)[0]!)[0]!;

  test("registrations of third-party clients are at most 20 a minute from one IP address, whoever registers them", async () => {
    const people = [await signIn(world.server, "one@example.com"), await signIn(world.server, "two@example.com")];
    const address = freshAddress();
    for (let i = 0; i < 20; i++) expect((await register(people[i % 2]!.client, [URI], address)).code).toBe(0);
    for (const { client } of people) {
      const { headers } = await expectRefused(register(client, [URI], address), 429, 42900);
      expect([headers["ratelimit-limit"], Number(headers["retry-after"]) > 0]).toEqual(["20", true]);
    }
    expect((await register(people[0]!.client, [URI])).code).toBe(0);
    for (const { client } of people) client.close();
  });

  test("third-party clients are at most 50 of one account, with 4 KiB of redirect URIs each; a removed client leaves neither text nor row", async () => {
    const { client } = await signIn(world.server, "maker@example.com");
    const large = [uri(2_000), uri(1_999), `https://b.example/${"y".repeat(77)}`];
    expect(large.join("\n")).toHaveLength(4_096);
    const tooLarge = [...large.slice(0, 2), `${large[2]}z`];
    await expectRefused(register(client, tooLarge), 400, 40000, /^redirect_uris: at most 4096/);
    const [bytes, rows] = [count(BYTES), count(ROWS)];
    const ids: number[] = [];
    for (let i = 0; i < 50; i++) ids.push((await register(client, large)).data.id);
    await expectRefused(register(client, large), 409, 40900, /at most 50 clients/);
    expect(count(BYTES)).toBeGreaterThan(bytes + 200_000);
    for (const id of ids) await client.data("DELETE", `/me/oauth-clients/${id}`);
    expect(count(BYTES)).toBe(bytes);
    const next = (await register(client, [URI])).data.id;
    expect(next).toBe(ids.at(-1)! + 1);
    client.close();
    await world.server.kill();
    world.server = await world.server.restart();
    await expect.poll(() => count(ROWS)).toBe(rows + 1);
  });
});
