/**
 * The response to one HTTP request, and the envelope of its body. An HttpReply writes once, in a cork, or not at all once the
 * client is gone; it outlives its request and never reads it.
 */
import type { HttpResponse } from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { systemClock } from "../../engine/util/clock.ts";
import { type ApiError, asApiError, badRequest } from "../errors.ts";
import { type Logger, logInternal } from "../logger.ts";
import { JsonReply } from "../orders/json-reply.ts";
import type { Counters } from "../util/counters.ts";
import { prefers } from "./content-negotiation.ts";
import type { Header } from "./deprecation.ts";
import type { EventLoopGuard } from "./event-loop-guard.ts";
import { MAX_COMPRESSING, MIN_COMPRESSED_LENGTH } from "./limits.ts";
import { encodeJson } from "./message-pack.ts";
import { RateLimited, type RateState } from "./rate-limiter.ts";
import type { RequestHead } from "./request-head.ts";
import type { ResponseThrottle } from "./response-throttle.ts";
import type { FileResponse, RequestReply } from "./route.ts";
import type { SecurityHeaders } from "./security-headers.ts";
import type { SiteResponse } from "./static-site.ts";

// ---------------------------------------------------------------- the envelope

/** The envelope of a success. Section 1 of the contract, "Response envelope" of the specification. */
export function successBody(dataJson: string): string {
  return `{"code":0,"msg":"ok","data":${dataJson}}`;
}

/** The envelope's fields of an error, without braces. @param traceId included on 5xx only */
export function errorFields(error: ApiError, traceId: string): string {
  const trace = error.kind.status >= 500 ? `,"trace_id":${JSON.stringify(traceId)}` : "";
  return `"code":${error.kind.code},"msg":${JSON.stringify(error.message)},"data":null${trace}`;
}

export function errorBody(error: ApiError, traceId: string): string {
  return `{${errorFields(error, traceId)}}`;
}

const OAUTH_ERRORS: Readonly<Record<number, string>> = {
  400: "invalid_request",
  413: "invalid_request",
  401: "invalid_client",
  403: "access_denied",
  500: "server_error",
};

/** RFC 6749, section 5.2. */
function oauthErrorBody({ kind, message }: ApiError): string {
  return JSON.stringify({ error: OAUTH_ERRORS[kind.status] ?? "temporarily_unavailable", error_description: message });
}

// ---------------------------------------------------------------- request ids

/** A request id that a client may choose: visible ASCII, safe to echo and to log. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const bootId = randomBytes(6).toString("hex");
let requestCount = 0;

/** Unique in this process, and in practice across processes. */
export function newRequestId(): string {
  requestCount++;
  return `${bootId}-${requestCount.toString(36)}`;
}

// ---------------------------------------------------------------- one response

const MESSAGE_PACK = "application/msgpack";

const STATUS_LINES: Readonly<Record<number, string>> = {
  200: "200 OK",
  201: "201 Created",
  202: "202 Accepted",
  204: "204 No Content",
  206: "206 Partial Content",
  302: "302 Found",
  304: "304 Not Modified",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not Found",
  405: "405 Method Not Allowed",
  409: "409 Conflict",
  413: "413 Payload Too Large",
  416: "416 Range Not Satisfiable",
  422: "422 Unprocessable Entity",
  429: "429 Too Many Requests",
  500: "500 Internal Server Error",
  503: "503 Service Unavailable",
};

const statusLine = (status: number): string => STATUS_LINES[status] ?? String(status);

/** On a thread of the pool of Node. */
const compress = promisify(gzip);
let compressing = 0;

/** How the responses of a route look. */
export interface ReplyOptions {
  readonly logger: Logger;
  readonly counters: Counters;
  /** The status of a successful response. */
  readonly status: number;
  /** The content type of a successful response; null: JSON or MessagePack. */
  readonly contentType: string | null;
  /** Errors have the shape of RFC 6749. */
  readonly oauth: boolean;
  /** Bounds the rate of error responses; null: they leave at once. */
  readonly throttle: ResponseThrottle | null;
  /** Where to redirect a browser instead of responding with an error; null: nowhere. */
  readonly failurePage: ((error: ApiError) => string) | null;
  /** The headers of every response. */
  readonly headers: readonly Header[];
  readonly securityHeaders: SecurityHeaders;
  readonly guard: EventLoopGuard;
  /** Pages of other origins may not read the response. */
  readonly isOwn: boolean;
  /** The method is HEAD: the response is that to GET without the body. */
  readonly isHead: boolean;
  /** Cache-Control of a success; null: no-store. */
  readonly cache: string | null;
}

