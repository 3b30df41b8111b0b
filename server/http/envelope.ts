/** The one shape of every JSON answer, as text. Section 1 of the contract, "Response envelope" of the specification. */
import type { ApiError } from "../errors.ts";

export const API_BASE = "/api/v1";

/** The envelope without its braces: answers over the WebSocket have fields beside it. */
export function successFields(dataJson: string): string {
  return `"code":0,"msg":"ok","data":${dataJson}`;
}

export function successBody(dataJson: string): string {
  return `{${successFields(dataJson)}}`;
}

/** @param traceId given on 5xx only */
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
export function oauthErrorBody({ kind, message }: ApiError): string {
  return JSON.stringify({ error: OAUTH_ERRORS[kind.status] ?? "temporarily_unavailable", error_description: message });
}
