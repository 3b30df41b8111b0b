/**
 * The fields of a request's head that the exchange reads, taken in one pass, and whether it is beyond doubt where the
 * request ends. uWebSockets.js takes the first of two lengths, any transfer coding for chunks and no length for no body:
 * a proxy in front that reads it another way would let one client's body be taken for another's request (RFC 9112,
 * section 11.2). One object serves all requests: what it holds is good until the handler returns.
 */
import type { HttpRequest } from "uWebSockets.js";
import { IDEMPOTENCY_KEY, WRONG_KEY } from "./idempotency.ts";

const HAS_BODY: readonly string[] = ["post", "put", "patch"];

export class RequestHead {
  requestId = "";
  accept = "";
  authorization = "";
  contentType = "";
  contentLength = "";
  builderCode = "";
  /** All lines of it as one: a proxy may add a line of its own below the client's. */
  forwardedFor = "";
  /** Of the page that a browser asks for; "" outside of browsers. */
  origin = "";
  host = "";
  /** What is wrong with how the request says where it ends, in words; null where nothing is. */
  fault: string | null = null;
  /** Nothing behind the request is to be taken for another one: after its answer the connection is closed. */
  isLast = false;
  private transferEncoding: string | null = null;
  private lengths = 0;
  private hosts = 0;
  /** Idempotency-Keys that came, and whether one can be read. */
  private keys = 0;
  private hasKey = false;
  private authorizations = 0;

  read(req: HttpRequest): void {
    this.clear();
    req.forEach(this.take);
    if (this.lengths === 1 && this.contentLength !== "" && this.transferEncoding === null && this.hosts < 2) {
      if (this.authorizations < 2 && this.keys === (this.hasKey ? 1 : 0)) return;
    }
    this.judge(req.getMethod());
  }

  private clear(): void {
    this.requestId = "";
    this.accept = "";
    this.authorization = "";
    this.contentType = "";
    this.contentLength = "";
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
    this.keys = 0;
    this.hasKey = false;
  }

  /** Of fields that come twice the first counts, as `getHeader` has it. */
  private readonly take = (name: string, value: string): void => {
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
      this.hasKey = value !== "";
    } else if (name === "transfer-encoding") {
      this.transferEncoding = this.transferEncoding === null ? value : `${this.transferEncoding},${value}`;
    } else if (name === "x-forwarded-for") {
      this.forwardedFor = this.forwardedFor === "" ? value : `${this.forwardedFor},${value}`;
    }
  };

  private judge(method: string): void {
    const { transferEncoding, lengths } = this;
    if (lengths > 1) this.fault = "Content-Length: given twice";
    else if (lengths === 1 && this.contentLength === "") this.fault = "Content-Length: empty";
    else if (transferEncoding !== null && transferEncoding.toLowerCase() !== "chunked") {
      this.fault = "Transfer-Encoding: must be chunked";
    } else if (this.hosts > 1) this.fault = "Host: given twice";
    else if (this.authorizations > 1) this.fault = "Authorization: given twice";
    else if (this.keys > 1) this.fault = "Idempotency-Key: given twice";
    // One with other bytes than ASCII is read as empty: what asks for a safe retry must not act without one.
    else if (this.keys === 1 && !this.hasKey) this.fault = WRONG_KEY;
    // Chunks are read leniently too: their ends and trailers could hide a request. So could a length that isn't seen.
    this.isLast = this.fault !== null || transferEncoding !== null || (lengths === 0 && HAS_BODY.includes(method));
  }
}
