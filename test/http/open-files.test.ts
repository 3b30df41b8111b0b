/**
 * The limit of open files: an exchange whose clients open more connections than there is room for closes the new ones at
 * once, and neither spins nor falls silent. One client alone can't take all the room. An exchange that has hardly any room
 * doesn't start.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket as TcpSocket } from "node:net";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";

const HALF_A_HEAD = "GET /api/v1/time HTTP/1.1\r\nHost: x";
const REFUSAL = /^cannot start: the limit of open files is 90, the exchange needs \d+: ulimit -n, LimitNOFILE\n$/;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
if (!hasPrlimit) process.stdout.write("skipped: a limit of open files needs the prlimit command (util-linux)\n");

const filesOf = ({ pid }: TestServer): number => readdirSync(`/proc/${pid}/fd`).length;

/** Processor time of a process so far, s. */
function cpuOf({ pid }: TestServer): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

describe.skipIf(!hasPrlimit)("the limit of open files", () => {
  const held: TcpSocket[] = [];
  afterEach(() => {
    for (const socket of held.splice(0)) socket.destroy();
  });

  /** Opens connections that send no more than `text`; resolves once each is open or closed again. */
  async function hold(
    server: TestServer,
    count: number,
    text: string,
    localAddress = "127.0.0.1",
  ): Promise<{ closed: () => number }> {
    let closed = 0;
    const sockets = Array.from({ length: count }, () => {
      const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
      socket.on("error", () => {});
      socket.on("close", () => closed++);
      socket.resume();
      if (text !== "") socket.write(text);
      return socket;
    });
    held.push(...sockets);
    await Promise.all(sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])));
    return { closed: () => closed };
  }

  /** A proxy may take all the room. */
  async function start(spare: number, proxies = "127.0.0.1"): Promise<TestServer> {
    const probe = await TestServer.start();
    const own = filesOf(probe);
    await probe.stop();
    const server = await TestServer.start({ openFiles: own + spare, env: { TRUSTED_PROXIES: proxies } });
    onTestFinished(async () => {
      await server.stop();
    });
    return server;
  }

  /** How many connections it has room for, as its log says. */
  function roomOf(server: TestServer): number {
    return Number(server.log.find(({ msg }) => msg.startsWith("the limit of open files has room"))!["room"]);
  }

  test.each([
    ["half a request head", HALF_A_HEAD],
    ["nothing", ""],
  ])(
    "the limit of open files: 240 connections with %s: those without room are closed, and nothing spins",
    async (_, text) => {
      // 64 of them stay free for the exchange's own files.
      const server = await start(64 + 40);
      const client = new Client(server, null);
      const socket = await Socket.open(server, null);
      expect((await client.request("GET", "/time")).status).toBe(200);
      const { closed } = await hold(server, 240, text);
      // Beside those of the client and the WebSocket.
      const refused = 242 - roomOf(server);
      expect(refused).toBeGreaterThan(150);
      await eventually(async () => expect(closed()).toBeGreaterThanOrEqual(refused));
      expect(filesOf(server)).toBeLessThan(
        Number(/Max open files\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/limits`, "utf8"))![1]),
      );
      // Connections that are open go on.
      const [since, cpu] = [performance.now(), cpuOf(server)];
      for (let n = 0; n < 20; n++) expect((await client.request("GET", "/time")).status).toBe(200);
      expect((await socket.ask({ op: "ping" })).code).toBe(0);
      await eventually(async () => expect(performance.now() - since).toBeGreaterThan(1_000));
      expect(cpuOf(server) - cpu).toBeLessThan((0.5 * (performance.now() - since)) / 1_000);
      const lines = server.log.filter(({ msg }) => msg.startsWith("too many connections"));
      expect(lines).toMatchObject([{ level: 40, room: expect.any(Number) }]);
      const metrics = (await client.send("GET", "/metrics", {}, null)).body.toString();
      const value = (name: string): number => Number(new RegExp(`^exchange_${name} (\\d+)$`, "m").exec(metrics)![1]);
      expect(value("connections_refused_total")).toBeGreaterThanOrEqual(refused);
      expect([value("websocket_connections"), value("http_connections")]).toEqual([1, 241 - closed()]);
      // Their end makes room again.
      for (const each of held.splice(0)) each.destroy();
      await eventually(async () => {
        const later = await hold(server, 20, "");
        await new Promise(setImmediate);
        expect(later.closed()).toBe(0);
      });
      await socket.close();
      client.close();
    },
  );

  test("the limit of open files: WebSockets take the same room, and count as such from the upgrade on", async () => {
    const server = await start(64 + 30);
    // How many files the probe had open depends on the moment.
    const count = roomOf(server) - 10;
    expect(count).toBeGreaterThan(0);
    const sockets = await Promise.all(Array.from({ length: count }, () => Socket.open(server, null)));
    await eventually(async () => {
      const figures = await scrape(server);
      expect(figures.value("exchange_websocket_connections")).toBe(count);
      expect(figures.value("exchange_http_connections")).toBe(1);
    });
    const { closed } = await hold(server, 60, "");
    const refused = count + 61 - roomOf(server);
    expect(refused).toBeGreaterThan(20);
    await eventually(async () => expect(closed()).toBeGreaterThanOrEqual(refused));
    for (const socket of sockets) expect((await socket.ask({ op: "ping" })).code).toBe(0);
    await Promise.all(sockets.map((socket) => socket.close()));
    for (const each of held.splice(0)) each.destroy();
    await eventually(async () => {
      const figures = await scrape(server);
      expect(figures.value("exchange_websocket_connections")).toBe(0);
      expect(figures.value("exchange_http_connections")).toBe(1);
    });
  });

  test("one client alone can't take all the room for connections: while more than half is taken, it gets no more than a quarter", async () => {
    const server = await start(64 + 400, "127.0.0.9");
    const room = roomOf(server);
    const flood = await hold(server, room, HALF_A_HEAD, "127.0.0.2");
    const open = async (): Promise<number> => (await scrape(server)).value("exchange_http_connections");
    // It had half of the room before anything was contested, and a quarter more before it was counted.
    const most = 0.75 * room + 2;
    await eventually(async () => expect(room - flood.closed()).toBeLessThanOrEqual(most));
    expect(await open()).toBeLessThanOrEqual(most + 1);
    // Counted, it gets none at all.
    const closedBefore = flood.closed();
    await eventually(async () => {
      const more = await hold(server, 1, "", "127.0.0.2");
      await eventually(async () => expect(more.closed()).toBe(1));
    });
    expect(flood.closed()).toBe(closedBefore);
    // Others have their share, WebSockets aside.
    const sockets = await Promise.all(Array.from({ length: 10 }, () => Socket.open(server, null)));
    const others = await hold(server, Math.floor(room / 8), HALF_A_HEAD, "127.0.0.3");
    const client = new Client(server, null);
    expect((await client.request("GET", "/time")).status).toBe(200);
    expect(others.closed()).toBe(0);
    // A trusted proxy has no share.
    const proxy = await hold(server, 10, HALF_A_HEAD, "127.0.0.9");
    expect((await client.request("GET", "/time")).status).toBe(200);
    expect(proxy.closed()).toBe(0);
    // Its end makes room for everybody, for itself too.
    for (const each of held.splice(0)) each.destroy();
    await eventually(async () => {
      const later = await hold(server, 20, HALF_A_HEAD, "127.0.0.2");
      expect((await client.request("GET", "/time")).status).toBe(200);
      expect(later.closed()).toBe(0);
    });
    await Promise.all(sockets.map((socket) => socket.close()));
    client.close();
  });

  test("the limit of open files: a start without room for connections says so in one line", async () => {
    const { code, errors } = await TestServer.refuse({ openFiles: 90 });
    expect([code, errors]).toEqual([1, expect.stringMatching(REFUSAL)]);
  });
});
