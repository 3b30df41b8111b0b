/**
 * Mails and text messages against a real SMTP server, a real webhook and real files: the tests check deliveries and
 * logs.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  passwordChangedMail,
  passwordResetMail,
  phoneCodeText,
  verificationMail,
} from "../../server/messages/mail-templates.ts";
import { MAX_WAITING_MESSAGES, type Mail, Notifier, type NotifierOptions } from "../../server/messages/notifier.ts";
import { SmtpServer, TO, Webhook } from "./message-servers.ts";

const FROM = "Prediction Exchange <no-reply@exchange.example>";
const PHONE = "+447400123456";
const QUICK_RETRIES = { retryPausesMs: [20, 40, 60] };

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly kind: string;
  readonly attempt?: number;
  readonly code?: string;
  readonly responseCode?: number;
  readonly reason?: string;
  readonly dropped?: number;
  readonly count?: number;
}
const WARN = 40;
const ERROR = 50;

let folder = "";
let outbox = "";
let logged = "";
let smtp: SmtpServer;
let webhook: Webhook;
let notifiers: Notifier[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "exchange-test-"));
  outbox = join(folder, "data", "outbox");
  logged = "";
  notifiers = [];
  smtp = new SmtpServer();
  webhook = new Webhook();
});
afterEach(async () => {
  smtp.close();
  webhook.close();
  await Promise.all(notifiers.map((notifier) => notifier.close()));
  rmSync(folder, { recursive: true, force: true });
});

function start(options: Partial<NotifierOptions> = {}): Notifier {
  const memory = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk;
      done();
    },
  });
  const logger = pino({ level: "trace", base: null }, memory);
  const notifier = new Notifier({ smtpUrl: null, smsWebhookUrl: null, outbox, from: FROM, logger, ...options });
  notifiers.push(notifier);
  return notifier;
}

function logLines(): LogLine[] {
  return logged
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogLine);
}

function until(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 45_000, interval: 10 });
}

function mailOf(text: string, to = TO): Mail {
  return { to, subject: "Hello", text };
}

function fileNames(): string[] {
  return readdirSync(outbox).sort();
}

function readFiles(): string[] {
  return fileNames().map((name) => readFileSync(join(outbox, name), "utf8"));
}

/** Returns the header fields, unfolded to one line each, and the body. */
function parse(message: string): { headers: string[]; body: string } {
  const lines = message.replaceAll("\r\n", "\n");
  const end = lines.indexOf("\n\n");
  return {
    headers: lines
      .slice(0, end)
      .replace(/\n[ \t]/g, " ")
      .split("\n"),
    body: lines.slice(end + 2),
  };
}

describe("the outbox", () => {
  test("a mail in the outbox becomes a file that holds its text unchanged, for the process's user alone", async () => {
    const notifier = start();
    const link = "https://exchange.example/verify?token=".padEnd(74, "x");
    const mail = verificationMail(TO, link, 86_400_000);
    notifier.sendMail(mail);
    await notifier.close();
    const names = fileNames();
    expect(names).toHaveLength(1);
    expect(names[0]).toMatch(/^\d{13}-\d{6}-[0-9a-f]{8}\.eml$/);
    const raw = readFiles()[0]!;
    expect(raw.includes(link)).toBe(true);
    const { headers, body } = parse(raw);
    expect(body).toBe(mail.text);
    expect(headers).toContain(`From: ${FROM}`);
    expect(headers).toContain(`To: ${TO}`);
    expect(headers).toContain(`Subject: ${mail.subject}`);
    expect(headers).toContain("Auto-Submitted: auto-generated");
    expect(headers).toContain("Content-Transfer-Encoding: 7bit");
    expect(headers.filter((header) => header.startsWith("Content-Type:"))).toEqual([
      "Content-Type: text/plain; charset=utf-8",
    ]);
    expect(statSync(join(outbox, names[0]!)).mode & 0o777).toBe(0o600);
    expect(statSync(outbox).mode & 0o777).toBe(0o700);
    expect(logged).toBe("");
  });

  test("links of every length up to 74 characters are in the outbox's file unchanged", async () => {
    const notifier = start();
    const links = Array.from({ length: 55 }, (_, i) => "https://e.example/?t".padEnd(20 + i, "=.aZ9_-"));
    for (const link of links) notifier.sendMail(verificationMail(TO, link, 86_400_000));
    await notifier.close();
    const files = readFiles();
    expect(files).toHaveLength(links.length);
    for (const [i, link] of links.entries()) expect(files[i]!.split("\n")).toContain(link);
  });

  test("a text message in the outbox becomes a file with the number, an empty line and the body", async () => {
    const notifier = start();
    notifier.sendText({ to: PHONE, body: "Your code is 123456." });
    await notifier.close();
    expect(fileNames()).toEqual([expect.stringMatching(/^\d{13}-\d{6}-[0-9a-f]{8}\.sms$/)]);
    expect(readFiles()).toEqual([`To: ${PHONE}\n\nYour code is 123456.`]);
    expect(statSync(join(outbox, fileNames()[0]!)).mode & 0o777).toBe(0o600);
  });

  test("the outbox's files sort in the order of acceptance", async () => {
    const notifier = start();
    const bodies = Array.from({ length: 200 }, (_, i) => `message ${i}`);
    for (const body of bodies) notifier.sendText({ to: PHONE, body });
    await notifier.close();
    expect(readFiles().map((content) => parse(content).body)).toEqual(bodies);
  });

  test("the outbox's folder is not created before the first message", () => {
    start();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a delivery fails if the outbox's folder can't be created, and a retry creates it", async () => {
    writeFileSync(join(folder, "data"), "in the way");
    const notifier = start({ retryPausesMs: [100, 100, 100] });
    notifier.sendMail(mailOf("text"));
    await until(() => expect(logLines()).toMatchObject([{ level: WARN, kind: "mail", attempt: 1, code: "ENOTDIR" }]));
    rmSync(join(folder, "data"));
    await until(() => expect(fileNames()).toHaveLength(1));
    expect(logged).not.toContain(folder);
  });
});

