/** Room that everybody shares, beside that of orders: WebSocket connections, and third-party clients with their texts. */
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Client } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { freshAddress, PASSWORD, signIn } from "../support/identity.ts";
import { alone, expectRefused } from "../support/trading.ts";
import type { World } from "../support/world.ts";

describe("WebSocket connections of one IP address", () => {
  /** Opens one from an address; its status where it is refused, else the socket. */
  function open(world: World, address: string, query = ""): Promise<WebSocket | number> {
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

  test("are bounded, by the client's address behind a proxy; each that ends makes room", async () => {
    const env = { MAX_SOCKETS_PER_ADDRESS: "3", TRUSTED_PROXIES: "127.0.0.1" };
    await alone({ users: 1, env }, async (world) => {
      const [address, other] = [freshAddress(), freshAddress()];
      const sockets = await Promise.all(Array.from({ length: 5 }, () => open(world, address)));
      expect(sockets.filter((socket) => socket === 429)).toHaveLength(2);
      const opened = sockets.filter((socket) => typeof socket !== "number");
      expect(typeof (await open(world, other))).toBe("object");
      opened[0]!.close();
      await expect.poll(async () => typeof (await open(world, address))).toBe("object");
      expect(await open(world, address)).toBe(429);
      // What is refused for its token keeps no place.
      for (let i = 0; i < 5; i++) expect(await open(world, freshAddress(), "?token=wrong")).toBe(401);
      const last = freshAddress();
      for (let i = 0; i < 5; i++) expect(await open(world, last, "?token=wrong")).toBe(401);
      const three = await Promise.all(Array.from({ length: 3 }, () => open(world, last)));
      expect(three.map((socket) => typeof socket)).toEqual(["object", "object", "object"]);
    });
  });
});

describe("third-party clients", () => {
  const register = (client: Client, redirect_uris: readonly string[], headers = {}) => {
    const body = { name: "app", redirect_uris, confidential: true };
    return client.request<{ id: number }>("POST", "/me/oauth-clients", { body, headers });
  };
  const uri = (length: number): string => `https://app.example/${"x".repeat(length - 20)}`;

  test("50 of one account, 4 KiB of redirect URIs each; what was removed leaves neither text nor rows", async () => {
    await alone({ users: 0, named: { maker: { password: PASSWORD } } }, async (world) => {
      const { client } = await signIn(world.server, "maker@example.com");
      const large = [uri(2_000), uri(1_999), `https://b.example/${"y".repeat(77)}`];
      expect(large.join("\n")).toHaveLength(4_096);
      await expectRefused(
        register(client, [...large.slice(0, 2), `${large[2]}z`]),
        400,
        40000,
        /^redirect_uris: at most 4096/,
      );
      const ids: number[] = [];
      for (let i = 0; i < 50; i++) ids.push((await register(client, large)).data.id);
      await expectRefused(register(client, large), 409, 40900, /at most 50 clients/);
      const bytes = (): number => {
        let sum = 0;
        withDatabase(world.server.dataDir, (db) => {
          const text = "SELECT coalesce(sum(length(name) + length(redirect_uris)), 0) FROM oauth_clients";
          sum = Number(db.prepare(text).pluck().get());
        });
        return sum;
      };
      expect(bytes()).toBeGreaterThan(200_000);
      for (const id of ids) await client.data("DELETE", `/me/oauth-clients/${id}`);
      expect(bytes()).toBe(0);
      const next = (await register(client, ["https://app.example/"])).data.id;
      expect(next).toBe(ids.at(-1)! + 1);
      client.close();
      await world.server.kill();
      world.server = await world.server.restart();
      const rows = (): number => {
        let count = 0;
        withDatabase(world.server.dataDir, (db) => {
          count = Number(db.prepare("SELECT count(*) FROM oauth_clients").pluck().get());
        });
        return count;
      };
      await expect.poll(rows).toBe(1);
    });
  });

  test("20 a minute from one IP address, whoever registers them", async () => {
    const named = { one: { password: PASSWORD }, two: { password: PASSWORD } };
    const env = { RATE_LIMITS: "on", TRUSTED_PROXIES: "127.0.0.1" };
    await alone({ users: 0, named, env }, async (world) => {
      const people = [await signIn(world.server, "one@example.com"), await signIn(world.server, "two@example.com")];
      const headers = { "X-Forwarded-For": freshAddress() };
      for (let i = 0; i < 20; i++) expect((await register(people[i % 2]!.client, ["https://app.example/"], headers)).code).toBe(0); // biome-ignore format: one call
      for (const { client } of people) {
        const { headers: told } = await expectRefused(register(client, ["https://app.example/"], headers), 429, 42900);
        expect([told["ratelimit-limit"], Number(told["retry-after"]) > 0]).toEqual(["20", true]);
      }
      const elsewhere = { "X-Forwarded-For": freshAddress() };
      expect((await register(people[0]!.client, ["https://app.example/"], elsewhere)).code).toBe(0);
      for (const { client } of people) client.close();
    });
  });
});
