/**
 * Password hashes and their cost, common passwords, fair queueing, and the CPU time that the pool leaves to other
 * threads.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { hashSync } from "@node-rs/argon2";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ApiError } from "../../server/errors.ts";
import {
  MAX_WAITING,
  MAX_WAITING_OF_ACCOUNT,
  MAX_WAITING_OF_ADDRESS,
  PASSWORD_THREADS,
  Passwords,
} from "../../server/sign-in/passwords.ts";

const WORKER = new URL("../../dist/password-worker.js", import.meta.url);
const PASSWORD = "correct-horse-battery-staple";
const ADDRESS = "192.0.2.7";
/** The length of a tick of /proc's CPU times. */
const TICK_MS = 10;

let passwords: Passwords;
/** No thread of these pools exits between its jobs. */
const unexpected = (error: Error): never => {
  throw error;
};
beforeAll(() => {
  passwords = new Passwords(unexpected, WORKER);
});
afterAll(() => passwords.close());

/** Returns the reason of a rejection; null if the promise is fulfilled. */
function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Returns the code and message of an ApiError, or any other error unchanged. */
async function refusal(promise: Promise<unknown>): Promise<unknown> {
  const error = await rejection(promise);
  return error instanceof ApiError ? [error.kind.code, error.message] : error;
}

const TOO_MANY = [50300, "too many sign-ins in flight: try again"];
const SHUTTING_DOWN = [50300, "the exchange is shutting down"];

describe("a hash", () => {
  test("a hash is verified by its password and by no other", async () => {
    const hash = await passwords.hash(PASSWORD, ADDRESS);
    expect(await passwords.verify(hash, PASSWORD, ADDRESS)).toBe(true);
    for (const other of [`${PASSWORD} `, PASSWORD.toUpperCase(), PASSWORD.slice(1), ""]) {
      expect(await passwords.verify(hash, other, ADDRESS)).toBe(false);
    }
  });

  test("a hash is a PHC string of argon2id, m=19456, t=2, p=1, with a salt of its own", async () => {
    const hashes = await Promise.all([passwords.hash(PASSWORD, ADDRESS), passwords.hash(PASSWORD, ADDRESS)]);
    for (const hash of hashes) {
      expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    }
    expect(hashes[0]).not.toBe(hashes[1]);
  });

  test("a hash is the same for all ways to write the same characters", async () => {
    const hash = await passwords.hash("caf\u00e9 \ufb01ne 2nd", ADDRESS);
    expect(await passwords.verify(hash, "cafe\u0301 fine \uff12nd", ADDRESS)).toBe(true);
    expect(await passwords.verify(hash, "cafe fine 2nd", ADDRESS)).toBe(false);
  });

  test("a hash of every length and character that a schema lets through is verified", async () => {
    const cyrillic = Array.from({ length: 128 }, (_, i) => String.fromCharCode(0x410 + ((i * 7) % 50))).join("");
    // The ligatures are 18 and 8 characters in NFKC.
    for (const password of ["x7Kp9Qz2Lm", cyrillic, "\ufdfa\ufdfbx".repeat(42), "🐎🔋📎🍏🐴", "\ud800 alone here"]) {
      expect(await passwords.verify(await passwords.hash(password, ADDRESS), password, ADDRESS)).toBe(true);
    }
  });

  test("a hash with older, cheaper parameters still verifies", async () => {
    const cheaper = hashSync(PASSWORD, { memoryCost: 8_192, timeCost: 1, parallelism: 1 });
    expect(await passwords.verify(cheaper, PASSWORD, ADDRESS)).toBe(true);
  });

  test("a hash that is none, is damaged or asks for too much memory is false", async () => {
    const good = await passwords.hash(PASSWORD, ADDRESS);
    const greedy = hashSync(PASSWORD, { memoryCost: 98_304, timeCost: 1, parallelism: 1 });
    const damaged = ["", "x", "$argon2id$", good.slice(0, -1), good.replace("argon2id", "scrypt"), `${good}=`, greedy];
    for (const hash of [null, ...damaged]) expect(await passwords.verify(hash, PASSWORD, ADDRESS)).toBe(false);
  });

  test("a hash of nobody takes as long to reject as a wrong password", async () => {
    const hash = await passwords.hash(PASSWORD, ADDRESS);
    const hashes = { wrong: hash, nobody: null, damaged: hash.slice(0, 40) };
    const times: Record<string, number[]> = { wrong: [], nobody: [], damaged: [] };
    for (let round = 0; round < 17; round++) {
      for (const [name, given] of Object.entries(hashes)) {
        const start = process.cpuUsage();
        expect(await passwords.verify(given, "not that password", ADDRESS)).toBe(false);
        const { user, system } = process.cpuUsage(start);
        if (round >= 2) times[name]!.push(user + system);
      }
    }
    // Processor time of all threads, and its minimums: other work on the machine only adds to them.
    const least = (name: string): number => Math.min(...times[name]!);
    for (const name of ["nobody", "damaged"]) {
      expect(least(name) / least("wrong")).toBeGreaterThan(0.7);
      expect(least(name) / least("wrong")).toBeLessThan(1 / 0.7);
    }
  });
});