describe("mail by SMTP", () => {
  test("mail by SMTP arrives, in the order of acceptance, over one connection that opens with the first", async () => {
    const notifier = start({ smtpUrl: await smtp.listen() });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(smtp.connections).toBe(0);
    const texts = Array.from({ length: 20 }, (_, i) => `mail ${i}\n\n.\n..\nend\n`);
    for (const text of texts) notifier.sendMail(mailOf(text));
    await notifier.close();
    expect(smtp.received.map(({ data }) => parse(data).body)).toEqual(texts);
    expect(smtp.received[0]).toMatchObject({ from: "<no-reply@exchange.example>", to: [`<${TO}>`] });
    expect(parse(smtp.received[0]!.data).headers).toContain("Auto-Submitted: auto-generated");
    expect(parse(smtp.received[0]!.data).headers).toContain("Content-Transfer-Encoding: 7bit");
    expect(smtp.connections).toBe(1);
    expect(logged).toBe("");
    await until(() => expect(smtp.isConnected).toBe(false));
  });

  test("mail is retried when the SMTP server drops and rejects connections", async () => {
    smtp.welcomes.push("drop", "refuse");
    const notifier = start({ smtpUrl: await smtp.listen(), ...QUICK_RETRIES });
    notifier.sendMail(mailOf("secret words"));
    await until(() => expect(smtp.received).toHaveLength(1));
    expect(smtp.connections).toBe(3);
    expect(logLines()).toMatchObject([
      { level: WARN, kind: "mail", attempt: 1 },
      { level: WARN, kind: "mail", attempt: 2, responseCode: 554 },
    ]);
  });

  test("mail is dropped after four attempts, with one error line", async () => {
    smtp.recipientAnswers.push(...Array.from({ length: 4 }, () => `550 no such user ${TO}`));
    const notifier = start({ smtpUrl: await smtp.listen(), ...QUICK_RETRIES });
    notifier.sendMail(mailOf("secret words"));
    await until(() => expect(logLines()).toHaveLength(4));
    expect(logLines().map(({ level, attempt }) => [level, attempt])).toEqual([
      [WARN, 1],
      [WARN, 2],
      [WARN, 3],
      [ERROR, 4],
    ]);
    expect(logLines()[3]).toMatchObject({ kind: "mail", code: "EENVELOPE", responseCode: 550 });
    notifier.sendMail(mailOf("next"));
    await notifier.close();
    expect(smtp.received.map(({ data }) => parse(data).body.trimEnd())).toEqual(["next"]);
    expect(logLines()).toHaveLength(4);
  });

  test("mail is retried after a second by default", async () => {
    smtp.welcomes.push("drop");
    const notifier = start({ smtpUrl: await smtp.listen() });
    notifier.sendMail(mailOf("text"));
    await until(() => expect(logLines()).toHaveLength(1));
    const failedAt = performance.now();
    await until(() => expect(smtp.received).toHaveLength(1));
    expect(performance.now() - failedAt).toBeGreaterThan(900);
  });

  test("a retry doesn't delay the mails behind it", async () => {
    smtp.recipientAnswers.push("451 later");
    const notifier = start({ smtpUrl: await smtp.listen(), retryPausesMs: [300] });
    for (const text of ["first", "second", "third"]) notifier.sendMail(mailOf(text));
    await until(() => expect(smtp.received).toHaveLength(3));
    expect(smtp.received.map(({ data }) => parse(data).body.trimEnd())).toEqual(["second", "third", "first"]);
  });

  test("an SMTP server that never responds costs one timeout, and text messages don't wait for it", async () => {
    smtp.welcomes.push("ignore");
    const smtpUrl = await smtp.listen();
    const notifier = start({ smtpUrl, ...QUICK_RETRIES, timeoutsMs: { mail: 1_000, text: 10_000 } });
    notifier.sendMail(mailOf("mail"));
    notifier.sendText({ to: PHONE, body: "text" });
    await until(() => expect(fileNames()).toHaveLength(1));
    expect(logged).toBe("");
    await until(() => expect(smtp.received).toHaveLength(1));
    expect(logLines()).toMatchObject([{ level: WARN, kind: "mail", attempt: 1, code: "ETIMEDOUT" }]);
  });
});

