/**
 * Mails and text messages against a real SMTP server, a real webhook and real files: the tests check deliveries and
 * logs.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
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
} from "../../server/accounts/mail-templates.ts";
import { MAX_WAITING_MESSAGES, type Mail, Notifier, type NotifierOptions } from "../../server/accounts/notifier.ts";

const FROM = "Prediction Exchange <no-reply@exchange.example>";
const TO = "ada@mail.example";
const PHONE = "+447400123456";
const QUICK_RETRIES = { retryPausesMs: [20, 40, 60] };

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Dots unescaped, line ends as on the wire. */
  readonly data: string;
}

/** How the server treats a connection: serves it, cuts it before the greeting, rejects it, or never responds. */
type Welcome = "serve" | "drop" | "refuse" | "ignore";

/** The minimal subset of RFC 5321 that a client needs. */
class SmtpServer {
  readonly received: ReceivedMail[] = [];
  /** The treatment of the next connections; once empty, the server serves all of them. */
  readonly welcomes: Welcome[] = [];
  /** Replies to the next recipients; once empty, the server accepts all of them. */
  readonly recipientAnswers: string[] = [];
  connections = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server = createServer((socket) => this.welcome(socket));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `smtp://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  get isConnected(): boolean {
    return this.sockets.size > 0;
  }

  private welcome(socket: Socket): void {
    this.connections++;
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    const welcome = this.welcomes.shift() ?? "serve";
    if (welcome === "drop") socket.destroy();
    else if (welcome === "refuse") socket.end(`554 no mail from you to ${TO}\r\n`);
    else if (welcome === "serve") this.serve(socket);
  }

  private serve(socket: Socket): void {
    let input = "";
    let isData = false;
    let mail = { from: "", to: [] as string[] };
    const answer = (line: string) => void socket.write(`${line}\r\n`);
    const command = (line: string) => {
      const verb = line.slice(0, 4).toUpperCase();
      if (verb === "EHLO") answer("250 test");
      else if (verb === "MAIL") {
        mail = { from: line.slice(10), to: [] };
        answer("250 ok");
      } else if (verb === "RCPT") {
        mail.to.push(line.slice(8));
        answer(this.recipientAnswers.shift() ?? "250 ok");
      } else if (verb === "DATA") {
        isData = true;
        answer("354 go on");
      } else if (verb === "QUIT") socket.end("221 bye\r\n");
      else answer("250 ok");
    };
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      input += chunk;
      for (;;) {
        const end = isData ? "\r\n.\r\n" : "\r\n";
        const at = input.indexOf(end);
        if (at < 0) return;
        const part = input.slice(0, at);
        input = input.slice(at + end.length);
        if (!isData) command(part);
        else {
          this.received.push({ ...mail, data: `${part}\r\n`.replace(/^\.\./gm, ".") });
          isData = false;
          answer("250 queued");
        }
      }
    });
    answer("220 test ESMTP");
  }
}

/** Responds to each request with the next status, or with 204 when none is left. Does not respond on "ignore". */
class Webhook {
  readonly requests: { readonly method: string; readonly type: string; readonly body: string }[] = [];
  readonly answers: (number | "ignore")[] = [];
  private readonly server: HttpServer = createHttpServer((request, response) => {
    void read(request).then((body) => {
      const type = request.headers["content-type"] ?? "";
      this.requests.push({ method: request.method ?? "", type, body });
      const status = this.answers.shift() ?? 204;
      if (status === "ignore") return;
      if (status === 302) response.setHeader("location", "/elsewhere");
      response.writeHead(status).end(status === 204 ? undefined : "some words");
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/send?key=url-secret`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

async function read(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

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
let messengers: Notifier[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "exchange-test-"));
  outbox = join(folder, "data", "outbox");
  logged = "";
  messengers = [];
  smtp = new SmtpServer();
  webhook = new Webhook();
});
afterEach(async () => {
  smtp.close();
  webhook.close();
  await Promise.all(messengers.map((notifier) => notifier.close()));
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
  messengers.push(notifier);
  return notifier;
}

function logLines(): LogLine[] {
  return logged
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogLine);
}

