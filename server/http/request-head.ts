/**
 * The header fields that the exchange reads, taken in one pass, and whether the request's length is unambiguous.
 * uWebSockets.js takes the first of two lengths, any transfer coding for chunks and no length for no body: a proxy in
 * front that reads it another way would take one client's body for another's request (RFC 9112, section 11.2). One object
 * serves all requests: its content is valid until the handler returns.
 */
import type { HttpRequest } from "uWebSockets.js";
import { IDEMPOTENCY_KEY, WRONG_KEY } from "./idempotency.ts";

const METHODS_WITH_BODY: readonly string[] = ["post", "put", "patch"];

export class RequestHead {
  requestId = "";
  accept = "";
  authorization = "";
  contentType = "";
  contentLength = "";
  contentEncoding = "";
  builderCode = "";
  /** All lines of it as one: a proxy may add a line of its own below the client's. */
  forwardedFor = "";
  /** The origin of the page that sends the request; "" outside of browsers. */
  origin = "";
  host = "";
  /** The reason to reject the request, in words: its end or a safe retry is in doubt. Null: none. */
  fault: string | null = null;
  /** Bytes behind the request must not be taken for another one: the connection closes after the response. */
  isLast = false;
  private transferEncoding: string | null = null;
  private lengths = 0;
  private hosts = 0;
  private authorizations = 0;
  /** "" for none. */
  idempotencyKey = "";
  private keys = 0;

  read(req: HttpRequest): void {
    this.requestId = "";
    this.accept = "";
    this.authorization = "";
    this.contentType = "";
    this.contentLength = "";
    this.contentEncoding = "";
    this.builderCode = "";
    this.forwardedFor = "";
    this.origin = "";
    this.host = "";
    this.fault = null;
    this.isLast = false;
    this.transferEncoding = null;
    this.lengths = 0;
    this.hosts = 0;
    this.authorizations = 0;
    this.idempotencyKey = "";
    this.keys = 0;
    req.forEach(this.readField);
    if (this.lengths === 1 && this.contentLength !== "" && this.transferEncoding === null && this.hosts < 2) {
      if (this.authorizations < 2 && this.contentEncoding === "" && this.keys === (this.idempotencyKey === "" ? 0 : 1))
        return;
    }
    this.findFault(req.getMethod());
  }

  /** A body follows, maybe an empty one. */
  get hasBody(): boolean {
    return this.transferEncoding !== null || (this.contentLength !== "" && this.contentLength !== "0");
  }

  /** Of a repeated field the first value counts, as with `getHeader`. */
  private readonly readField = (name: string, value: string): void => {
    if (name === "content-length") {
      if (this.lengths++ === 0) this.contentLength = value;
    } else if (name === "authorization") {
      if (this.authorizations++ === 0) this.authorization = value;
    } else if (name === "host") {
      if (this.hosts++ === 0) this.host = value;
    } else if (name === "content-type") this.contentType ||= value;
    else if (name === "accept") this.accept ||= value;
    else if (name === "x-request-id") this.requestId ||= value;
    else if (name === "x-builder-code") this.builderCode ||= value;
    else if (name === "origin") this.origin ||= value;
    else if (name === IDEMPOTENCY_KEY) {
      this.keys++;
      this.idempotencyKey = value;
    } else if (name === "transfer-encoding") {
      this.transferEncoding = this.transferEncoding === null ? value : `${this.transferEncoding},${value}`;
    } else if (name === "content-encoding") this.contentEncoding ||= value;
    else if (name === "x-forwarded-for") {
      this.forwardedFor = this.forwardedFor === "" ? value : `${this.forwardedFor},${value}`;
    }
  };

  private findFault(method: string): void {
    const { transferEncoding, lengths } = this;
    if (lengths > 1) this.fault = "Content-Length: given twice";
    else if (lengths === 1 && this.contentLength === "") this.fault = "Content-Length: empty";
    else if (transferEncoding !== null && transferEncoding.toLowerCase() !== "chunked") {
      this.fault = "Transfer-Encoding: must be chunked";
    } else if (this.hosts > 1) this.fault = "Host: given twice";
    else if (this.authorizations > 1) this.fault = "Authorization: given twice";
    else if (this.keys > 1) this.fault = "Idempotency-Key: given twice";
    else if (this.hasBody && !/^(identity)?$/i.test(this.contentEncoding)) {
      this.fault = "Content-Encoding: a body must not be compressed";
    }
    // uWebSockets.js reads a key with non-ASCII bytes as empty: a request that asks for a safe retry must not run without.
    else if (this.keys === 1 && this.idempotencyKey === "") this.fault = WRONG_KEY;
    // uWebSockets.js reads chunks leniently too: their ends and trailers, or a length it overlooks, could hide a request.
    this.isLast =
      this.fault !== null || transferEncoding !== null || (lengths === 0 && METHODS_WITH_BODY.includes(method));
  }
}
