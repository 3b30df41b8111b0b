/**
 * Collects and parses the body of one request, within a bound. Where the rate limits count an identifier in the body,
 * it counts the request too. It never runs a handler.
 */
import type { HttpResponse } from "uWebSockets.js";
import { isAscii } from "node:buffer";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { Counters } from "../util/counters.ts";
import type { Admission, Entry } from "./admission.ts";
import { MAX_EMAIL_LENGTH } from "./limits.ts";
import { decodeMessage } from "./message-pack.ts";
import type { HttpReply } from "./reply.ts";
import type { RequestHead } from "./request-head.ts";
import type { Check } from "./validate.ts";

interface BodyFormat {
  readonly name: string;
  /** @throws Error where the bytes are not of this format; an ApiError that says more than that */
  readonly parse: (bytes: Buffer) => unknown;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** @throws Error on malformed UTF-8 or JSON */
export function parseJson(bytes: Buffer): unknown {
  // Most messages are ASCII, which needs neither a check for malformed UTF-8 nor a decoder.
  return JSON.parse(isAscii(bytes) ? bytes.toString("latin1") : utf8.decode(bytes));
}

/** @throws ApiError 40000 for a parameter given twice (RFC 6749, section 3.2) */
function parseForm(bytes: Buffer): Record<string, string> {
  const found: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(bytes.toString())) {
    if (name in found) throw badRequest(`${name.slice(0, 64)}: given twice`);
    found[name] = value;
  }
  return { ...found };
}

const JSON_FORMAT: BodyFormat = { name: "JSON", parse: parseJson };
const MESSAGE_PACK: BodyFormat = { name: "MessagePack", parse: decodeMessage };
const FORM: BodyFormat = { name: "a form", parse: parseForm };

/** Text in another encoding would be read as broken JSON, or as other text. */
const OTHER_CHARSET = /;\s*charset\s*=\s*(?!"?utf-?8(["\s;]|$))/i;

/** @throws ApiError 40000 for any other content type */
function formatOf(type: string, isForm: boolean): BodyFormat {
  if (isForm) {
    if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return FORM;
    throw badRequest("Content-Type: must be application/x-www-form-urlencoded");
  }
  if (type === "application/json" || type === "") return JSON_FORMAT;
  if (/^application\/json\s*(;|$)/i.test(type)) {
    if (OTHER_CHARSET.test(type)) throw badRequest("Content-Type: charset must be utf-8");
    return JSON_FORMAT;
  }
  if (/^application\/msgpack\s*(;|$)/i.test(type)) return MESSAGE_PACK;
  throw badRequest("Content-Type: must be application/json or application/msgpack");
}

export interface BodyOptions {
  readonly counters: Counters;
  readonly admission: Admission;
}

/** A request over HTTP at the door. */
export interface HttpEntry extends Entry {
  readonly reply: HttpReply;
}

/** Where a body goes. */
export interface BodySink {
  /** All of it is there. @param bytes valid during the call only */
  complete(bytes: Buffer): void;
  /** It is too large, or no body belongs there; or `complete` threw. */
  fail(error: unknown): void;
}

/** The body of one request. `head` is read in the constructor and in `collect` only. */
export class BodyReader {
  private readonly entry: HttpEntry;
  private readonly check: Check<unknown>;
  private readonly options: BodyOptions;
  private readonly announcedBytes: number;
  private readonly format: BodyFormat;

  /** @param check the route's schema @throws ApiError 40000 for a wrong content type, which counts the request */
  constructor(entry: HttpEntry, check: Check<unknown>, head: RequestHead, options: BodyOptions) {
    this.entry = entry;
    this.check = check;
    this.options = options;
    this.announcedBytes = Number(head.contentLength);
    try {
      this.format = formatOf(head.contentType, entry.compiled.route.oauth);
    } catch (error) {
      this.count("");
      throw error;
    }
  }