/** `data` and `error` make it a `Reply` of trading. Calls after the first one do nothing. */
export class HttpReply extends JsonReply implements RequestReply {
  readonly requestId: string;
  /** The remaining allowance of the rate limits that counted the request. */
  rate: RateState | null = null;
  private readonly res: HttpResponse;
  private readonly options: ReplyOptions;
  private readonly packed: boolean;
  /** A person reads the response in a browser. */
  private readonly isShown: boolean;
  /** The connection closes after the response. */
  private readonly isLast: boolean;
  /** The response waits for the end of this turn of the event loop. */
  private readonly isHeldBack: boolean;
  /** Error responses leave at once: the rate limits passed the request in a known address's own bucket. */
  private isUnthrottled = false;
  /** A long success is compressed. */
  private isCompressed = false;
  private headers: Header[] | null = null;
  private isSent = false;
  private isAborted = false;
  /** Called when the client goes away while a chunk waits for room. */
  private onAborted: () => void = () => {};

  constructor(res: HttpResponse, { requestId, accept, isLast }: RequestHead, options: ReplyOptions) {
    super();
    this.res = res;
    this.requestId = requestId !== "" && REQUEST_ID.test(requestId) ? requestId : newRequestId();
    this.options = options;
    this.isLast = isLast;
    this.isHeldBack = options.guard.isLong(systemClock.now()) || isLast;
    this.packed = accept !== "" && accept !== "*/*" && prefers(accept, MESSAGE_PACK);
    this.isShown = options.failurePage !== null && prefers(accept, "text/html");
    options.counters.http.requests++;
    res.onAborted(() => {
      this.isAborted = true;
      this.onAborted();
    });
  }

  get done(): boolean {
    return this.isSent || this.isAborted;
  }

  /** From now on error responses don't queue behind those to strangers. */
  skipThrottle(): void {
    this.isUnthrottled = true;
  }

  /** The client accepts gzip, and the route's responses may be long. */
  compress(): void {
    this.isCompressed = !this.packed;
  }

  header(name: string, value: string): void {
    this.headers ??= [];
    this.headers.push([name, value]);
  }

  data(json: string): void {
    if (this.isSent || this.isAborted) return;
    const body = successBody(json);
    if (this.isCompressed && body.length >= MIN_COMPRESSED_LENGTH && compressing < MAX_COMPRESSING) {
      void this.writeCompressed(body);
    } else this.write(this.options.status, body);
  }

  private async writeCompressed(body: string): Promise<void> {
    this.isSent = true;
    compressing++;
    const bytes = await compress(body).catch(() => null);
    compressing--;
    if (bytes !== null) this.header("Content-Encoding", "gzip");
    this.write(this.options.status, bytes ?? body);
  }

  /** A body without envelope: health, redirects, and what standards fix. */
  plain(status: number, body: string | Uint8Array): void {
    if (this.done) return;
    const throttle = status < 400 ? null : this.errorThrottle();
    if (throttle === null) this.write(status, body);
    else this.delay(throttle, () => this.write(status, body));
  }

  redirect(location: string, error?: ApiError): void {
    if (error !== undefined) {
      logInternal(this.options.logger, error, this.requestId);
      this.options.counters.rejected(error);
    }
    this.redirectTo(location);
  }

  stream(type: string, fileName: string, chunks: AsyncIterable<string>): void {
    void this.writeChunks(type, fileName, chunks);
  }

  file(file: FileResponse, chunks: AsyncIterable<Uint8Array>): void {
    if (this.isLast) this.error(badRequest("Transfer-Encoding: a request for a file must have no body"));
    else void this.writeFile(file, chunks);
  }

