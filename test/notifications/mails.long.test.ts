/**
 * Mails that say what happened: what they have and who gets them, one a user and interval; how they end, by their link and
 * by a mail program; and that a restart and a crash lose none and repeat none.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectEndsWell } from "../support/checks.ts";
import { askOnce, type Client } from "../support/client.ts";
import { messagesTo, PASSWORD, signIn } from "../support/identity.ts";
import { asOperator, OPERATORS, settle } from "../support/markets.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

interface Mail {
  readonly subject: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

const CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));
const EMAIL = "teller@example.com";
/** Seconds: an interval, and what a mail waits for commits under way. */
const PATIENTLY_MS = 40_000;
const PATIENTLY = { timeout: 2 * PATIENTLY_MS };

let world: World;
let user: Client;
let operator: Client;
let market: TestMarket;

/** Undoes quoted-printable. */
const decoded = (text: string): string =>
  Buffer.from(
    text
      .replaceAll("=\n", "")
      .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    "latin1",
  ).toString();
/** Undoes encoded words. */
const decodedWords = (text: string): string =>
  text
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?UTF-8\?Q\?(.*?)\?=/g, (_, word: string) => decoded(word.replaceAll("_", " ")))
    .replaceAll(/=\?UTF-8\?B\?(.*?)\?=/g, (_, word: string) => Buffer.from(word, "base64").toString());

function parse(message: string): Mail {
  const end = message.indexOf("\n\n");
  const lines = message.slice(0, end).replaceAll(/\n\s+/g, " ").split("\n");
  const headers = new Map(lines.map((line) => [line.split(":", 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, "")]));
  return { subject: decodedWords(headers.get("subject") ?? ""), headers, text: decoded(message.slice(end + 2)) };
}

const mailsTo = (email: string): Mail[] => messagesTo(world.server, email).map(parse);
/** Waits for so many mails in all. */
const mails = (count: number, email = EMAIL): Promise<Mail[]> =>
  eventually(async () => {
    const found = mailsTo(email);
    expect(found.map(({ subject }) => subject).length).toBeGreaterThanOrEqual(count);
    return found;
  }, PATIENTLY_MS);
/** Waits until the mails from one on match, and returns their texts. */
const textOf = (from: number, patterns: readonly RegExp[]): Promise<string> =>
  eventually(async () => {
    const text = mailsTo(EMAIL)
      .slice(from)
      .map((mail) => mail.text)
      .join("\n");
    for (const pattern of patterns) expect(text).toMatch(pattern);
    return text;
  }, PATIENTLY_MS);
const linkIn = ({ text }: Mail): string => /^http\S+\/unsubscribe\/\S+$/m.exec(text)![0];
const settings = (mail: object): Promise<unknown> => user.data("PATCH", "/me/notification-settings", { mail });
/** Of users, by email. */
const ids = new Map<string, number>();
let deposits = 0;
async function deposit(email: string, amount: number): Promise<void> {
  const reference = `mails ${++deposits}`;
  await operator.data("POST", "/admin/deposits", { user_id: ids.get(email), amount, reference });
}

async function trade(price: number): Promise<void> {
  await world.client("taker").place(terms(market, 0, SELL, price, 1));
  await world.client("maker").place(terms(market, 0, BUY, price, 1));
}

async function open(): Promise<void> {
  user = (await signIn(world.server, EMAIL)).client;
  operator = await asOperator(world);
}
function close(): void {
  user.close();
  operator.close();
}

beforeAll(async () => {
  const signed = { password: PASSWORD };
  const named = { ...OPERATORS, teller: signed, other: signed, maker: {}, taker: {} };
  const clock = { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFFSET_MS: "0", CLOCK_STEPS_MS: "-8000" };
  world = await World.start({ users: 1, named, markets: [2, 2, 2], env: { MAIL_INTERVAL: "1", ...clock } });
  market = world.market();
  await world.split(world.client("taker"), market, 1_000);
  await open();
  for (const email of [EMAIL, "other@example.com"]) {
    const { client, user: known } = await signIn(world.server, email);
    ids.set(email, known.id);
    client.close();
  }
});
afterAll(async () => {
  close();
  await expectEndsWell(world);
});

