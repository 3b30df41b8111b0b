/** Search over markets that no seed of these tests makes: a database of an older schema, and real questions. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { Client } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";

const slugs = (items: readonly { slug: string }[]): string[] => items.map(({ slug }) => slug);

test("search covers a database that is older than the search index", async () => {
  const dataDir = temporaryFolder();
  const db = openSqlite(join(dataDir, "exchange.db"));
  for (const migration of MIGRATIONS.slice(0, 4)) db.exec(migration);
  db.exec(`
    INSERT INTO events VALUES (1, 'cup', 'Coupe', NULL, NULL, 1);
    INSERT INTO markets VALUES (1, 'old', 'Été?', NULL, NULL, 1, 1, 0, NULL, NULL, 1);
    INSERT INTO outcomes VALUES (1, 1, 0, 'Oui', NULL, 0), (2, 1, 1, 'Non', NULL, 0);`);
  db.pragma("user_version = 4");
  db.close();
  const older = await TestServer.start({ dataDir });
  const reader = new Client(older, null);
  expect(slugs(await reader.all("/markets?q=ete+oui"))).toEqual(["old"]);
  expect(slugs(await reader.all("/events?q=coupe"))).toEqual(["cup"]);
  expect((await reader.get<{ total: number }>("/feed?q=cup")).total).toBe(1);
  reader.close();
  await older.stop();
});

const REAL = new URL("../../../shared/data/forecastbench/markets.jsonl.gz", import.meta.url).pathname;
if (!existsSync(REAL)) process.stdout.write("skipped: real questions need ../shared/data/forecastbench\n");

test.skipIf(!existsSync(REAL))("search finds real questions as a plain scan does", async () => {
  const random = Random.printed("search of real questions");
  const lines = gunzipSync(readFileSync(REAL)).toString().trim().split("\n");
  const real = lines.slice(0, 400).map((line, i) => {
    const { question, background } = JSON.parse(line) as { question: string; background: string | null };
    const description = background === null || background === "" ? null : background;
    return { slug: `real-${i}`, question, description, outcomes: ["Yes", "No"] };
  });
  const wordsOf = (text: string): string[] => {
    const plain = text
      .normalize("NFKD")
      .replace(/[\u0300-\u036f]/g, "")
      .toLowerCase();
    return plain.match(/[\p{L}\p{N}]+/gu) ?? [];
  };
  const words = real.map(({ slug, question, description }) =>
    wordsOf(`${slug} ${question} ${description ?? ""} yes no`),
  );
  const started = await TestServer.start({ seed: { markets: real } });
  const reader = new Client(started, null);
  for (let n = 0; n < 40; n++) {
    // Words of one text, some truncated.
    const typed = Array.from({ length: random.integer(1, 4) }, (_, i) => {
      const word = random.pick(i === 0 ? words.flat() : random.pick(words));
      return random.chance(0.5) ? word : word.slice(0, random.integer(1, word.length));
    }).filter((word) => /^[a-z0-9]+$/.test(word));
    if (typed.length === 0) continue;
    const expected = real.flatMap(({ slug }, i) => {
      return typed.every((start) => words[i]!.some((word) => word.startsWith(start))) ? [slug] : [];
    });
    const found = slugs(await reader.all(`/markets?q=${encodeURIComponent(typed.join(" ").toUpperCase())}`));
    expect(found.reverse(), typed.join(" ")).toEqual(expected);
  }
  reader.close();
  await started.stop();
});
