/**
 * `npm run fuzz -- --seed N --seconds S [--only http|raw|websocket] [--case K]`: starts an exchange and attacks it from
 * one seed, while a maker trades and another user's money stays idle. It exits with code 1 if a response, the process,
 * its log, its memory or any user's money is wrong. It then prints the bytes of the case and how to repeat it.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ExchangeProcess } from "../../bench/support/exchange-process.ts";
import { makeFolder } from "../../bench/support/folder.ts";
import { orUsage, wholeNumber } from "../../bench/support/usage.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { freshSeed, Random } from "../support/random.ts";
import { Attacker } from "./fuzz/attacker.ts";
import { exchangeBytes, fuzzBytes, judgeBytes } from "./fuzz/bytes.ts";
import { get, Link, NoAnswer, post } from "./fuzz/link.ts";
import { FuzzSocket, fuzzMessage } from "./fuzz/messages.ts";
import { type FuzzRequest, fuzzRequest, judge } from "./fuzz/requests.ts";
import { Sentinel } from "./fuzz/sentinel.ts";
import { ATTACKERS, seed as seedOfWorld, tokenOf, VICTIM_ORDER } from "./fuzz/world.ts";

const KINDS = ["http", "raw", "websocket"] as const;
type Kind = (typeof KINDS)[number];

/**
 * Memory stops growing after four minutes. 220 MiB are arrays that exist from the start; the server touches them one by
 * one. The rest is V8's heap, of which 35 to 130 MiB are in use, varying over time.
 */
const MAX_GROWN_MIB = 400;
/** For the sentinel's orders during the attack: usually some ms, and this on a heavily loaded machine. */
const MAX_ORDER_MS = 3_000;
/** For one response to an attack; hashing a password takes a tenth of a second, and other requests queue behind it. */
const MAX_ANSWER_MS = 8_000;
/** After this many cases the users get new tokens, and the run cancels their leftover orders. */
const RENEW_AFTER = 500;

function readArguments() {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ options: { seed: text, seconds: text, only: text, case: text } });
  const kinds = values.only === undefined ? KINDS : KINDS.filter((kind) => kind === values.only);
  if (kinds.length === 0) throw new Error(`--only ${values.only}: one of ${KINDS.join(", ")}`);
  return {
    seed: wholeNumber("seed", values.seed ?? String(freshSeed()), 0, 2 ** 31),
    seconds: wholeNumber("seconds", values.seconds ?? "10", 1, 1e6),
    kinds,
    onlyCase: values.case === undefined ? null : wholeNumber("case", values.case, 0, 2 ** 31),
  };
}

const USAGE = `fuzz [--seed N] [--seconds S] [--only ${KINDS.join("|")}] [--case K]`;
const { seed, seconds, kinds, onlyCase } = orUsage(USAGE, readArguments);

/** Each case has its own random choices, so one can run again without the earlier cases. */
const randomOf = (kind: Kind, index: number): Random => {
  return new Random((Math.imul(seed, 0x9e37_79b1) ^ Math.imul(index + 1, 0x85eb_ca6b) ^ KINDS.indexOf(kind)) >>> 0);
};

const failures: string[] = [];
const counts = new Map<string, number>();
let slowest = { ms: 0, what: "" };

