/**
 * Sends mails and text messages in the background, or writes them to files when no server is configured. Callers never
 * wait and never learn the result: a failed message is retried, then abandoned with a log line. No log line contains a
 * text, an address, a code or a URL, so it has only the codes of errors, whose messages quote them. A crash loses queued
 * messages.
 */
import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SendMailOptions } from "nodemailer";
import { systemClock } from "../../engine/util/clock.ts";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import type { Logger } from "../logger.ts";

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Headers that this mail has beside those of all. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TextMessage {
  /** E.164. */
  readonly to: string;
  readonly body: string;
}

export interface NotifierOptions {
  readonly smtpUrl: string | null;
  readonly smsWebhookUrl: string | null;
  /** Folder for messages without a server; the first file creates it. */
  readonly outbox: string;
  /** The header: `Prediction Exchange <no-reply@host>`. */
  readonly from: string;
  readonly logger: Logger;
  /** Pauses before the second, third ... attempt. */
  readonly retryPausesMs?: readonly number[];
  /** Limit of one attempt. */
  readonly timeoutsMs?: Readonly<Record<Kind, number>>;
}

type Kind = "mail" | "text";

const RETRY_PAUSES_MS: readonly number[] = [1_000, 5_000, 30_000];
const TIMEOUTS_MS: Readonly<Record<Kind, number>> = { mail: 30_000, text: 10_000 };
/** Queued messages of one kind. */
export const MAX_WAITING_MESSAGES = 1_000;
/** With fewer, there is room for another of many: the rest is for messages that somebody waits for. */
const ROOM_IN_QUEUE = 8;
const ROOM_FOR_RETRIES = 500;
const CLOSE_DEADLINE_MS = 3_000;

/**
 * Exactly one address, which no header or envelope can read as several. Excludes quoted local parts and address literals,
 * although they are valid: mail programs disagree about where they end.
 */
const PLAIN_ADDRESS = /^[^\s\p{C}"(),:;<>@[\\\]]+@[^\s\p{C}"(),:;<>@[\\\]]+$/u;
const PHONE_NUMBER = /^\+\d{1,15}$/;

export class Notifier {
  private readonly mails: Lane<Mail>;
  private readonly texts: Lane<TextMessage>;
  private readonly closeTransport: () => Promise<void>;
  private closing: Promise<void> | null = null;

  /** Does not connect yet. */
  constructor(options: NotifierOptions) {
    const { smtpUrl, smsWebhookUrl, from } = options;
    const outbox = new Outbox(options.outbox);
    // With a server it is loaded now, or else with the first mail.
    const transport = smtpUrl === null ? null : connectLater(smtpUrl);
    const sendMail: Send<Mail> =
      transport === null
        ? (mail) => writeMail(outbox, from, mail)
        : async (mail, signal) => void (await (await transport).sendMail({ ...compose(from, mail), signal }));
    const sendText: Send<TextMessage> =
      smsWebhookUrl === null
        ? (message) => outbox.write("sms", `To: ${message.to}\n\n${message.body}`)
        : (message, signal) => postText(smsWebhookUrl, message, signal);
    this.mails = new Lane("mail", sendMail, options);
    this.texts = new Lane("text", sendText, options);
    this.closeTransport = async () => (await transport)?.close({ force: true });
  }

  /** Drops a mail to anything but one plain address, with a log line. */
  sendMail(mail: Mail): void {
    if (isPlainAddress(mail.to)) this.mails.add(mail);
    else this.mails.drop("address");
  }

  /** Resolves once few mails wait: what many users get leaves room for what one of them waits for. */
  room(): Promise<void> {
    return this.mails.room();
  }

  /** Drops a message to anything but a phone number, with a log line. */
  sendText(message: TextMessage): void {
    if (PHONE_NUMBER.test(message.to)) this.texts.add(message);
    else this.texts.drop("address");
  }

  /**
   * Resolves once all queued messages are sent or abandoned, after a few seconds at most: a message that waits for a retry
   * gets one last attempt now. Drops later messages.
   */
  close(): Promise<void> {
    this.closing ??= Promise.all([this.mails.close(), this.texts.close()]).then(this.closeTransport);
    return this.closing;
  }
}

/** Rejects if the message was not sent, at the latest soon after the signal. */
type Send<T> = (message: T, signal: AbortSignal) => Promise<void>;

interface Job<T> {
  readonly message: T;
  attempts: number;
}

/** The queue of one kind of message: sends one at a time in order, except that retries do not block later messages. */
class Lane<T> {
  private readonly kind: Kind;
  private readonly send: Send<T>;
  private readonly logger: Logger;
  private readonly retryPausesMs: readonly number[];
  private readonly timeoutMs: number;
  private readonly queue: Job<T>[] = [];
  private readonly retries = new Map<Job<T>, NodeJS.Timeout>();
  private current: AbortController | null = null;
  private dropped = 0;
  private isClosing = false;
  private onDrained: (() => void) | null = null;
  private readonly waitingForRoom: (() => void)[] = [];

  constructor(kind: Kind, send: Send<T>, options: NotifierOptions) {
    this.kind = kind;
    this.send = send;
    this.logger = options.logger;
    this.retryPausesMs = options.retryPausesMs ?? RETRY_PAUSES_MS;
    this.timeoutMs = (options.timeoutsMs ?? TIMEOUTS_MS)[kind];
  }

  add(message: T): void {
    const waiting = this.queue.length + this.retries.size + (this.current === null ? 0 : 1);
    if (this.isClosing) this.drop("closed");
    else if (waiting >= MAX_WAITING_MESSAGES) this.drop("full");
    else {
      this.queue.push({ message, attempts: 0 });
      this.next();
    }
  }