describe("text messages by webhook", () => {
  test("text messages are posted as JSON, in the order of acceptance", async () => {
    const notifier = start({ smsWebhookUrl: await webhook.listen() });
    const messages = Array.from({ length: 20 }, (_, i) => ({ to: PHONE, body: `Your code is ${i}.` }));
    for (const message of messages) notifier.sendText(message);
    await notifier.close();
    expect(webhook.requests.map(({ body }) => JSON.parse(body))).toEqual(messages);
    expect(webhook.requests[0]).toMatchObject({ method: "POST", type: "application/json" });
    expect(logged).toBe("");
  });

  test("text messages are retried after an error and a redirect, which isn't followed", async () => {
    webhook.answers.push(503, 302, 200);
    const notifier = start({ smsWebhookUrl: await webhook.listen(), ...QUICK_RETRIES });
    notifier.sendText({ to: PHONE, body: "code" });
    await until(() => expect(webhook.requests).toHaveLength(3));
    await notifier.close();
    expect(webhook.requests.every(({ method }) => method === "POST")).toBe(true);
    expect(logLines()).toMatchObject([
      { level: WARN, kind: "text", attempt: 1, code: "EHTTP", responseCode: 503 },
      { level: WARN, kind: "text", attempt: 2 },
    ]);
  });

  test("text messages are retried after a timeout, and dropped in the end", async () => {
    webhook.answers.push("ignore", "ignore");
    const smsWebhookUrl = await webhook.listen();
    const notifier = start({ smsWebhookUrl, retryPausesMs: [10], timeoutsMs: { mail: 100, text: 100 } });
    notifier.sendText({ to: PHONE, body: "code" });
    await until(() => expect(logLines()).toHaveLength(2));
    expect(logLines()).toMatchObject([
      { level: WARN, attempt: 1, code: "ETIMEDOUT" },
      { level: ERROR, attempt: 2, code: "ETIMEDOUT" },
    ]);
  });

  test("the log line of a text message has the socket's error if nobody listens", async () => {
    const smsWebhookUrl = await webhook.listen();
    webhook.close();
    const notifier = start({ smsWebhookUrl, retryPausesMs: [] });
    notifier.sendText({ to: PHONE, body: "code" });
    await until(() => expect(logLines()).toMatchObject([{ level: ERROR, attempt: 1, code: "ECONNREFUSED" }]));
  });
});