describe("too common", () => {
  const common = [
    // In the list.
    ["1234567890", "qwertyuiop", "QwertyUIOP", "ｑｗｅｒｔｙｕｉｏｐ", "1q2w3e4r5t", "1qaz2wsx3edc"],
    // In the list, with digits and punctuation around it.
    [
      "password123!",
      "Password2024",
      "PASSWORD-1234567890",
      "2024password",
      "!!monkey1999!!",
      "abc123!!!!",
      "123456!!!!",
    ],
    // Runs of equal, consecutive or (on the keyboard) adjacent characters.
    [
      "aaaaaaaaaa",
      "AaAaAaAaAa",
      "!!!!!!!!!!!!",
      "abcdefghij",
      "zyxwvutsrq",
      "0987654321",
      "890123456789",
      "asdfghjkl;",
    ],
    ["abcdef123456", "1111122222", "poiuytrewq", "abcdefgh2024!", "!@#$%^&*()", "𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗𝟎"],
    // Repetitions.
    ["abcabcabcabc", "abcabcabca", "x7!x7!x7!x7!", "monkeymonkey", "dragondragondragon", "x7Kpx7Kpx7Kp2024"],
  ].flat();
  test.for(common)("a password that is too common: %s", async (password) => {
    expect(await refusal(passwords.hash(password, ADDRESS))).toEqual([
      40000,
      "password: too common: choose one that is harder to guess",
    ]);
  });

  const allowed = [
    ["correct-horse-battery-staple", "correcthorsebatterystaple", "Correct Horse Battery Staple 1"],
    ["test-password-1", "my password is long", "x7Kp9Qz2Lm", "q8!vT2#zLw", "7041968253"],
    ["abc123xyz789", "monkey dragon", "monkeydragon", "Übergrößenträger", "пароль и соль", "馬電池正解留め金具写真機"],
  ].flat();
  test.for(allowed)("a password that is not too common: %s", async (password) => {
    expect(await passwords.hash(password, ADDRESS)).toMatch(/^\$argon2id\$/);
  });

  test("the rejection of a common password names the field that the caller names", async () => {
    const [code, message] = (await refusal(passwords.hash("1234567890", ADDRESS, "new_password"))) as [number, string];
    expect([code, message.split(":")[0]]).toEqual([40000, "new_password"]);
  });

  test("the longest of what could hide a listed password costs little", async () => {
    const timeOf = async (password: string): Promise<number> => {
      const start = performance.now();
      await passwords.hash(password, ADDRESS).catch(() => null);
      return performance.now() - start;
    };
    const [usual, longest]: [number[], number[]] = [[], []];
    for (let i = 0; i < 7; i++) {
      usual.push(await timeOf(PASSWORD));
      // Each character expands to four: 512 digits and brackets, no letters.
      longest.push(await timeOf("⑽⑾⒇⒆".repeat(32)));
    }
    expect(Math.min(...longest)).toBeLessThan(4 * Math.min(...usual));
  });

  test("a password set before is not rejected for being common", async () => {
    const hash = hashSync("password123!");
    expect(await passwords.verify(hash, "password123!", ADDRESS)).toBe(true);
  });
});