  /**
   * Collects the body and counts its bytes as they arrive. uWebSockets.js detaches a chunk when the callback returns:
   * the reader copies the chunks of a long body.
   * @throws ApiError 40000 with 413 where the announced length is too large
   */
  collect(res: HttpResponse, sink: BodySink): void {
    const { announcedBytes } = this;
    const { reply, compiled } = this.entry;
    const { counters } = this.options;
    const { maxBodyBytes } = compiled;
    let hasFailed = false;
    if (announcedBytes > maxBodyBytes) this.rejectSize();
    let collected: Buffer | null = null;
    let length = 0;
    res.onData((chunk, isLast) => {
      counters.http.receivedBytes += chunk.byteLength;
      if (reply.done || hasFailed) return;
      try {
        if (isLast && collected === null) {
          if (chunk.byteLength > maxBodyBytes) this.rejectSize();
          sink.complete(Buffer.from(chunk));
          return;
        }
        const end = length + chunk.byteLength;
        if (end > maxBodyBytes) this.rejectSize();
        // Room for the announced length, or twice what arrived: a body in chunks of one byte isn't copied for each.
        if (collected === null || end > collected.length) {
          const larger = Buffer.allocUnsafeSlow(Math.max(announcedBytes, Math.min(2 * end, maxBodyBytes)));
          collected?.copy(larger, 0, 0, length);
          collected = larger;
        }
        collected.set(new Uint8Array(chunk), length);
        length = end;
        if (isLast) sink.complete(collected.subarray(0, length));
      } catch (error) {
        hasFailed = true;
        sink.fail(error);
      }
    });
  }

  /** Parses the bytes and checks them against the route's schema. @throws ApiError */
  read(bytes: Buffer): unknown {
    const { compiled } = this.entry;
    const { format } = this;
    let parsed: unknown;
    try {
      parsed = bytes.length === 0 && compiled.takesNothing ? {} : format.parse(bytes);
    } catch (error) {
      this.count("");
      throw error instanceof ApiError ? error : badRequest(`the body is not valid ${format.name}`);
    }
    if (compiled.countsBody) this.count(identifierIn(parsed));
    return this.check(parsed);
  }

  /** @throws ApiError 40000 with 413 */
  private rejectSize(): never {
    this.count("");
    throw new ApiError(ErrorKind.tooLarge, `the body is larger than ${this.entry.compiled.maxBodyBytes} bytes`);
  }

  /**
   * Counts the request where the limits count what the body names.
   * @param identifier "" where the body names nobody: the address is counted alone
   * @throws RateLimited 42900
   */
  private count(identifier: string): void {
    const { entry } = this;
    if (this.options.admission.countNamed(entry, identifier)) entry.reply.skipThrottle();
  }
}

/** The body of a request without one. */
export const NO_BYTES = Buffer.alloc(0);
/** An empty object in JSON or MessagePack: libraries send it for "no body". */
const NOTHING = /^(\s*\{\s*\}\s*|\x80)$/;
/** The longest body that may still be nothing: `{}` on lines of its own. */
const MAX_NOTHING_BYTES = 16;
/** The form of RFC 8058, in one encoding of forms or the other. */
const ONE_CLICK = /\bList-Unsubscribe\b[\s\S]*\bOne-Click\b/;
const MAX_ONE_CLICK_BYTES = 1_024;

/**
 * Reads the body of a request to a route that takes none: what a client sends there, it means, and the route would drop it.
 * Completes without bytes once the body is known to be empty or `{}`. The form of a mail program that ends
 * mails is nothing, too, where the route takes it.
 */
export function collectNothing(
  res: HttpResponse,
  { contentLength }: RequestHead,
  { compiled, reply }: HttpEntry,
  sink: BodySink,
): void {
  const { oneClick } = compiled.route;
  const rejection = badRequest("body: this path takes none, at most {}");
  const maxBytes = oneClick ? MAX_ONE_CLICK_BYTES : MAX_NOTHING_BYTES;
  const isNothing = (text: string): boolean => text === "" || NOTHING.test(text) || (oneClick && ONE_CLICK.test(text));
  if (Number(contentLength) > maxBytes) return sink.fail(rejection);
  let text = "";
  let isDone = false;
  res.onData((chunk, isLast) => {
    if (isDone || reply.done) return;
    if (text.length <= maxBytes) text += Buffer.from(chunk).toString("latin1");
    isDone = isLast || text.length > maxBytes;
    if (!isDone) return;
    try {
      if (text.length > maxBytes || !isNothing(text)) throw rejection;
      sink.complete(NO_BYTES);
    } catch (error) {
      sink.fail(error);
    }
  });
}

/** The email in lower case; "" where the body has none. */
function identifierIn(parsed: unknown): string {
  const email = (parsed as { email?: unknown } | null)?.email;
  return typeof email === "string" && email.length <= MAX_EMAIL_LENGTH ? email.toLowerCase() : "";
}