function count(kind: Kind, what: string | number | null): void {
  const name = `${kind} ${what ?? "closed"}`;
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function failed(kind: Kind, index: number, bytes: Buffer, error: unknown): void {
  const how = `npm run fuzz -- --seed ${seed} --only ${kind} --case ${index}`;
  failures.push(`${how}\n${(error as Error).message}\n${JSON.stringify(bytes.toString("latin1", 0, 2_000))}`);
}

function tookSince(since: number, what: string): void {
  const ms = performance.now() - since;
  if (ms > slowest.ms) slowest = { ms, what };
}

// ---------------------------------------------------------------- the three kinds

interface Target {
  readonly port: number;
  readonly attackers: readonly Attacker[];
  readonly operator: Attacker;
  isOver(): boolean;
}

/** Runs `attack` with consecutive numbers until time is up or a check fails. */
async function inTurn(
  target: Target,
  first: number,
  step: number,
  attack: (index: number) => Promise<void>,
): Promise<void> {
  if (onlyCase !== null) return first === 0 ? attack(onlyCase) : undefined;
  for (let index = first; !target.isOver() && failures.length === 0; index += step) await attack(index);
}

async function attackHttp(target: Target, first: number, step: number): Promise<void> {
  const link = new Link(target.port);
  const attacker = target.attackers[first % target.attackers.length]!;
  let since = 0;
  await inTurn(target, first, step, async (index) => {
    if (++since === RENEW_AFTER) {
      since = 0;
      await attacker.renew(link);
      await target.operator.renew(link);
    }
    const request = fuzzRequest(randomOf("http", index), attacker, target.operator, index);
    await askHttp(link, request, index);
  });
  link.close();
}

async function askHttp(link: Link, request: FuzzRequest, index: number): Promise<void> {
  const began = performance.now();
  try {
    const answer = await link.ask(request.bytes);
    tookSince(began, `${request.method} ${request.target}`);
    judge(request, answer);
    if (link.excess.length > 0) throw new Error(`more than one answer: ${link.excess.toString("latin1", 0, 300)}`);
    count("http", answer.status);
  } catch (error) {
    // A client rejected while it is still sending may lose the response with the connection.
    if (error instanceof NoAnswer && !error.isTooLate && request.bytes.length > 60_000) count("http", null);
    else failed("http", index, request.bytes, error);
  }
}

async function attackRaw(target: Target, first: number, step: number): Promise<void> {
  const attacker = target.attackers[first % target.attackers.length]!;
  await inTurn(target, first, step, async (index) => {
    const random = randomOf("raw", index);
    const requests = Array.from({ length: 3 }, () => fuzzRequest(random, attacker, attacker, index).bytes);
    const bytes = fuzzBytes(random, requests);
    try {
      count("raw", judgeBytes(await exchangeBytes(random, target.port, bytes)));
    } catch (error) {
      failed("raw", index, bytes, error);
    }
  });
}

async function attackWebSocket(target: Target, first: number, step: number): Promise<void> {
  const attacker = target.attackers[first % target.attackers.length]!;
  let socket: FuzzSocket | null = null;
  await inTurn(target, first, step, async (index) => {
    const random = randomOf("websocket", index);
    const packed = first % 2 === 1;
    const { bytes, isWhole } = fuzzMessage(random, packed, index);
    const began = performance.now();
    try {
      if (socket === null || !socket.isOpen)
        socket = await FuzzSocket.open(target.port, index % 7 === 0 ? null : attacker.token, packed);
      const code = await socket.ask(bytes, isWhole);
      if (isWhole) tookSince(began, `a message: ${bytes.toString("latin1", 0, 100)}`);
      count("websocket", isWhole ? code : "bad frame");
      if (!isWhole) socket.close();
    } catch (error) {
      failed("websocket", index, bytes, error);
    }
  });
  (socket as FuzzSocket | null)?.close();
}

// ---------------------------------------------------------------- before and after

async function read(link: Link, path: string, token: string | null): Promise<unknown> {
  const { status, body } = await link.ask(get(path, token));
  if (status !== 200) throw new Error(`${path}: ${status} ${body.toString()}`);
  return JSON.parse(body.toString());
}

/** Everything that an attack could have taken from an idle user. */
async function moneyOf(link: Link, name: string): Promise<string> {
  const paths = [
    "/wallet/balance",
    "/me/positions",
    "/orders?status=all",
    "/wallet/transactions",
    "/wallet/withdrawals",
  ];
  const token = tokenOf(name);
  const found = [];
  for (const path of name === "victim" ? paths.slice(0, 4) : paths.slice(0, 1)) {
    found.push(((await read(link, `/api/v1${path}`, token)) as { data: unknown }).data);
  }
  return JSON.stringify(found);
}

function expectThat(isSo: boolean, what: string): void {
  if (!isSo) failures.push(what);
}

async function main(): Promise<void> {
  const dataDir = makeFolder("fuzz");
  const exchange = await ExchangeProcess.start({ dataDir, seed: seedOfWorld() });
  const port = Number(new URL(exchange.url).port);
  const link = new Link(port);
  const attackers = Array.from({ length: ATTACKERS }, (_, n) => new Attacker(`fuzz${n}`));
  const operator = new Attacker("operator");
  for (const each of [...attackers, operator]) await each.renew(link);
  await link.ask(post("/orders", tokenOf("victim"), VICTIM_ORDER));
  const before = [await moneyOf(link, "victim"), await moneyOf(link, "sentinel")];
  const sentinel = new Sentinel(exchange.url);
  sentinel.start();

  const startMiB = exchange.residentBytes() / 1_048_576;
  const end = Date.now() + seconds * 1_000;
  const target: Target = { port, attackers, operator, isOver: () => Date.now() >= end };
  const lost = exchange.ended.then((how) => {
    throw new Error(how);
  });
  lost.catch(() => {});
  const work: Promise<void>[] = [];
  for (let n = 0; n < ATTACKERS; n++) {
    if (kinds.includes("http")) work.push(attackHttp(target, n, ATTACKERS));
    if (kinds.includes("raw")) work.push(attackRaw(target, n, ATTACKERS));
    if (kinds.includes("websocket")) work.push(attackWebSocket(target, n, ATTACKERS));
  }
  await Promise.race([Promise.all(work), lost]);
  await Promise.race([sentinel.stop(), lost]);
  await exchange.quiet();

  const grownMiB = exchange.residentBytes() / 1_048_576 - startMiB;
  for (const path of ["/livez", "/readyz"])
    expectThat(((await read(link, path, null)) as { status: string }).status === "ok", path);
  const { data: sums } = (await read(link, "/api/v1/solvency", null)) as { data: { balanced: boolean } };
  expectThat(sums.balanced, "solvency");
  const after = [await moneyOf(link, "victim"), await moneyOf(link, "sentinel")];
  expectThat(JSON.stringify(before) === JSON.stringify(after), `money: ${before} became ${after}`);
  const metrics = (await link.ask(get("/metrics", null))).body.toString();
  expectThat(!/refusals_total\{code="50000"\} [1-9]/.test(metrics), "an internal error among the rejections");
  expectThat(grownMiB < MAX_GROWN_MIB, `memory grew by ${grownMiB.toFixed(0)} MiB`);
  expectThat(sentinel.percentile(100) < MAX_ORDER_MS, `an order took ${sentinel.percentile(100).toFixed(0)} ms`);
  expectThat(slowest.ms < MAX_ANSWER_MS, `slow: ${slowest.ms.toFixed(0)} ms for ${slowest.what.slice(0, 300)}`);
  link.close();
  await exchange.stop();
  expectThat(exchange.trouble.length === 0, exchange.trouble.join("\n"));
  const db = openReadOnly(join(dataDir, "exchange.db"));
  for (const { name, ok } of verifyDatabase(db)) expectThat(ok, `verify: ${name}`);
  db.close();
  report(sentinel, grownMiB);
}

function report(sentinel: Sentinel, grownMiB: number): void {
  const names = [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([name, n]) => `${name}: ${n}`);
  console.log(names.join(", "));
  const [p50, p99, most] = [50, 99, 100].map((percent) => sentinel.percentile(percent).toFixed(1));
  console.log(`sentinel: ${sentinel.times.length} orders, p50 ${p50} ms, p99 ${p99} ms, slowest ${most} ms`);
  console.log(
    `memory: ${grownMiB.toFixed(0)} MiB more; slowest answer: ${slowest.ms.toFixed(0)} ms, ${slowest.what.slice(0, 80)}`,
  );
}

console.log(`fuzz: --seed ${seed} --seconds ${seconds}${kinds.length === 1 ? ` --only ${kinds[0]}` : ""}`);
try {
  await main();
} catch (error) {
  failures.push((error as Error).stack ?? String(error));
}
for (const failure of failures) console.error(`FAILED ${failure}\n`);
process.exit(failures.length === 0 ? 0 : 1);
