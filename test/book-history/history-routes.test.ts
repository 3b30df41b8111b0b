/** GET /markets/:id/history and its files: ranges, conditions, bad names, days that are missing. */
import { createHash, randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Static } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { historyFolder, marketFolder, writeMarketDay } from "../../server/book-history/history-folder.ts";
import type { HistoryDays } from "../../server/markets/schemas.ts";
import { admin } from "../support/admin.ts";
import type { Client } from "../support/client.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";

type Days = Static<typeof HistoryDays>;
interface FileAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const today = (): string => new Date().toISOString().slice(0, 10);

let world: World;
let reader: Client;
let market: TestMarket;
let quiet: TestMarket;
let date = "";

beforeAll(async () => {
  world = await World.start({ users: 2, markets: [2, 2] });
  reader = world.anonymous();
  [market, quiet] = [world.market(), world.market()];
  const [maker, taker] = [world.user(), world.user()];
  await world.split(maker, market, 100);
  for (let i = 0; i < 60; i++) await maker.place(terms(market, i % 2, SELL, 5_000 + i, 1));
  await taker.place(terms(market, 0, BUY, 5_010, 3));
  date = today();
  const made = await admin(world.server.dataDir, "history", date, today());
  expect(made).toMatchObject({ code: 0, errors: "" });
});

afterAll(() => world.stop());

function fetchFile(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<FileAnswer> {
  const { port } = world.server;
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path: `/api/v1/markets/${path}`, method, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}

const fileOf = (ending: string): string => `${market.id}/history/${date}.${ending}`;

test("the list gives each file's size and hash, and the files have them", async () => {
  const { items, next_cursor, missing } = await reader.get<Days>(`/markets/${market.slug}/history`);
  expect({ next_cursor, missing }).toEqual({ next_cursor: null, missing: [] });
  const [day] = items;
  expect(items.length).toBe(1);
  expect(day).toMatchObject({ date, complete: false });
  const [parquet, lines] = [await fetchFile(fileOf("parquet")), await fetchFile(fileOf("jsonl.gz"))];
  const hashOf = ({ body }: FileAnswer): object => ({
    bytes: body.length,
    sha256: createHash("sha256").update(body).digest("hex"),
  });
  expect(hashOf(parquet)).toEqual({ bytes: day!.bytes, sha256: day!.sha256 });
  expect(hashOf(lines)).toEqual(day!.jsonl);
  expect(parquet.body.subarray(0, 4).toString()).toBe("PAR1");
  const rows = gunzipSync(lines.body).toString().trim().split("\n");
  expect(rows.length).toBe(day!.rows);
  expect(JSON.parse(rows[0]!)).toMatchObject({ at: day!.first_at, seq: 1, kind: "status", status: "open" });
  expect(JSON.parse(rows.at(-1)!)).toMatchObject({ at: day!.last_at, seq: rows.length });
  expect(parquet.headers).toMatchObject({
    "content-type": "application/octet-stream",
    "content-disposition": `attachment; filename="${market.id}-${date}.parquet"`,
    etag: `"${day!.sha256}"`,
    "accept-ranges": "bytes",
    // Its day isn't over.
    "cache-control": "public, max-age=60",
  });
});

test("a market without a change has no files", async () => {
  // Its opening is one.
  const { items } = await reader.get<Days>(`/markets/${quiet.id}/history`);
  expect(items.map(({ rows }) => rows)).toEqual([1]);
});

test("Range, If-Range and If-None-Match", async () => {
  const { body: whole, headers } = await fetchFile(fileOf("parquet"));
  const size = whole.length;
  const tag = String(headers["etag"]);
  const parts: [string, number, number][] = [
    ["bytes=0-3", 0, 4],
    ["bytes=4-", 4, size],
    ["bytes=-4", size - 4, size],
    [`bytes=-${size * 2}`, 0, size],
    [`bytes=10-${size * 2}`, 10, size],
  ];
  for (const [range, from, end] of parts) {
    const part = await fetchFile(fileOf("parquet"), { Range: range });
    expect(part.status, range).toBe(206);
    expect(part.headers["content-range"]).toBe(`bytes ${from}-${end - 1}/${size}`);
    expect(part.body.equals(whole.subarray(from, end))).toBe(true);
  }
  for (const range of [`bytes=${size}-`, "bytes=-0"]) {
    const none = await fetchFile(fileOf("parquet"), { Range: range });
    expect([none.status, none.headers["content-range"]], range).toEqual([416, `bytes */${size}`]);
  }
  for (const range of ["bytes=0-1,4-5", "lines=1-2", "bytes=5-4", "bytes=-", "nonsense"]) {
    expect([range, (await fetchFile(fileOf("parquet"), { Range: range })).status]).toEqual([range, 200]);
  }
  const same = await fetchFile(fileOf("parquet"), { Range: "bytes=0-3", "If-Range": tag });
  const changed = await fetchFile(fileOf("parquet"), { Range: "bytes=0-3", "If-Range": '"another"' });
  expect([same.status, changed.status]).toEqual([206, 200]);
  for (const tags of [tag, `"another", W/${tag}`, "*"]) {
    const known = await fetchFile(fileOf("parquet"), { "If-None-Match": tags });
    expect([known.status, known.body.length, known.headers["etag"]], tags).toEqual([304, 0, tag]);
  }
  expect((await fetchFile(fileOf("parquet"), { "If-None-Match": '"another"' })).status).toBe(200);
});

test("HEAD gives the length and nothing else", async () => {
  const { body } = await fetchFile(fileOf("jsonl.gz"));
  const head = await fetchFile(fileOf("jsonl.gz"), {}, "HEAD");
  expect([head.status, head.headers["content-length"], head.body.length]).toEqual([200, String(body.length), 0]);
  const part = await fetchFile(fileOf("jsonl.gz"), { Range: "bytes=0-9" }, "HEAD");
  // Ranges are for GET alone.
  expect([part.status, part.headers["content-length"]]).toEqual([200, String(body.length)]);
});

test("what isn't there is a 404 in words, and no name leads out of the folder", async () => {
  const names = ["2026-02-30.parquet", "2001-01-01.jsonl.gz", `${date}.jsonl.zst`, `${date}.json`, `${date}`, "days"];
  for (const name of [...names, "..%2F..%2Fexchange.db", "%2e%2e"]) {
    const { status, body } = await fetchFile(`${market.id}/history/${name}`);
    expect([name, status]).toEqual([name, 404]);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 4040 });
  }
  expect((await fetchFile(`999/history/${date}.parquet`)).status).toBe(404);
  expect((await fetchFile("999/history")).status).toBe(404);
  expect((await fetchFile(`${market.id}/history?limit=0`)).status).toBe(400);
});