  error(error: ApiError, allow: string | null = null): void {
    logInternal(this.options.logger, error, this.requestId);
    if (this.done) return;
    const { counters, failurePage } = this.options;
    counters.rejected(error);
    if (error instanceof RateLimited) this.rate = error.rate;
    if (this.isShown && failurePage !== null) return this.redirectTo(failurePage(error));
    const throttle = this.errorThrottle();
    if (throttle === null) this.writeError(error, allow);
    else this.delay(throttle, () => this.writeError(error, allow));
  }

  /** Responds with whatever was thrown: user errors in their own words, internal ones with a trace id only. */
  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }

  /** Responds to OPTIONS. @param lines the value of Allow and the header lines that follow it */
  allowed(lines: string): void {
    this.finish(() => {
      this.res.writeStatus(statusLine(204)).writeHeader("Allow", lines).writeHeader("X-Request-Id", this.requestId);
      this.endEmpty();
    });
  }

  /** Responds with a file of the static site. */
  siteFile({ status, lines, body }: SiteResponse): void {
    this.finish(() => {
      this.res.writeStatus(statusLine(status)).writeHeader("Content-Type", lines);
      this.res.writeHeader("X-Request-Id", this.requestId);
      if (body === null) this.endEmpty();
      else this.endWith(body, this.isLast);
    });
  }

  private redirectTo(location: string): void {
    this.header("Location", location);
    if (!this.done) this.write(302, "");
  }

  private errorThrottle(): ResponseThrottle | null {
    return this.isUnthrottled ? null : this.options.throttle;
  }

  private delay(throttle: ResponseThrottle, write: () => void): void {
    this.isSent = true;
    throttle.pass(write);
  }

  private write(status: number, body: string | Uint8Array): void {
    const type = status < 400 ? this.options.contentType : null;
    this.finish(() => {
      this.writeHead(status, type);
      if (status === 304) this.endEmpty();
      else {
        const isJson = type === null && typeof body === "string" && body !== "";
        this.endWith(isJson && this.packed ? encodeJson(body) : body, this.isLast);
      }
    });
  }

  private writeError(error: ApiError, allow: string | null): void {
    const { kind, retryAfter } = error;
    const body = this.options.oauth ? oauthErrorBody(error) : errorBody(error, this.requestId);
    this.finish(() => {
      this.writeHead(kind.status, null);
      if (retryAfter !== null) this.res.writeHeader("Retry-After", String(retryAfter));
      if (kind.status === 401) this.res.writeHeader("WWW-Authenticate", "Bearer");
      if (allow !== null) this.res.writeHeader("Allow", allow);
      // After a 413 the connection closes, so that the client stops sending the rejected body.
      this.endWith(this.packed ? encodeJson(body) : body, this.isLast || kind.status === 413);
    });
  }

  /**
   * Writes now, or at the end of the turn where the turn is long or the connection closes after this response. By then
   * uWebSockets.js has read all bytes that came with the request; it closes the connection of a client that sends another
   * request while a response is pending.
   */
  private finish(write: () => void): void {
    this.isSent = true;
    if (!this.isHeldBack) {
      if (!this.isAborted) this.res.cork(write);
      return;
    }
    this.options.guard.defer(() => {
      if (!this.isAborted) this.res.cork(write);
    });
  }

  private writeHead(status: number, type: string | null, cache = this.options.cache): void {
    const { res, rate } = this;
    const { securityHeaders, isOwn } = this.options;
    const shown = type ?? (this.packed ? MESSAGE_PACK : "application/json");
    const lines =
      cache === null || status >= 400
        ? securityHeaders.typeLines(shown, isOwn)
        : securityHeaders.typeLines(shown, isOwn, cache);
    res.writeStatus(STATUS_LINES[status] ?? String(status)).writeHeader("Content-Type", lines);
    res.writeHeader("X-Request-Id", this.requestId);
    for (const [name, value] of this.options.headers) res.writeHeader(name, value);
    if (this.headers !== null) for (const [name, value] of this.headers) res.writeHeader(name, value);
    if (rate === null) return;
    res.writeHeader("RateLimit-Limit", String(rate.limit));
    res.writeHeader("RateLimit-Remaining", String(rate.remaining));
    res.writeHeader("RateLimit-Reset", String(rate.reset));
  }

  /** Ends the response with its body, or, to HEAD, with the body's length alone. */
  private endWith(body: string | Uint8Array, closes: boolean): void {
    const { res, options } = this;
    if (!options.isHead) {
      if (body !== "") options.counters.http.sent(body);
      res.end(body === "" ? undefined : body, closes);
    } else if (closes) res.endWithoutBody(Buffer.byteLength(body), true);
    else {
      // Given the length as an argument, uWebSockets.js would wait for the body.
      res.writeHeader("Content-Length", String(Buffer.byteLength(body)));
      res.endWithoutBody();
    }
  }

  /** Ends without a length: 204 has none, and that of a 304 describes another response. */
  private endEmpty(): void {
    if (this.isLast) this.res.end(undefined, true);
    else this.res.endWithoutBody();
  }

  private async writeChunks(type: string, fileName: string, chunks: AsyncIterable<string>): Promise<void> {
    try {
      for await (const chunk of chunks) {
        // Not earlier: where the first chunk fails, the response is an error instead of a file.
        if (this.options.isHead) return this.writeFileHead(type, fileName);
        if (!this.isSent) this.header("Content-Disposition", `attachment; filename="${fileName}"`);
        if (!this.isAborted && !this.writeChunk(type, chunk)) await this.drained();
        if (this.isAborted) return;
      }
      // The client may have gone while the end was awaited.
      if (!this.isAborted) this.res.cork(() => void this.res.end(undefined, this.isLast));
    } catch (error) {
      if (!this.isSent) this.fail(error);
      else this.truncate(asApiError(error));
    }
  }

  /** Responds to HEAD: a file's length is unknown before it is written. */
  private writeFileHead(type: string, fileName: string): void {
    this.header("Content-Disposition", `attachment; filename="${fileName}"`);
    this.finish(() => {
      this.writeHead(this.options.status, type);
      this.endEmpty();
    });
  }

  /** Returns true where there is room for another chunk. */
  private writeChunk(type: string, chunk: string): boolean {
    let hasRoom = true;
    this.res.cork(() => {
      if (!this.isSent) this.writeHead(this.options.status, type);
      this.isSent = true;
      hasRoom = this.res.write(chunk);
    });
    this.options.counters.http.sent(chunk);
    return hasRoom;
  }

  /**
   * Resolves when the client has read what was written, or is gone: uWebSockets.js times out a client that stalls.
   * @param write writes what is left from an offset of the response on; returns true once all of it is taken
   */
  private async drained(write: (offset: number) => boolean = () => true): Promise<void> {
    if (this.isAborted) return;
    await new Promise<void>((resolve) => {
      this.onAborted = resolve;
      this.res.onWritable((offset) => {
        const isTaken = write(offset);
        if (isTaken) resolve();
        return isTaken;
      });
    });
  }

  private async writeFile(file: FileResponse, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const { status, type, name, length, cache } = file;
    const writeHead = (): void => {
      this.isSent = true;
      this.writeHead(status, type, cache);
    };
    this.header("Content-Disposition", `attachment; filename="${name}"`);
    if (this.options.isHead) return this.finish(() => this.writeFileLength(writeHead, length));
    try {
      for await (const chunk of chunks) {
        if (this.isAborted) return;
        await this.writePart(chunk, length, writeHead);
      }
    } catch (error) {
      if (this.isSent) return this.truncate(asApiError(error));
      this.headers = null;
      this.fail(error);
    }
  }

  private writeFileLength(writeHead: () => void, length: number): void {
    writeHead();
    this.res.writeHeader("Content-Length", String(length));
    this.endEmpty();
  }

  /** Resolves when the connection has taken the bytes, or is gone. @param length of all bytes, after which it ends */
  private async writePart(chunk: Uint8Array, length: number, writeHead: () => void): Promise<void> {
    const { res } = this;
    const isTaken = (bytes: Uint8Array): boolean => res.tryEnd(bytes, length).some(Boolean);
    let start = 0;
    let isAllTaken = false;
    res.cork(() => {
      if (!this.isSent) writeHead();
      start = res.getWriteOffset();
      isAllTaken = isTaken(chunk);
    });
    this.options.counters.http.sent(chunk);
    if (!isAllTaken) await this.drained((offset) => isTaken(chunk.subarray(offset - start)));
  }

  private truncate(error: ApiError): void {
    logInternal(this.options.logger, error, this.requestId);
    if (!this.isAborted) this.res.close();
  }
}