function until(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 10_000, interval: 10 });
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
  test("a mail becomes a file that holds its text unchanged, for the process's user alone", async () => {
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

  test("links of every length up to 74 characters stand in the file as they are", async () => {
    const notifier = start();
    const links = Array.from({ length: 55 }, (_, i) => "https://e.example/?t".padEnd(20 + i, "=.aZ9_-"));
    for (const link of links) notifier.sendMail(verificationMail(TO, link, 86_400_000));
    await notifier.close();
    const files = readFiles();
    expect(files).toHaveLength(links.length);
    for (const [i, link] of links.entries()) expect(files[i]!.split("\n")).toContain(link);
  });

  test("a text message becomes a file with the number, an empty line and the body", async () => {
    const notifier = start();
    notifier.sendText({ to: PHONE, body: "Your code is 123456." });
    await notifier.close();
    expect(fileNames()).toEqual([expect.stringMatching(/^\d{13}-\d{6}-[0-9a-f]{8}\.sms$/)]);
    expect(readFiles()).toEqual([`To: ${PHONE}\n\nYour code is 123456.`]);
    expect(statSync(join(outbox, fileNames()[0]!)).mode & 0o777).toBe(0o600);
  });

  test("files sort in the order of acceptance", async () => {
    const notifier = start();
    const bodies = Array.from({ length: 200 }, (_, i) => `message ${i}`);
    for (const body of bodies) notifier.sendText({ to: PHONE, body });
    await notifier.close();
    expect(readFiles().map((content) => parse(content).body)).toEqual(bodies);
  });

  test("nothing is made before the first message", () => {
    start();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a folder that can't be made fails the sending, and the next attempt makes it", async () => {
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
  test("arrives, in the order of acceptance, over one connection that opens with the first", async () => {
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

  test("is tried again when the server drops and refuses connections", async () => {
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

  test("is given up after four attempts, with one error line", async () => {
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

  test("pauses are a second, then longer, where nothing else is asked for", async () => {
    smtp.welcomes.push("drop");
    const notifier = start({ smtpUrl: await smtp.listen() });
    notifier.sendMail(mailOf("text"));
    await until(() => expect(logLines()).toHaveLength(1));
    const failedAt = performance.now();
    await until(() => expect(smtp.received).toHaveLength(1));
    expect(performance.now() - failedAt).toBeGreaterThan(900);
  });

  test("one that is tried again doesn't hold up those behind it", async () => {
    smtp.recipientAnswers.push("451 later");
    const notifier = start({ smtpUrl: await smtp.listen(), retryPausesMs: [300] });
    for (const text of ["first", "second", "third"]) notifier.sendMail(mailOf(text));
    await until(() => expect(smtp.received).toHaveLength(3));
    expect(smtp.received.map(({ data }) => parse(data).body.trimEnd())).toEqual(["second", "third", "first"]);
  });

  test("a server that never answers costs one time-out, and texts don't wait for it", async () => {
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
  test("are posted as JSON, in the order of acceptance", async () => {
    const notifier = start({ smsWebhookUrl: await webhook.listen() });
    const messages = Array.from({ length: 20 }, (_, i) => ({ to: PHONE, body: `Your code is ${i}.` }));
    for (const message of messages) notifier.sendText(message);
    await notifier.close();
    expect(webhook.requests.map(({ body }) => JSON.parse(body))).toEqual(messages);
    expect(webhook.requests[0]).toMatchObject({ method: "POST", type: "application/json" });
    expect(logged).toBe("");
  });

  test("are tried again after an error and a redirect, which isn't followed", async () => {
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

  test("are tried again where nobody answers in time, and given up in the end", async () => {
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

  test("where nobody listens the line has the socket's error", async () => {
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
  test("what isn't one plain address gets nothing, by SMTP and in the outbox", async () => {
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
  test.for(plain)("%s gets its mail", async (address) => {
    const notifier = start({ smtpUrl: await smtp.listen() });
    notifier.sendMail(mailOf("text", address));
    await notifier.close();
    expect(smtp.received.map(({ to }) => to)).toEqual([[`<${address.replace("m\u00fcnchen", "xn--mnchen-3ya")}>`]]);
  });

  test("a subject and a text add no header", async () => {
    const notifier = start();
    notifier.sendMail({ to: TO, subject: "Hello\r\nBcc: eve@evil.example", text: "Bcc: eve@evil.example\n" });
    await notifier.close();
    const { headers, body } = parse(readFiles()[0]!);
    expect(headers.some((header) => header.startsWith("Bcc"))).toBe(false);
    expect(headers).toContain("Subject: Hello Bcc: eve@evil.example");
    expect(body).toBe("Bcc: eve@evil.example\n");
  });

  test.for([`${PHONE}\nTo: +14155552671`, `${PHONE}\r\n\r\nbody`, `${PHONE},+14155552671`, "447400123456", "", "+"])(
    "a text to %j is dropped",
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
  test("a thousand wait, counting those to try again; what comes beyond is dropped with a line each", async () => {
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

  test("there is room again once some were sent", async () => {
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
  test("gives what waits for its next attempt that one at once", async () => {
    smtp.recipientAnswers.push("451 later");
    const notifier = start({ smtpUrl: await smtp.listen(), retryPausesMs: [60_000] });
    notifier.sendMail(mailOf("text"));
    await until(() => expect(logLines()).toHaveLength(1));
    await notifier.close();
    expect(smtp.received).toHaveLength(1);
    expect(logLines()).toHaveLength(1);
  });

  test("gives up what fails then, with an error line", async () => {
    webhook.answers.push(503, 503);
    const notifier = start({ smsWebhookUrl: await webhook.listen(), retryPausesMs: [60_000, 60_000] });
    notifier.sendText({ to: PHONE, body: "code" });
    await until(() => expect(logLines()).toHaveLength(1));
    await notifier.close();
    expect(logLines()[1]).toMatchObject({ level: ERROR, attempt: 2, responseCode: 503 });
  });

  test("waits for servers that never answer a few seconds, and says how many were given up", async () => {
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

  test("drops what comes later, and may be called twice", async () => {
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

test("a port that nobody listens on is a failed sending like any other", async () => {
  const smtpUrl = await smtp.listen();
  smtp.close();
  await expect(
    new Promise((_, reject) => connect(Number(new URL(smtpUrl).port), "127.0.0.1").on("error", reject)),
  ).rejects.toThrow("ECONNREFUSED");
  const notifier = start({ smtpUrl, retryPausesMs: [] });
  notifier.sendMail(mailOf("text"));
  await until(() => expect(logLines()).toMatchObject([{ level: ERROR, kind: "mail", attempt: 1 }]));
});

describe("the words", () => {
  const link = "https://exchange.example/?token=abc";
  const mails = {
    verification: verificationMail(TO, link, 86_400_000),
    reset: passwordResetMail(TO, link, 3_600_000),
    changed: passwordChangedMail(TO),
  };

  test.for(Object.entries(mails))("%s: ASCII, of lines of at most 76 characters", ([, mail]) => {
    expect(mail.to).toBe(TO);
    expect(`${mail.subject}\n${mail.text}`).toMatch(/^[\n\x20-\x7e]*$/);
    for (const line of mail.text.split("\n")) expect(line.length).toBeLessThanOrEqual(76);
  });

  test("a link stands alone on its line, with how long it is valid and what to do if it wasn't asked for", () => {
    for (const mail of [mails.verification, mails.reset]) {
      expect(mail.text.split("\n").filter((line) => line.includes("http"))).toEqual([link]);
      expect(mail.text).toContain("If you did not");
    }
    expect(mails.verification.text).toContain("valid for 24 hours");
    expect(mails.reset.text).toContain("valid for 1 hour ");
    expect(mails.changed.text).toContain("If you did not");
  });

  test("the code stands in the text message as digits", () => {
    const { to, body } = phoneCodeText(PHONE, "012345", 600_000);
    expect(to).toBe(PHONE);
    expect(body).toContain("code is 012345. It is valid for 10 minutes. Don't share it.");
    expect(body.match(/\d{6}/g)).toEqual(["012345"]);
    expect(body.length).toBeLessThanOrEqual(160);
  });

  test.for([
    [1_000, "1 second"],
    [90_000, "90 seconds"],
    [60_000, "1 minute"],
    [5_400_000, "90 minutes"],
    [172_800_000, "48 hours"],
    [2_500, "2 seconds"],
  ] as const)("%d ms is %s", ([ms, words]) => {
    expect(phoneCodeText(PHONE, "123456", ms).body).toContain(`valid for ${words}.`);
  });
});
