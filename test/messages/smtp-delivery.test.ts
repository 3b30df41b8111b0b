/**
 * Mails by SMTP, end to end: a running exchange, a real mail server with STARTTLS and authentication, and a user who
 * registers and opens the mailed link. For the notifier alone, see notifier.test.ts.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectSoundDatabase, expectUnlogged } from "../support/checks.ts";
import { askOnce } from "../support/client.ts";
import { freshEmail, login, PASSWORD, register, type UserJson } from "../support/identity.ts";
import { type LogLine, TestServer, temporaryFolder } from "../support/server.ts";
import { hasOpenssl, MailServer } from "./mail-server.ts";

const WARN = 40;
const NEW_PASSWORD = "nine lanterns over the weir";
const secrets = new Set([PASSWORD, NEW_PASSWORD, MailServer.password, encodeURIComponent(MailServer.password)]);

describe.skipIf(!hasOpenssl())("mails by SMTP", () => {
  let mails: MailServer;
  let server: TestServer;
  beforeAll(async () => {
    mails = await MailServer.start(temporaryFolder());
    // The way an operator trusts a mail server of their own.
    const env = {
      SMTP_URL: mails.url(),
      MAIL_FROM: "Exchange <post@exchange.test>",
      NODE_EXTRA_CA_CERTS: mails.certFile,
    };
    server = await TestServer.start({ seed: {}, env });
  });
  afterAll(async () => {
    await server.stop();
    await mails.close();
    // With SMTP configured, the server writes no mail to files.
    expect(existsSync(join(server.dataDir, "outbox"))).toBe(false);
    expectSoundDatabase(server.dataDir);
    expectUnlogged(secrets, server);
  });

  /** Returns the token of the link in the last mail to an address. Waits for `count` mails. */
  async function linkTo(email: string, page: string, count = 1): Promise<string> {
    const texts = await eventually(async () => {
      const found = mails.mailsTo(email);
      expect(found.length).toBeGreaterThanOrEqual(count);
      return found;
    });
    const [, token] = new RegExp(`^http://127\\.0\\.0\\.1:\\d+/${page}\\?token=([A-Za-z0-9_-]+)$`, "m").exec(
      texts.at(-1)!,
    )!;
    secrets.add(token!);
    return token!;
  }
  const post = <T = unknown>(path: string, body: object) => askOnce<T>(server, null, "POST", path, { body });
  const failures = (): LogLine[] => server.log.filter(({ level, kind }) => level >= WARN && kind === "mail");

  test("a registration and a forgotten password send links by encrypted mail, and the links work", async () => {
    const email = freshEmail("smtp");
    expect((await register(server, email)).status).toBe(201);
    const token = await linkTo(email, "verify-email");
    expect(mails.received.at(-1)).toMatchObject({
      from: "post@exchange.test",
      to: [email],
      isSecure: true,
      user: MailServer.user,
      text: expect.stringContaining("From: Exchange <post@exchange.test>"),
    });
    const verified = await post<UserJson>("/auth/verify-email", { token, password: PASSWORD });
    expect(verified.data).toMatchObject({ email, email_verified: true });
    await post("/auth/forgot-password", { email });
    const reset = await linkTo(email, "reset-password", 2);
    expect((await post("/auth/reset-password", { token: reset, password: NEW_PASSWORD })).code).toBe(0);
    expect((await login(server, email, NEW_PASSWORD)).code).toBe(0);
    await eventually(async () => expect(mails.mailsTo(email)[2]).toMatch(/^Subject: .*password was changed$/m));
    expect(failures()).toEqual([]);
  });

  test("a rejected recipient delays no other mail, and is retried", async () => {
    const [refused, other] = [freshEmail("refused"), freshEmail("other")];
    mails.rejections.set(refused, 1);
    expect((await register(server, refused)).status).toBe(201);
    await server.logged(({ kind, responseCode }) => kind === "mail" && responseCode === 550);
    expect((await register(server, other)).status).toBe(201);
    await linkTo(other, "verify-email");
    const token = await linkTo(refused, "verify-email");
    expect((await post("/auth/verify-email", { token, password: PASSWORD })).code).toBe(0);
    expect(failures()).toMatchObject([{ attempt: 1, code: "EENVELOPE", responseCode: 550 }]);
  });

  test("a mail server that was down receives the mails later, and no request waits for it", async () => {
    const before = failures().length;
    await mails.close();
    const emails = [freshEmail("down"), freshEmail("down")];
    for (const email of emails) {
      const began = performance.now();
      expect((await register(server, email)).status).toBe(201);
      expect(performance.now() - began).toBeLessThan(5_000);
    }
    await eventually(async () => expect(failures().length).toBeGreaterThanOrEqual(before + 2));
    expect((await login(server, emails[0]!)).code).toBe(0);
    await mails.open();
    for (const email of emails) {
      const token = await linkTo(email, "verify-email");
      expect((await post("/auth/verify-email", { token, password: PASSWORD })).code).toBe(0);
      expect(mails.mailsTo(email)).toHaveLength(1);
    }
    for (const { level, code } of failures().slice(before)) {
      expect([level, code]).toEqual([
        WARN,
        expect.stringMatching(/^E(SOCKET|CONNECTION|CONNREFUSED|CONNRESET|CLOSED)$/),
      ]);
    }
  });

  test("an untrusted certificate or a wrong password delivers no mail, and the log contains no secret", async () => {
    const expectUndelivered = async (env: Record<string, string>, code: string): Promise<void> => {
      const own = await TestServer.start({ seed: {}, env });
      const email = freshEmail("distrusting");
      expect((await register(own, email)).status).toBe(201);
      expect(await own.logged(({ kind }) => kind === "mail")).toMatchObject({ level: WARN, attempt: 1, code });
      expect(mails.mailsTo(email)).toEqual([]);
      await own.stop();
      expectUnlogged([...secrets, "not the password"], own);
    };
    await Promise.all([
      expectUndelivered({ SMTP_URL: mails.url() }, "ESOCKET"),
      expectUndelivered({ SMTP_URL: mails.url("not the password"), NODE_EXTRA_CA_CERTS: mails.certFile }, "EAUTH"),
    ]);
    expect(mails.refusedSignIns).toBeGreaterThan(0);
  });
});