test("one mail says what happened, in the words of the page, to those to whom it happened", PATIENTLY, async () => {
  const paid = world.market();
  await world.split(user, paid, 7);
  await trade(5_000);
  await user.data("POST", "/me/price-alerts", { outcome_id: market.outcomes[0], direction: "above", price: 5_500 });
  await trade(5_550);
  await deposit(EMAIL, 12.5 * USDC);
  await settle(operator, paid, { outcome_id: paid.outcomes[1] });
  // The round may begin between two of them.
  const text = await textOf(0, [
    /^Deposit of 12\.50 credited\n {2}Available now\.\n {2}20.* UTC$/m,
    /^Resolved: Outcome 1, you received 7\.00\n {2}.+ · 7 Outcome 1, profit 3\.50\n {2}20.* UTC$/m,
    /^Resolved: Outcome 1, you received 0\.00\n {2}.+ · 7 Outcome 0, loss 3\.50$/m,
    /^Outcome 0 reached 55\.0¢\n {2}Your alert: 55\.0¢ or more · .+$/m,
  ]);
  const [first] = mailsTo(EMAIL);
  const { headers } = first!;
  const link = linkIn(first!);
  expect(headers.get("list-unsubscribe")).toBe(`<${link.replace("/unsubscribe/", "/api/v1/auth/unsubscribe/")}>`);
  expect(headers.get("list-unsubscribe-post")).toBe("List-Unsubscribe=One-Click");
  expect(headers.get("auto-submitted")).toBe("auto-generated");
  // Fills aren't mailed at first, and seeded deposits happened before the first mail.
  expect(text).not.toMatch(/Bought|Sold/);
  for (const name of ["taker", "maker", "other"]) expect(mailsTo(`${name}@example.com`)).toEqual([]);
});

test("only the topics that are wanted are mailed, fills among them", {
  timeout: 60_000,
}, async () => {
  await settings({ payments: false, fills: true });
  const before = mailsTo(EMAIL).length;
  await deposit(EMAIL, USDC);
  await user.place(terms(market, 0, BUY, 2_000, 30));
  await world.client("taker").place(terms(market, 0, SELL, 2_000, 30));
  await user.place(terms(market, 0, BUY, 2_050, 10));
  await world.client("taker").place(terms(market, 0, SELL, 2_050, 10));
  const text = await textOf(before, [
    /^Bought 30 Outcome 0 at 20\.0¢\n {2}.+ · 6\.00 USDC$/m,
    /^Bought 10 Outcome 0 at 20\.5¢\n {2}.+ · 2\.05 USDC$/m,
  ]);
  expect(text).not.toContain("Deposit");
  await settings({ payments: true, fills: false });
});

describe("the link that ends mails", () => {
  test(
    "the link that ends mails works without a sign-in, by the page and by a mail program; a wrong one ends nothing",
    PATIENTLY,
    async () => {
      const before = mailsTo(EMAIL).length;
      await deposit(EMAIL, 3 * USDC);
      const link = linkIn((await mails(before + 1)).at(-1)!);
      const token = link.split("/").at(-1)!;
      const api = `${world.server.root}/api/v1/auth/unsubscribe`;
      const asked = await fetch(`${api}/${token}`, { redirect: "manual" });
      expect([asked.status, asked.headers.get("location")]).toEqual([302, link]);
      const wrong = [
        "1",
        `${token}x`,
        token.slice(0, -1),
        `999.${token.split(".")[1]}`,
        "%00",
        `${token.split(".")[0]}.ä`,
      ];
      for (const each of wrong) {
        await expectRefused(
          askOnce(world.server, null, "POST", `/auth/unsubscribe/${encodeURIComponent(each)}`),
          404,
          4040,
        );
      }
      for (const body of ["all=please", "x".repeat(2_000), `[${"List-Unsubscribe=One-Click,".repeat(50)}]`]) {
        const refused = await fetch(`${api}/${token}`, { method: "POST", body });
        expect(refused.status).toBe(400);
      }
      const isOn = async (): Promise<boolean> => {
        const { mail } = await user.get<{ mail: Record<string, boolean> }>("/me/notification-settings");
        return Object.values(mail).includes(true);
      };
      expect(await isOn()).toBe(true);
      const form = new FormData();
      form.set("List-Unsubscribe", "One-Click");
      for (const body of [new URLSearchParams({ "List-Unsubscribe": "One-Click" }), form, undefined]) {
        const ended = await fetch(`${api}/${token}`, { method: "POST", ...(body !== undefined && { body }) });
        expect([ended.status, await isOn()]).toEqual([200, false]);
        await settings({ payments: true });
      }
      await settings({ payments: false });
      // Other settings stay.
      expect(await user.get("/me/notification-settings")).toMatchObject({ page: { fills: true, payments: true } });
      await deposit(EMAIL, 4 * USDC);
      await deposit("other@example.com", 4 * USDC);
      const counted = mailsTo(EMAIL).length;
      expect((await mails(1, "other@example.com")).length).toBe(1);
      expect(mailsTo(EMAIL).length).toBe(counted);
      await settings({ payments: true });
    },
  );
});

