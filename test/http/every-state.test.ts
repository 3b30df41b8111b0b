/** A box that starts or stops responds to every method, path, upgrade and malformed request; a standby: following.test.ts. */
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { journalPath } from "../../server/util/data-folder.ts";
import { eventually } from "../support/checks.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { BUY, terms } from "../support/terms.ts";
import { World } from "../support/world.ts";
import { connections, expectEveryCase } from "./every-state.ts";

/** Nothing can be committed until the returned function is called. */
function holdLog(dataDir: string): () => void {
  const lock = openSqlite(journalPath(dataDir), { timeout: 5_000 });
  lock.exec("BEGIN IMMEDIATE");
  return () => void lock.close();
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

test("a box that starts responds to everything, and then trades", async () => {
  const port = await freePort();
  const dataDir = temporaryFolder();
  // The first run makes the files; the second one has a user to add.
  await (await TestServer.start({ dataDir, seed: { markets: [] } })).stop();
  const seed = { users: [{ email: "late@example.com", password: "correct horse battery" }] };
  const release = holdLog(dataDir);
  const server = TestServer.spawn({ dataDir, seed, env: { PORT: String(port) } });
  onTestFinished(() => server.kill());
  await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200));
  await expectEveryCase(connections(port));
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([503, { status: "starting" }]);
  release();
  await server.ready();
  expect((await fetch(`${server.root}/readyz`)).status).toBe(200);
  await server.stop();
});

test("a box that stops responds to everything on the connections that it has", async () => {
  const world = await World.start({ users: 1, markets: [2] });
  const { server } = world;
  const wires = connections(server.port);
  await Promise.all(wires.map((wire) => new Promise((resolve) => wire.socket.once("connect", resolve))));
  const user = world.user();
  await user.balance();
  const release = holdLog(server.dataDir);
  const placed = user.place(terms(world.market(), 0, BUY, 100, 1));
  // Its connection was open: the order is there before a request that has to connect first.
  for (let n = 0; n < 3; n++) await fetch(`${server.root}/livez`);
  const exited = server.stop();
  await server.logged(({ msg }) => msg === "shutting down");
  await expectEveryCase(wires);
  release();
  // It was accepted before the signal.
  expect(await placed).toMatchObject({ status: "queued" });
  await exited;
});