describe("an address is one recipient or none", () => {
  const addresses = [
    "",
    "ada",
    "@mail.example",
    "ada@",
    "ada@mail.example\r\nBcc: eve@evil.example",
    "ada@mail.example\nBcc: eve@evil.example",
    "ada@mail.example\r\n\r\nbody",
    "ada@mail.example>\r\nRCPT TO:<eve@evil.example",
    "ada@mail.example,eve@evil.example",
    "ada@mail.example;eve@evil.example",
    "ada@mail.example eve@evil.example",
    "Ada <ada@mail.example>",
    "<ada@mail.example>",
    "friends:ada@mail.example,eve@evil.example;",
    '"ada@mail.example,eve"@evil.example',
    '"ada"@mail.example',
    "ada@evil.example@mail.example",
    "ada(eve@evil.example)@mail.example",
    "ada\\@mail.example",
    "ada@[127.0.0.1]",
    "ada\0@mail.example",
    "ada\u2028@mail.example",
    "ada@mail.example\uff0ceve@evil.example",
    "ada@mail\ufe50evil.example",
    "ada@mail\u037eevil.example",
    "ada\uff20evil.example@mail.example",
    ` ${TO}`,
    `${TO} `,
    `${"a".repeat(250)}@mail.example`,
  ];
  test("no mail is sent to anything but one plain address, by SMTP or to the outbox", async () => {
    const bySmtp = start({ smtpUrl: await smtp.listen(), ...QUICK_RETRIES });
    const byFile = start();
    for (const address of addresses) {
      bySmtp.sendMail(mailOf("secret", address));
      byFile.sendMail(mailOf("secret", address));
    }
    bySmtp.sendMail(mailOf("text"));
    byFile.sendMail(mailOf("text"));
    await Promise.all([bySmtp.close(), byFile.close()]);
    expect(smtp.received.map(({ to }) => to)).toEqual([[`<${TO}>`]]);
    expect(fileNames()).toHaveLength(1);
    const lines = logLines();
    expect(lines).toHaveLength(2 * addresses.length);
    for (const line of lines) expect(line).toMatchObject({ level: ERROR, kind: "mail", reason: "address" });
    expect(lines.at(-1)!.dropped).toBe(addresses.length);
    expect(logged).not.toMatch(/mail\.example|evil/);
  });

  const plain = ["o'neil+tag@mail.example", "a.b-c_d=e%f!g@sub.mail.example", "ada@m\u00fcnchen.example"];
  test.for(plain)("the address %s gets its mail", async (address) => {
    const notifier = start({ smtpUrl: await smtp.listen() });
    notifier.sendMail(mailOf("text", address));
    await notifier.close();
    expect(smtp.received.map(({ to }) => to)).toEqual([[`<${address.replace("m\u00fcnchen", "xn--mnchen-3ya")}>`]]);
  });

  test("a mail's subject and text add no header", async () => {
    const notifier = start();
    notifier.sendMail({ to: TO, subject: "Hello\r\nBcc: eve@evil.example", text: "Bcc: eve@evil.example\n" });
    await notifier.close();
    const { headers, body } = parse(readFiles()[0]!);
    expect(headers.some((header) => header.startsWith("Bcc"))).toBe(false);
    expect(headers).toContain("Subject: Hello Bcc: eve@evil.example");
    expect(body).toBe("Bcc: eve@evil.example\n");
  });

  test.for([`${PHONE}\nTo: +14155552671`, `${PHONE}\r\n\r\nbody`, `${PHONE},+14155552671`, "447400123456", "", "+"])(
    "a text message to %j is dropped",
    async (to) => {
      const notifier = start({ smsWebhookUrl: await webhook.listen() });
      notifier.sendText({ to, body: "secret" });
      await notifier.close();
      expect(webhook.requests).toHaveLength(0);
      expect(logLines()).toMatchObject([{ level: ERROR, kind: "text", reason: "address", dropped: 1 }]);
    },
  );
});

describe("bounds", () => {
  test("a thousand messages wait, retries included; each one beyond is dropped with a log line", async () => {
    webhook.answers.push(503, "ignore");
    const notifier = start({ smsWebhookUrl: await webhook.listen(), retryPausesMs: [60_000] });
    notifier.sendText({ to: PHONE, body: "to try again" });
    await until(() => expect(logLines()).toMatchObject([{ level: WARN, attempt: 1 }]));
    for (let i = 1; i < MAX_WAITING_MESSAGES; i++) notifier.sendText({ to: PHONE, body: `message ${i}` });
    expect(logLines()).toHaveLength(1);
    for (let i = 0; i < 3; i++) notifier.sendText({ to: PHONE, body: "too much" });
    notifier.sendMail(mailOf("another kind"));
    await until(() => expect(fileNames()).toHaveLength(1));
    expect(logLines().slice(1)).toMatchObject(
      [1, 2, 3].map((dropped) => ({ level: ERROR, kind: "text", reason: "full", dropped })),
    );
    webhook.close();
  });

  test("there is room for messages again after some were sent", async () => {
    const notifier = start({ smsWebhookUrl: await webhook.listen() });
    for (let i = 0; i <= MAX_WAITING_MESSAGES; i++) notifier.sendText({ to: PHONE, body: `message ${i}` });
    await until(() => expect(webhook.requests.length).toBe(MAX_WAITING_MESSAGES));
    notifier.sendText({ to: PHONE, body: "late" });
    await notifier.close();
    expect(JSON.parse(webhook.requests.at(-1)!.body)).toEqual({ to: PHONE, body: "late" });
    expect(logLines()).toMatchObject([{ level: ERROR, reason: "full", dropped: 1 }]);
  });
});