test("a request for a file with a body in chunks is refused in words", async () => {
  const { status, body } = await fetchFile(fileOf("parquet"), { "Transfer-Encoding": "chunked" });
  expect([status, JSON.parse(body.toString())]).toMatchObject([400, { code: 40000 }]);
});

test("files that somebody removed are a 404", async () => {
  const folder = historyFolder(world.server.dataDir);
  rmSync(join(folder, String(quiet.id)), { recursive: true });
  const { items, missing } = await reader.get<Days>(`/markets/${quiet.id}/history`);
  expect({ items, missing }).toEqual({ items: [], missing: [{ from: date, to: today() }] });
  expect((await fetchFile(`${quiet.id}/history/${date}.parquet`)).status).toBe(404);
});

test("a long file reaches a client that reads slowly, and ends with one that leaves", { timeout: 60_000 }, async () => {
  const bytes = randomBytes(8 * 2 ** 20 + 5);
  const folder = historyFolder(world.server.dataDir);
  const path = marketFolder(folder, market.id);
  const old = "2020-02-02";
  writeFileSync(join(path, `${old}.parquet`), bytes);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const file = { name: `${old}.parquet`, bytes: bytes.length, sha256 };
  writeMarketDay(folder, {
    ...{ date: old, market: market.id, rows: 1, firstAt: 1, lastAt: 1, isComplete: true },
    ...{ parquet: file, jsonLines: file },
  });
  const leaving = await slowly(`${market.id}/history/${old}.parquet`);
  leaving.destroy();
  const slow = await slowly(`${market.id}/history/${old}.parquet`);
  expect(slow.headers).toMatchObject({
    "content-length": String(bytes.length),
    "cache-control": "public, max-age=31536000, immutable",
  });
  // Others are served while it doesn't read.
  expect(
    (await fetchFile(`${market.id}/history/${old}.parquet`, { Range: "bytes=5-9" })).body.equals(bytes.subarray(5, 10)),
  ).toBe(true);
  const hash = createHash("sha256");
  for await (const part of slow) hash.update(part as Buffer);
  expect(hash.digest("hex")).toBe(sha256);
});

/** A response whose body nobody has read yet. */
function slowly(path: string): Promise<IncomingMessage> {
  const { port } = world.server;
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: `/api/v1/markets/${path}` }, resolve)
      .on("error", reject)
      .end();
  });
}

test("the command names what is wrong with its days", async () => {
  for (const [from, to] of [
    ["2026-02-30", "2026-03-01"],
    ["2026-3-1", "2026-03-01"],
    ["2026-03-02", "2026-03-01"],
    ["today", "2026-03-01"],
  ] as const) {
    const { code, errors } = await admin(world.server.dataDir, "history", from, to);
    expect([code, errors.split("\n")[0]]).toEqual([2, expect.stringContaining(from)]);
  }
  // Before the exchange had a log.
  const { code, out } = await admin(world.server.dataDir, "history", "2020-01-01", "2020-01-02");
  expect([code, JSON.parse(out)]).toEqual([0, { days: [], missing: [] }]);
});