test("a clock that is set back loses no mail and repeats none, at a restart either", { timeout: 120_000 }, async () => {
  const about = (amount: number): Mail[] =>
    mailsTo(EMAIL).filter(({ text }) => text.includes(`of ${amount}.00 credited`));
  await deposit(EMAIL, 401 * USDC);
  await eventually(async () => expect(about(401).length).toBe(1), PATIENTLY_MS);
  const before = await user.get<{ now: number }>("/time");
  world.server.signal("SIGUSR2");
  await eventually(async () => expect((await user.get<{ now: number }>("/time")).now).toBeLessThan(before.now));
  await deposit(EMAIL, 402 * USDC);
  await eventually(async () => expect(about(402).length).toBe(1), PATIENTLY_MS);
  close();
  await world.server.stop();
  world.server = await world.server.restart({ CLOCK_OFFSET_MS: "-20000" });
  await open();
  await deposit(EMAIL, 403 * USDC);
  await eventually(async () => expect(about(403).length).toBe(1), PATIENTLY_MS);
  expect([about(401).length, about(402).length]).toEqual([1, 1]);
});

test("a restart and a crash lose no mail and repeat none", { timeout: 90_000 }, async () => {
  const amounts = [501, 502, 503];
  for (const [i, amount] of amounts.entries()) {
    await deposit(EMAIL, amount * USDC);
    close();
    if (i === 0) await world.server.stop();
    else await world.server.kill();
    world.server = await world.server.restart();
    await open();
  }
  const about = (amount: number): Mail[] =>
    mailsTo(EMAIL).filter(({ text }) => text.includes(`of ${amount}.00 credited`));
  await eventually(async () => {
    for (const amount of amounts) expect(about(amount).length, String(amount)).toBe(1);
  }, PATIENTLY_MS);
  // As if a crash had come after the mail of the first half of a round.
  close();
  await world.server.stop();
  const file = join(world.server.dataDir, "mails.json");
  const saved = JSON.parse(readFileSync(file, "utf8")) as { events: { since: number } };
  const [first, second] = [EMAIL, "other@example.com"].sort((a, b) => ids.get(a)! - ids.get(b)!);
  const until = saved.events.since;
  const events = { since: until - 60_000, until, after: ids.get(first!)! };
  writeFileSync(file, JSON.stringify({ ...saved, events }));
  const counts = [first!, second!].map((email) => mailsTo(email).length);
  world.server = await world.server.restart();
  await open();
  await deposit(first!, 504 * USDC);
  await eventually(async () => {
    expect(mailsTo(first!).at(-1)?.text).toContain("504.00");
  }, PATIENTLY_MS);
  // The deposits of the minute before are in no mail to the first user, who had been told.
  expect(mailsTo(first!).length).toBe(counts[0]! + 1);
  expect(mailsTo(second!).length).toBe(counts[1]! + 1);
  // A file that is damaged begins anew.
  close();
  await world.server.stop();
  for (const damaged of ["null", "[]", '{"events":{"since":"x"}}', '{"events":']) {
    writeFileSync(file, damaged);
    world.server = await world.server.restart();
    if (damaged !== '{"events":') await world.server.stop();
  }
  await open();
  expect(readdirSync(world.server.dataDir)).toContain("mails.json");
  await deposit(EMAIL, 505 * USDC);
  await eventually(async () => expect(about(505).length).toBe(1), PATIENTLY_MS);
});