describe("what waits", () => {
  let own: Passwords;
  beforeEach(() => {
    own = new Passwords(unexpected, WORKER);
  });
  afterEach(() => own.close());

  test("the waiting jobs of one address let another address's pass: it is served within two jobs of a thread", async () => {
    const order: string[] = [];
    const settled = (name: string) => (): void => void order.push(name);
    const sent = MAX_WAITING_OF_ADDRESS + PASSWORD_THREADS + 50;
    const flood = Array.from({ length: sent }, () => own.verify(null, PASSWORD, "192.0.2.66"));
    const ends = flood.map((promise) => promise.then(settled("flood"), settled("refused")));
    await own.verify(null, PASSWORD, ADDRESS).then(settled("other"));
    const served = order.filter((name) => name !== "refused");
    expect(served.indexOf("other")).toBeLessThanOrEqual(2 * PASSWORD_THREADS);
    expect(order.length - served.length).toBe(50);
    await own.close();
    await Promise.all(ends);
  });

  test("the waiting jobs of thousands of addresses let those pass who are known: each is served within two jobs of a thread", async () => {
    const order: string[] = [];
    const settled = (name: string) => (): void => void order.push(name);
    // The queue is full: the pool rejects another stranger.
    const strangers = Array.from({ length: MAX_WAITING + PASSWORD_THREADS }, (_, i) =>
      own.verify(null, PASSWORD, `address ${i % 8_000}`).then(settled("stranger"), settled("refused")),
    );
    expect(await refusal(own.verify(null, PASSWORD, ADDRESS))).toEqual(TOO_MANY);
    await own.verify(null, PASSWORD, ADDRESS, 1).then(settled("known"));
    await own.hash(PASSWORD, ADDRESS, "password", 2).then(settled("known"));
    expect(order.indexOf("known")).toBeLessThanOrEqual(2 * PASSWORD_THREADS);
    expect(order.length).toBeLessThanOrEqual(4 * PASSWORD_THREADS + 2);
    await own.close();
    await Promise.all(strangers);
  });

  test("the waiting jobs of one account that is known let another's pass, and strangers have every second job", async () => {
    const order: string[] = [];
    const settled = (name: string) => (): void => void order.push(name);
    const sent = MAX_WAITING_OF_ACCOUNT + PASSWORD_THREADS;
    const flood = Array.from({ length: sent }, () => own.verify(null, PASSWORD, ADDRESS, 1).then(settled("one")));
    const other = own.verify(null, PASSWORD, ADDRESS, 2).then(settled("other"));
    const strangers = Array.from({ length: 5 }, (_, i) =>
      own.verify(null, PASSWORD, `address ${i}`).then(settled("stranger")),
    );
    // Requests beyond the account's share wait with the strangers of their address.
    const more = own.verify(null, PASSWORD, ADDRESS, 1).then(settled("more"));
    await Promise.all([...flood, other, ...strangers, more]);
    expect(order.indexOf("other")).toBeLessThanOrEqual(4 * PASSWORD_THREADS);
    expect(order.lastIndexOf("stranger")).toBeLessThanOrEqual(10 + 2 * PASSWORD_THREADS);
    expect(order.indexOf("more")).toBeGreaterThan(order.lastIndexOf("stranger"));
  });

  test("waiting jobs are bounded for one address, and no other is rejected then", async () => {
    const accepted = MAX_WAITING_OF_ADDRESS + PASSWORD_THREADS;
    const waiting = Array.from({ length: accepted }, () => refusal(own.verify(null, PASSWORD, ADDRESS)));
    expect(await refusal(own.verify(null, PASSWORD, ADDRESS))).toEqual(TOO_MANY);
    expect(await refusal(own.hash(PASSWORD, ADDRESS))).toEqual(TOO_MANY);
    expect(await own.verify(null, PASSWORD, "192.0.2.8")).toBe(false);
    await own.close();
    expect(await Promise.all(waiting)).toContainEqual(SHUTTING_DOWN);
  });

  test("waiting jobs are bounded in all, and every address is rejected then", async () => {
    const waiting: Promise<unknown>[] = [];
    for (let i = 0; i < MAX_WAITING + PASSWORD_THREADS; i++) {
      waiting.push(refusal(own.verify(null, PASSWORD, `address ${i % 4_000}`)));
    }
    expect(await refusal(own.verify(null, PASSWORD, "one more"))).toEqual(TOO_MANY);
    await own.close();
    const answers = new Set((await Promise.all(waiting)).map(String));
    expect(answers.has(String(TOO_MANY))).toBe(false);
    expect(answers.has(String(SHUTTING_DOWN))).toBe(true);
  });

  test("waiting jobs are rejected by close, which waits for the jobs under way", async () => {
    const underWay = Array.from({ length: PASSWORD_THREADS }, () => own.hash(PASSWORD, ADDRESS));
    const waiting = [own.hash(PASSWORD, ADDRESS), own.verify(null, PASSWORD, ADDRESS)].map(refusal);
    const closed = own.close();
    expect(await refusal(own.hash(PASSWORD, ADDRESS))).toEqual(SHUTTING_DOWN);
    expect(await Promise.all(waiting)).toEqual([SHUTTING_DOWN, SHUTTING_DOWN]);
    for (const hash of await Promise.all(underWay)) expect(hash).toMatch(/^\$argon2id\$/);
    await closed;
    expect(await refusal(own.verify(null, PASSWORD, ADDRESS))).toEqual(SHUTTING_DOWN);
  });
});

