/** The audit log as operators read it: its filters, its pages, and the number of lines that one read scans. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_AUDIT_WALKED } from "../../server/queries/limits.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { createPat, PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import { type AuditJson, OPERATOR, operatorOf } from "../support/operator.ts";
import { PUBLIC_URL, World } from "../support/world.ts";

let world: World;
let operator: Client;
let person: SignedIn;
beforeAll(async () => {
  const named = { operator: OPERATOR, person: { password: PASSWORD }, other: { password: PASSWORD } };
  world = await World.start({ users: 0, named, env: { PUBLIC_URL } });
  operator = await operatorOf(world.server, "operator", 4);
  person = await signIn(world.server, "person@example.com");
  const { id } = await createPat(person.client);
  await person.client.data("DELETE", `/me/personal-access-tokens/${id}`);
  (await signIn(world.server, "other@example.com")).client.close();
});
afterAll(async () => {
  operator.close();
  person.client.close();
  await expectEndsWell(world);
});

const find = (query = ""): Promise<AuditJson[]> => operator.all<AuditJson>(encodeURI(`/admin/audit-log?${query}`), 3);
/** Straight from the database. */
const idsWhere = (where: string, ...values: (string | number)[]): number[] =>
  rowsOf<{ id: number }>(
    world.server.dataDir,
    `SELECT id FROM audit_log WHERE ${where} ORDER BY id DESC`,
    ...values,
  ).map(({ id }) => id);
const idsOf = (lines: readonly AuditJson[]): number[] => lines.map(({ id }) => id);

test("lists every line as stored, newest first", async () => {
  const lines = await find();
  expect(idsOf(lines)).toEqual(idsWhere("1"));
  const [made] = await find("action=pat.create&actor=user 2");
  const row = rowsOf<Record<string, unknown>>(
    world.server.dataDir,
    "SELECT * FROM audit_log WHERE id = ?",
    made!.id,
  )[0]!;
  expect(made).toEqual({ ...row, details: JSON.parse(String(row["details"])) });
  expect(made).toMatchObject({ actor: `user ${person.user.id}`, user_id: person.user.id, address: "127.0.0.1" });
});

test("takes each filter, and all together", async () => {
  const { id } = person.user;
  expect(idsOf(await find(`user_id=${id}`))).toEqual(idsWhere("user_id = ?", id));
  expect(idsOf(await find("actor=seed"))).toEqual(idsWhere("actor = 'seed'"));
  expect(idsOf(await find("action=pat."))).toEqual(idsWhere("action LIKE 'pat.%'"));
  expect(idsOf(await find(`action=pat.&user_id=${id}&actor=user ${id}`))).toHaveLength(2);
  expect(await find("action=pat")).toEqual([]);
  expect(await find("action=pat.creat")).toEqual([]);
  expect(await find("user_id=999999")).toEqual([]);
  const at = (await find("action=pat.revoke"))[0]!.at;
  expect(idsOf(await find(`from=${at}`))).toEqual(idsWhere("at >= ?", at));
  expect(idsOf(await find(`to=${at}`))).toEqual(idsWhere("at <= ?", at));
  expect(idsOf(await find(`from=${at}&to=${at}&action=pat.revoke`))).toHaveLength(1);
});

test.each([
  ["from=2&to=1", /^from: must not be later than to/],
  ["action=Pat", /^action: /],
  ["action=pat..", /^action: /],
  ["action=%25", /^action: /],
  ["user_id=0", /^user_id: /],
  ["user_id=me", /^user_id: /],
  ["actor=", /^actor: /],
  ["from=yesterday", /^from: /],
  ["cursor=x", /^cursor: /],
  ["limit=201", /^limit: /],
  ["subject=1", /^subject: unknown field/],
])("%s is rejected", async (query, message) => {
  const answer = await operator.request("GET", `/admin/audit-log?${query}`);
  expect(answer).toMatchObject({ code: 40000, msg: expect.stringMatching(message) });
});

test("one read scans a bounded number of lines, and its cursor continues below them, with every filter", async () => {
  const { server } = world;
  await server.stop();
  const first = idsWhere("1")[0]! + 1;
  const rare = first + 5;
  const count = 2 * MAX_AUDIT_WALKED + 10;
  withDatabase(server.dataDir, (db) => {
    db.exec(`WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${first + count - 1})
      INSERT INTO audit_log (id, at, action, actor, user_id)
      SELECT i, (SELECT max(at) FROM audit_log), CASE i WHEN ${rare} THEN 'rare.thing' ELSE 'session.start' END, 'visitor',
        CASE WHEN i % 2 OR i = ${rare} THEN ${person.user.id} ELSE NULL END FROM n`);
  });
  world.server = await server.restart();
  operator.close();
  operator = await operatorOf(world.server);
  const reads = async (query: string): Promise<number> => {
    let [count, cursor] = [0, ""];
    const found: AuditJson[] = [];
    for (let next: string | null = ""; next !== null; count++) {
      const page: { items: AuditJson[]; next_cursor: string | null } = await operator.get(
        `/admin/audit-log?${query}${cursor}`,
      );
      found.push(...page.items);
      next = page.next_cursor;
      cursor = `&cursor=${next}`;
    }
    expect(idsOf(found)).toEqual([rare]);
    return count;
  };
  expect(await reads("action=rare.")).toBeGreaterThanOrEqual(3);
  expect(await reads(`action=rare.&user_id=${person.user.id}`)).toBe(2);
  // A common filter value fills its page in one read.
  const page = await operator.get<{ items: AuditJson[] }>("/admin/audit-log?action=session.&limit=200");
  expect(page.items).toHaveLength(200);
});