describe("close", () => {
  test("the notifier's close retries the waiting messages at once", async () => {
    smtp.recipientAnswers.push("451 later");
    const notifier = start({ smtpUrl: await smtp.listen(), retryPausesMs: [60_000] });
    notifier.sendMail(mailOf("text"));
    await until(() => expect(logLines()).toHaveLength(1));
    await notifier.close();
    expect(smtp.received).toHaveLength(1);
    expect(logLines()).toHaveLength(1);
  });

  test("the notifier's close drops a message that fails then, with an error line", async () => {
    webhook.answers.push(503, 503);
    const notifier = start({ smsWebhookUrl: await webhook.listen(), retryPausesMs: [60_000, 60_000] });
    notifier.sendText({ to: PHONE, body: "code" });
    await until(() => expect(logLines()).toHaveLength(1));
    await notifier.close();
    expect(logLines()[1]).toMatchObject({ level: ERROR, attempt: 2, responseCode: 503 });
  });

  test("the notifier's close waits a few seconds for servers that never respond, and logs how many messages it drops", async () => {
    smtp.welcomes.push("ignore");
    webhook.answers.push("ignore");
    const notifier = start({ smtpUrl: await smtp.listen(), smsWebhookUrl: await webhook.listen() });
    for (let i = 0; i < 3; i++) {
      notifier.sendMail(mailOf("mail"));
      notifier.sendText({ to: PHONE, body: "text" });
    }
    await until(() => expect([smtp.connections, webhook.requests.length]).toEqual([1, 1]));
    const startedAt = performance.now();
    await notifier.close();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    for (const kind of ["mail", "text"]) {
      expect(logLines().filter((line) => line.kind === kind)).toMatchObject([
        { level: ERROR, count: 2 },
        { level: ERROR, attempt: 1, code: "ECANCELED" },
      ]);
    }
    await until(() => expect(smtp.isConnected).toBe(false));
  });

  test("the notifier's close drops later messages, and may be called twice", async () => {
    const notifier = start();
    expect(notifier.close()).toBe(notifier.close());
    notifier.sendMail(mailOf("late"));
    await notifier.close();
    expect(readdirSync(folder)).toEqual([]);
    expect(logLines()).toMatchObject([{ level: ERROR, kind: "mail", reason: "closed", dropped: 1 }]);
  });
});

test("no line holds a text, a link, a code, an address, a number or a URL, whatever fails", async () => {
  const link = "https://exchange.example/reset?token=link-secret";
  smtp.welcomes.push("refuse", "drop");
  smtp.recipientAnswers.push(`550 <${TO}>: unknown, see ${link}`, `451 ${TO} later`);
  webhook.answers.push(500, 302, "ignore");
  const smtpUrl = (await smtp.listen()).replace("smtp://", "smtp://smtp-user:smtp-secret@");
  const smsWebhookUrl = await webhook.listen();
  const timeoutsMs = { mail: 500, text: 100 };
  const notifier = start({ smtpUrl, smsWebhookUrl, retryPausesMs: [10, 10, 10], timeoutsMs });
  notifier.sendMail(passwordResetMail(TO, link, 3_600_000));
  notifier.sendText(phoneCodeText(PHONE, "918273", 600_000));
  await until(() => expect(logLines().filter(({ attempt }) => attempt === 3)).toHaveLength(2));
  smtp.close();
  webhook.close();
  notifier.sendMail(passwordChangedMail(TO));
  notifier.sendText(phoneCodeText(PHONE, "918273", 600_000));
  notifier.sendMail(mailOf("secret", `${TO},x`));
  await notifier.close();
  expect(logLines().length).toBeGreaterThan(8);
  expect(logged).not.toMatch(
    /secret|918273|7400123456|mail\.example|exchange|smtp-user|127\.0\.0\.1|https?:|token|password/i,
  );
  const known = ["level", "time", "kind", "attempt", "code", "responseCode", "reason", "dropped", "count", "msg"];
  for (const line of logLines()) for (const key of Object.keys(line)) expect(known).toContain(key);
});

test("a closed port fails a delivery like any other error", async () => {
  const smtpUrl = await smtp.listen();
  smtp.close();
  await expect(
    new Promise((_, reject) => connect(Number(new URL(smtpUrl).port), "127.0.0.1").on("error", reject)),
  ).rejects.toThrow("ECONNREFUSED");
  const notifier = start({ smtpUrl, retryPausesMs: [] });
  notifier.sendMail(mailOf("text"));
  await until(() => expect(logLines()).toMatchObject([{ level: ERROR, kind: "mail", attempt: 1 }]));
});
