/** The settings of a copied log, and those of its stream: what is wrong or weak is refused in words. */
import { readFileSync } from "node:fs";
import type { StreamConfig } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { builtScript } from "../../bench/support/root.ts";
import { readConfig } from "../../server/bootstrap/config.ts";
import { weaknessOf } from "../../server/replication/stream.ts";

const SECRET = "secret".repeat(6);

describe("settings", () => {
  const NODES = "nats://10.0.0.1:4222,nats://10.0.0.2:4222,nats://10.0.0.3:4222";
  const standby = (env: Record<string, string>) =>
    readConfig({ STANDBY_NATS: NODES, STANDBY_SECRET: SECRET, ...env }).standby;

  test("without STANDBY_NATS there is a single box", () => {
    expect(readConfig({}).standby).toBeNull();
    expect(readConfig({ STANDBY_NATS: "", STANDBY_NAME: "x" }).standby).toBeNull();
  });

  test("nodes, names and policies are read", () => {
    expect(standby({ STANDBY_BOX: "a" })).toEqual({
      nodes: ["10.0.0.1:4222", "10.0.0.2:4222", "10.0.0.3:4222"],
      user: null,
      password: null,
      credsFile: null,
      tls: null,
      secret: SECRET,
      name: "exchange",
      box: "a",
      url: null,
      ack: "standby",
      lostMs: 10_000,
      takeover: "auto",
      replicas: 3,
      monitors: [],
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      shared: expect.objectContaining({ MERGE_FEE: "0", STANDBY_LOST: "alone:10", SMTP_URL: "" }),
    });
    // What is in force, not what was written.
    const shared = (env: Record<string, string>) => standby(env)?.shared;
    const url = { PUBLIC_URL: "HTTPS://Exchange.example.com/" };
    expect(shared(url)).toMatchObject({ PUBLIC_URL: "https://exchange.example.com" });
    expect(shared({})).toMatchObject({ PUBLIC_URL: "http://127.0.0.1:8080", REQUIRE_OPERATOR_SECOND_FACTOR: "off" });
    expect(shared({ HOST: "0.0.0.0" })).toMatchObject({ REQUIRE_OPERATOR_SECOND_FACTOR: "on" });
    expect(Object.keys(shared({ STANDBY_URL: "http://a.example.com" })!)).not.toContain("STANDBY_URL");
    const one = { STANDBY_NATS: "tls://me:p%40ss@nats.example.com", STANDBY_MONITOR: "http://10.0.0.1:8222" };
    expect(standby({ ...one, STANDBY_REPLICAS: "1", STANDBY_ACK: "none", STANDBY_NAME: "test-2" })).toMatchObject({
      ...{ nodes: ["nats.example.com:4222"], user: "me", password: "p@ss", name: "test-2", ack: "none", replicas: 1 },
      ...{ tls: { caFile: null, certFile: null, keyFile: null }, monitors: ["http://10.0.0.1:8222"] },
    });
    expect(standby({ STANDBY_NATS: "10.0.0.1:80, [fd00::1]:4333" })?.nodes).toEqual(["10.0.0.1:80", "[fd00::1]:4333"]);
    expect(standby({ STANDBY_LOST: "wait" })?.lostMs).toBeNull();
    expect(standby({ STANDBY_LOST: "alone:3" })?.lostMs).toBe(3_000);
    expect([standby({})?.takeover, standby({ STANDBY_TAKEOVER: "manual" })?.takeover]).toEqual(["auto", "manual"]);
    expect(standby({ STANDBY_URL: "https://a.example.com/" })?.url).toBe("https://a.example.com");
    expect(standby({})?.box).toMatch(/^[a-z0-9-]{1,32}$/);
  });

  test.for([
    [{ STANDBY_NATS: "http://10.0.0.1:4222" }, "STANDBY_NATS must be URLs of NATS nodes"],
    [{ STANDBY_NATS: "nats://10.0.0.1:99999" }, "STANDBY_NATS must be URLs of NATS nodes"],
    [{ STANDBY_NATS: "nats://10.0.0.1:4222," }, "STANDBY_NATS must be URLs of NATS nodes"],
    [{ STANDBY_NATS: "nats://10.0.0.1/x" }, "STANDBY_NATS must have nothing behind the ports"],
    [{ STANDBY_NATS: "nats://10.0.0.1,tls://10.0.0.2" }, "STANDBY_NATS must use tls:// for all nodes or for none"],
    [{ STANDBY_NATS: "nats://a:b@10.0.0.1,nats://10.0.0.2" }, "STANDBY_NATS must have the same user for all nodes"],
    [{ STANDBY_NATS: "nats://me:50%@10.0.0.1" }, "STANDBY_NATS has a % in its user or password"],
    [{ STANDBY_MONITOR: "http://me:x@10.0.0.1:8222" }, "STANDBY_MONITOR must have no user names"],
    [{ STANDBY_NATS: "nats://10.0.0.1,10.0.0.1:4222" }, "STANDBY_NATS names a node twice"],
    [{ STANDBY_SECRET: "" }, "STANDBY_SECRET is required with STANDBY_NATS"],
    [{ STANDBY_SECRET: "x".repeat(31) }, "STANDBY_SECRET must have 32 characters or more"],
    [{ STANDBY_NAME: "Exchange" }, "STANDBY_NAME must have 1 to 32 characters of a-z, 0-9 and -"],
    [{ STANDBY_BOX: "a.b" }, "STANDBY_BOX must have 1 to 32 characters"],
    [{ STANDBY_URL: "a.example.com" }, "STANDBY_URL must be the address of this box alone"],
    [{ STANDBY_URL: "https://me@a.example.com" }, "STANDBY_URL must be the address of this box alone"],
    [{ STANDBY_URL: "https://a.example.com/api" }, "STANDBY_URL must be the address of this box alone"],
    [{ STANDBY_ACK: "all" }, "STANDBY_ACK must be one of standby, stream, none"],
    [{ STANDBY_LOST: "alone" }, 'STANDBY_LOST must be "wait", or "alone:N"'],
    [{ STANDBY_LOST: "alone:0" }, 'STANDBY_LOST must be "wait", or "alone:N"'],
    [{ STANDBY_LOST: "alone:3601" }, 'STANDBY_LOST must be "wait", or "alone:N"'],
    [{ STANDBY_REPLICAS: "0" }, "STANDBY_REPLICAS must be an integer from 1 to 5"],
    [{ STANDBY_MONITOR: "10.0.0.1:8222" }, "STANDBY_MONITOR must be the nodes' monitoring URLs"],
    [{ STANDBY_NATS_CREDS: "/nowhere" }, 'STANDBY_NATS_CREDS: cannot read "/nowhere" (ENOENT)'],
    [{ STANDBY_NATS_CA: __filename }, "STANDBY_NATS must begin with tls:// where a certificate is set"],
    [{ STANDBY_NATS_CERT: __filename }, "STANDBY_NATS_CERT and STANDBY_NATS_KEY go together"],
  ] as const)("%j is refused", ([env, message]) => {
    expect(() => standby(env)).toThrow(message);
  });

  test("no message repeats a password", () => {
    expect(() => standby({ STANDBY_SECRET: `"${SECRET}"` })).toThrow(/^(?!.*secretsecret).*STANDBY_SECRET/);
    expect(() => standby({ STANDBY_SECRET: "secret" })).toThrow(/^(?!.*secret).*STANDBY_SECRET/);
    for (const url of ["nats://me:secret@10.0.0.1/x", "http://me:secret@10.0.0.1", '"nats://me:secret@10.0.0.1"']) {
      expect(() => standby({ STANDBY_NATS: url })).toThrow(/^(?!.*secret).*STANDBY_NATS/);
    }
  });
});