  room(): Promise<void> {
    if (this.hasRoom) return Promise.resolve();
    return new Promise((resolve) => this.waitingForRoom.push(resolve));
  }

  private get hasRoom(): boolean {
    return this.queue.length < ROOM_IN_QUEUE && this.retries.size < ROOM_FOR_RETRIES;
  }

  drop(reason: "address" | "closed" | "full"): void {
    this.dropped++;
    this.logger.error({ kind: this.kind, reason, dropped: this.dropped }, "message dropped");
  }

  /** Call once. */
  close(): Promise<void> {
    this.isClosing = true;
    for (const [job, timer] of this.retries) {
      clearTimeout(timer);
      this.queue.push(job);
    }
    this.retries.clear();
    return new Promise((resolve) => {
      const deadline = setTimeout(() => this.abandonAll(), CLOSE_DEADLINE_MS);
      this.onDrained = () => {
        clearTimeout(deadline);
        resolve();
      };
      this.next();
    });
  }

  private next(): void {
    if (this.current !== null) return;
    const job = this.queue.shift();
    if (this.hasRoom) this.waitingForRoom.shift()?.();
    if (job !== undefined) void this.attempt(job);
    else this.onDrained?.();
  }

  private async attempt(job: Job<T>): Promise<void> {
    const controller = new AbortController();
    this.current = controller;
    const timer = setTimeout(() => controller.abort(new SendError("ETIMEDOUT")), this.timeoutMs);
    // Registered before the sender, so that the log shows this reason; also ends a write to a hanging disk.
    const aborted = new Promise<never>((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason));
    });
    job.attempts++;
    try {
      await Promise.race([aborted, this.send(job.message, controller.signal)]);
    } catch (error) {
      this.failed(job, error);
    }
    clearTimeout(timer);
    this.current = null;
    this.next();
  }

  private failed(job: Job<T>, error: unknown): void {
    const line = { kind: this.kind, attempt: job.attempts, ...codesOf(error) };
    const pauseMs = this.retryPausesMs[job.attempts - 1];
    if (this.isClosing || pauseMs === undefined) {
      this.logger.error(line, "message abandoned");
      return;
    }
    this.logger.warn(line, "message not sent: will retry");
    const timer = setTimeout(() => {
      this.retries.delete(job);
      this.queue.push(job);
      this.next();
    }, pauseMs);
    this.retries.set(job, timer);
  }

  private abandonAll(): void {
    const count = this.queue.length;
    this.queue.length = 0;
    if (count > 0) this.logger.error({ kind: this.kind, count }, "messages abandoned: closed before they were sent");
    this.current?.abort(new SendError("ECANCELED"));
  }
}

class SendError extends Error {
  readonly code: string;
  readonly responseCode: number | undefined;

  constructor(code: string, responseCode?: number) {
    super(code);
    this.code = code;
    this.responseCode = responseCode;
  }
}

/** The loggable part of an error: its message can quote a recipient (as SMTP responses do) or the webhook's URL. */
function codesOf(error: unknown): { code: string; responseCode?: number } {
  const { code, responseCode, name, cause } = Object(error) as Record<"code" | "responseCode" | "name", unknown> & {
    cause?: { code?: unknown } | null;
  };
  // `fetch` puts the socket's error code into the cause.
  const known = [code, cause?.code, name].find((each) => typeof each === "string") ?? "unknown";
  return { code: String(known), ...(typeof responseCode === "number" && { responseCode }) };
}

/** Tests the compatibility form, in which domains are sent: it turns some characters, such as a small comma, into signs. */
function isPlainAddress(text: string): boolean {
  return text.length <= MAX_EMAIL_LENGTH && PLAIN_ADDRESS.test(text.normalize("NFKC"));
}

/** One connection, because one mail is sent at a time. The pool does not retry: `Lane` does, with its pauses. */
async function connectLater(url: string) {
  const { createTransport } = await import("nodemailer");
  return createTransport({ url, pool: true, maxConnections: 1, maxRequeues: 0 });
}

/** The address is an object, so that it is never parsed as a list. */
function compose(from: string, mail: Mail): SendMailOptions {
  return {
    from,
    to: { name: "", address: mail.to },
    subject: mail.subject,
    text: mail.text,
    headers: { "Auto-Submitted": "auto-generated", ...mail.headers },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

async function writeMail(outbox: Outbox, from: string, mail: Mail): Promise<void> {
  const { createTransport } = await import("nodemailer");
  const composer = createTransport({ streamTransport: true, buffer: true, newline: "unix" });
  const { message } = await composer.sendMail(compose(from, mail));
  await outbox.write("eml", message as Buffer);
}

async function postText(url: string, { to, body }: TextMessage, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ to, body }),
    redirect: "error",
    signal,
  });
  // The body is irrelevant, and unread it would hold the connection. Cancelling fails only if that is already gone.
  response.body?.cancel().catch(() => {});
  if (!response.ok) throw new SendError("EHTTP", response.status);
}

/** Writes files atomically, readable by the process's user only; their names sort by time. */
class Outbox {
  private readonly folder: string;
  private count = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  async write(extension: "eml" | "sms", content: string | Buffer): Promise<void> {
    const counter = String(this.count++).padStart(6, "0");
    const name = `${systemClock.now()}-${counter}-${randomBytes(4).toString("hex")}.${extension}`;
    const temporary = join(this.folder, `.${name}.tmp`);
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    try {
      await writeFile(temporary, content, { mode: 0o600, flag: "wx" });
      await rename(temporary, join(this.folder, name));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}
