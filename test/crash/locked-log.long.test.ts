/** Another program's lock on journal.db: nothing can be made durable, so trading stops, and the last line says what to do. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { expectSoundDatabase } from "../support/checks.ts";
import { BUY, post, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";

const FATAL = 60;

test.each(["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])(
  "%s on journal.db names the other program's lock",
  async (sql) => {
    const world = await World.start({ users: 1 });
    const user = world.client("user0", 0, 2);
    const order = terms(world.markets[0]!, 0, BUY, 100, 1, { client_order_id: "before" });
    const before = await post(user, order);
    const lock = openSqlite(join(world.server.dataDir, "journal.db"));
    lock.exec(sql);
    const unsure = await post(user, { ...order, client_order_id: "during" });
    expect([500, 503]).toContain(unsure.status);
    const line = await world.server.logged(({ level }) => level === FATAL, 30_000);
    expect(line).toMatchObject({
      msg: expect.stringMatching(/^trading has stopped/),
      remedy: expect.stringMatching(/^another program holds a lock on journal\.db: end its transaction/),
    });
    lock.exec("ROLLBACK");
    lock.close();
    expect(await world.server.exit(20_000)).toBe(1);
    world.server = await world.server.restart();
    const again = world.client("user0");
    expect((await post(again, order)).data).toEqual(before.data);
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  },
  90_000,
);