describe("what other threads notice", () => {
  test("the event loop goes on while 20 passwords are hashed", async () => {
    await passwords.hash(PASSWORD, ADDRESS);
    const delay = monitorEventLoopDelay({ resolution: 2 });
    delay.enable();
    const before = performance.eventLoopUtilization();
    // Few at a time: on a busy machine, threads of low priority take long, and what waits too long is rejected.
    for (let i = 0; i < 5; i++) await Promise.all([1, 2, 3, 4].map(() => passwords.hash(PASSWORD, ADDRESS)));
    const { utilization } = performance.eventLoopUtilization(before);
    delay.disable();
    expect(delay.count).toBeGreaterThan(5);
    expect(delay.percentile(99) / 1e6).toBeLessThan(50);
    expect(utilization).toBeLessThan(0.5);
  });

  // Other systems have no priority per thread.
  test.runIf(process.platform === "linux")("the hashing is done by threads of priority 10", async () => {
    await passwords.hash(PASSWORD, ADDRESS);
    const low = threads().filter((tid) => tid !== process.pid && getPriority(tid) === 10);
    expect(low).toHaveLength(PASSWORD_THREADS);
    expect(getPriority(process.pid)).toBeLessThan(10);
    const cpuMs = (): number => low.reduce((sum, tid) => sum + threadCpuMs(tid), 0);
    const [mine, theirs] = [process.cpuUsage(), cpuMs()];
    for (let i = 0; i < 20; i++) await passwords.hash(PASSWORD, ADDRESS);
    const { user, system } = process.cpuUsage(mine);
    expect(cpuMs() - theirs).toBeGreaterThan(((user + system) / 1_000) * 0.6);
  });
});

function threads(): number[] {
  return readdirSync("/proc/self/task").map(Number);
}

/** User and system time: fields 14 and 15 of proc(5)'s stat, counted behind the name in brackets. */
function threadCpuMs(tid: number): number {
  const stat = readFileSync(`/proc/self/task/${tid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

describe("a worker that fails", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "passwords-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function failing(body: string): Passwords {
    const file = join(folder, "worker.mjs");
    writeFileSync(file, `export function hash({ password }) { ${body} }\nexport const verify = () => true;\n`);
    return new Passwords(unexpected, pathToFileURL(file));
  }

  test.for([
    'throw new Error("no room for " + password);',
    "throw { password };",
    "throw password;",
    "process.exit(3);",
    "return () => password;",
  ])("a password worker that fails with %s rejects without the password, and the next job is done", async (body) => {
    const broken = failing(body);
    const error = (await rejection(broken.hash(PASSWORD, ADDRESS))) as Error;
    expect(error).toBeInstanceOf(Error);
    // If the thread died with its job, the client can retry: 50300.
    expect(error instanceof ApiError).toBe(!body.startsWith("throw"));
    expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(PASSWORD);
    expect(await broken.verify(null, PASSWORD, ADDRESS)).toBe(true);
    await broken.close();
  });
});
