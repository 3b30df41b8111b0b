/**
 * Sends REST requests. Keeps no state: session.ts owns the token and renews it.
 */
import { learnDate } from "./clock.ts";
import { base } from "./router.ts";

export const API = `${base}api/v1`;
/** For people, too: what the exchange owes, and that it has it. */
export const SOLVENCY = `${API}/solvency`;

/** The message of a read without a response, which can be repeated at any time. */
export const NO_ANSWER_TO_READ = "no response to a read";

/** An error response of the API, or no response at all (status 0). */
export class ApiError extends Error {
  readonly status: number;
  /** Code from the API's error table; 0 without a response. */
  readonly code: number;
  /** Seconds, from Retry-After; null if absent. */
  readonly retryAfter: number | null;
  /** Identifies the request in the server's log. */
  readonly traceId: string | null;

  constructor(status: number, code: number, msg: string, retryAfter: number | null, traceId: string | null) {
    super(msg);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.traceId = traceId;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface CallOptions {
  readonly query?: Query;
  /** Serialized as JSON. */
  readonly body?: unknown;
  readonly token?: string | null;
  readonly signal?: AbortSignal;
  /** Lets the request outlive the page. */
  readonly keepalive?: boolean;
  readonly idempotencyKey?: string;
}

interface Envelope {
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
  readonly trace_id?: string;
}

/** @param query entries that are null, undefined or "" are omitted */
export function withQuery(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/** Sends a request and returns the response, whatever its status. @throws ApiError without a response */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const headers: Record<string, string> = {};
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.idempotencyKey !== undefined) headers["Idempotency-Key"] = options.idempotencyKey;
  try {
    const response = await fetch(API + withQuery(path, options.query), {
      method,
      headers,
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
      keepalive: options.keepalive ?? false,
    });
    learnDate(response.headers.get("Date"));
    return response;
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, 0, method === "GET" ? NO_ANSWER_TO_READ : "no response", null, null);
  }
}

/** Sends a request and returns the data of a successful response. @throws ApiError */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await send(method, path, options);
  if (!response.ok) throw await errorOf(response);
  return ((await response.json()) as Envelope).data as T;
}

export async function errorOf(response: Response): Promise<ApiError> {
  const wait = Number(response.headers.get("Retry-After"));
  const retryAfter = wait > 0 ? wait : null;
  try {
    const { code, msg, trace_id = null } = (await response.json()) as Envelope;
    return new ApiError(response.status, code, msg, retryAfter, trace_id);
  } catch {
    return new ApiError(response.status, 0, response.statusText, retryAfter, null);
  }
}