describe("a stream's settings", () => {
  const names = { stream: "PX_x", subject: "px.x.log" };
  /** As the nodes describe a stream that the exchange created. */
  const created = {
    ...{ name: "PX_x", subjects: ["px.x.log"], retention: "limits", storage: "file", discard: "old", num_replicas: 3 },
    ...{ max_consumers: -1, max_msgs: -1, max_msgs_per_subject: -1, max_msg_size: -1, max_bytes: 17_179_869_184 },
    ...{ max_age: 604_800_000_000_000, duplicate_window: 120_000_000_000, sealed: false, deny_delete: true },
    ...{ deny_purge: true, allow_direct: false, allow_rollup_hdrs: false, mirror_direct: false },
  };
  const weakness = (changes: object) => weaknessOf({ ...created, ...changes } as unknown as StreamConfig, names, 3);

  test("what the exchange creates is good, and so is more of it", () => {
    expect(weakness({})).toBeNull();
    expect(weakness({ num_replicas: 5, max_bytes: -1, max_age: 0 })).toBeNull();
    expect(weakness({ max_bytes: 2 ** 30, max_age: 86_400e9, max_msgs_per_subject: 0 })).toBeNull();
  });

  test.for([
    [{ num_replicas: 2 }, "is kept by 2 of the nodes: STANDBY_REPLICAS asks for 3"],
    [{ storage: "memory" }, "is kept in memory: it must be in files"],
    [{ retention: "workqueue" }, "has the retention workqueue: it must be limits"],
    [{ discard: "new" }, "discards new messages when it is full: it must be old ones"],
    [{ subjects: ["px.x.log", "px.y.log"] }, "must have px.x.log as its only subject"],
    [{ subjects: ["px.>"] }, "must have px.x.log as its only subject"],
    [{ max_age: 86_399e9 }, "keeps messages for less than 1 day"],
    [{ max_bytes: 2 ** 30 - 1 }, "may have only 1073741823 bytes"],
    [{ max_msgs: 1_000 }, "limits its number of messages"],
    [{ max_msg_size: 1_000 }, "limits the size of its messages"],
    [{ no_ack: true }, "acknowledges nothing (no_ack)"],
    [{ sealed: true }, "is sealed"],
    [{ deny_delete: false }, "allows that messages are deleted"],
    [{ deny_purge: false }, "allows that messages are deleted"],
    [{ allow_rollup_hdrs: true }, "allows rollups, which delete messages"],
    [{ allow_direct: true }, "allows direct reads, which may be old"],
    [{ sources: [{ name: "other" }] }, "gets messages from other streams"],
    [{ subject_transform: { src: "a", dest: "b" } }, "renames subjects"],
  ] as const)("%j is a weakness", ([changes, words]) => {
    expect(weakness(changes)).toBe(words);
  });
});

test("the server's own file loads no NATS package, however many files it imports", () => {
  const loaded = new Set<string>();
  const load = (url: URL): void => {
    if (loaded.has(url.href)) return;
    loaded.add(url.href);
    const text = readFileSync(url, "utf8");
    expect(text.includes("Nats-Expected-Last-Sequence"), url.href).toBe(false);
    expect(text, url.href).not.toMatch(/["'`]@nats-io\//);
    for (const [, path] of text.matchAll(/(?:from|import) ?\(?["'`](\.{1,2}\/[\w./-]+\.js)["'`]/g))
      load(new URL(path!, url));
  };
  const main = readFileSync(builtScript("main.js"), "utf8");
  load(new URL(/import\("(.+main\.js)"\)/.exec(main)![1]!, builtScript("main.js")));
  // Itself, and what it loads at a first use.
  expect(loaded.size).toBeGreaterThan(5);
});
