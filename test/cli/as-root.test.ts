/** Commands run by root on a folder that belongs to the exchange's own user: the next start works, and the folder stays its user's. */
import { spawnSync } from "node:child_process";
import { chownSync, linkSync, lstatSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ROOT } from "../../bench/support/root.ts";
import { keyFolder } from "../../server/util/data-folder.ts";
import { admin } from "../support/admin.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";

const IS_ROOT = process.geteuid?.() === 0;
if (!IS_ROOT) process.stdout.write("skipped: only root can run a server as another user\n");
const NOBODY = 65_534;

const strangers = (folder: string): string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => lstatSync(join(folder, name)).uid !== NOBODY);

test.skipIf(!IS_ROOT)(
  "what root writes into the folder belongs to the folder's owner",
  async () => {
    const [dataDir, target] = [temporaryFolder(), temporaryFolder()];
    chownSync(dataDir, NOBODY, NOBODY);
    const first = TestServer.spawn({ dataDir, uid: NOBODY });
    onTestFinished(() => first.kill());
    await first.ready();
    expect((await admin(dataDir, "backup", join(target, "one.db"))).code).toBe(0);
    await first.stop();
    // No server runs: each command starts one of its own, as root.
    for (const words of [["keys", "rotate"], ["keys", "rotate-second-factors"], ["verify"], ["deposits"]])
      expect([words, (await admin(dataDir, ...words)).code]).toEqual([words, 0]);
    expect((await admin(dataDir, "backup", join(target, "two.db"))).code).toBe(0);
    expect(strangers(dataDir)).toEqual([]);
    for (const name of readdirSync(keyFolder(dataDir)))
      expect(statSync(join(keyFolder(dataDir), name)).mode & 0o777).toBe(0o600);
    const again = await first.restart();
    onTestFinished(() => again.kill());
    await again.stop();
  },
  60_000,
);

test.skipIf(!IS_ROOT)("root gives away nothing that only looks as if it were in the folder", async () => {
  const [dataDir, elsewhere] = [temporaryFolder(), temporaryFolder()];
  chownSync(dataDir, NOBODY, NOBODY);
  const own = join(elsewhere, "secret");
  writeFileSync(own, "root's");
  linkSync(own, join(dataDir, "hard"));
  symlinkSync(own, join(dataDir, "soft"));
  symlinkSync(elsewhere, join(dataDir, "log"));
  await admin(dataDir, "deposits");
  expect([statSync(own).uid, statSync(elsewhere).uid]).toEqual([0, 0]);
});

test.skipIf(!IS_ROOT)("a file that a start doesn't need never stops it", async () => {
  const dataDir = temporaryFolder();
  chownSync(dataDir, NOBODY, NOBODY);
  for (const name of ["last-backup.json", "mails.json"]) writeFileSync(join(dataDir, name), "{}", { mode: 0o600 });
  const server = TestServer.spawn({ dataDir, uid: NOBODY });
  onTestFinished(() => server.kill());
  await server.ready();
  await server.stop();
});

test.skipIf(!IS_ROOT)("a program folder that its user can't write to is built already: it runs", () => {
  const built = spawnSync(process.execPath, ["rolldown.config.js"], { cwd: ROOT, uid: NOBODY, encoding: "utf8" });
  expect([built.status, built.stderr]).toEqual([0, ""]);
});
