/** The one table of error codes. A user's mistake is an `ApiError`, which a handler returns or throws; a bare Error is ours. */

export const ErrorKind = {
  badRequest: { status: 400, code: 40000 },
  tooLarge: { status: 413, code: 40000 },
  unauthenticated: { status: 401, code: 40100 },
  tokenExpired: { status: 401, code: 2002 },
  forbidden: { status: 403, code: 40300 },
  notFound: { status: 404, code: 4040 },
  methodNotAllowed: { status: 405, code: 40500 },
  conflict: { status: 409, code: 40900 },
  insufficientBalance: { status: 422, code: 42201 },
  insufficientShares: { status: 422, code: 42202 },
  marketNotOpen: { status: 422, code: 42203 },
  tooManyOrders: { status: 422, code: 42204 },
  limitExceeded: { status: 429, code: 42900 },
  activityExceeded: { status: 429, code: 42901 },
  internal: { status: 500, code: 50000 },
  overloaded: { status: 503, code: 50300 },
} as const;
export type ErrorKind = (typeof ErrorKind)[keyof typeof ErrorKind];

/** An error that the client sees, with its message. */
export class ApiError extends Error {
  readonly kind: ErrorKind;
  /** Seconds, for 429 and 503. */
  readonly retryAfter: number | null;

  /**
   * An internal error has a stack trace. A rejection has none: it takes longer than the rest of a rejected order.
   * @param cause of an internal error: for the log, never for the client
   */
  constructor(kind: ErrorKind, message: string, retryAfter: number | null = null, cause?: unknown) {
    const { stackTraceLimit } = Error;
    if (kind !== ErrorKind.internal) Error.stackTraceLimit = 0;
    super(message, { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}

export function badRequest(message: string): ApiError {
  return new ApiError(ErrorKind.badRequest, message);
}

export function notFound(what: string): ApiError {
  return new ApiError(ErrorKind.notFound, `no such ${what}`);
}

/** The server does not accept requests yet, or no longer does. */
export const STARTING = "the exchange is starting";
export const STOPPING = "the exchange is shutting down";
/** Its log or an engine failed. */
export const FAILED = "trading has stopped";

/** The request was started, and it is unknown whether it became durable. @param why for the message */
export function outcomeUnknown(why: string): ApiError {
  return new ApiError(ErrorKind.internal, `${why}: no response in time, check before you retry`);
}

/** The request had no effect, so the client may send it again. */
export function overloaded(message: string): ApiError {
  return new ApiError(ErrorKind.overloaded, message, 1);
}

/** The error that the client sees for anything thrown: its own mistake as it is, ours as an internal error. */
export function asApiError(thrown: unknown): ApiError {
  return thrown instanceof ApiError ? thrown : new ApiError(ErrorKind.internal, "internal error", null, thrown);
}

/** For `catch`: turns a client's mistake into `value` and rethrows everything else. */
export function rejectedAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof ApiError && error.kind.status < 500) return value;
    throw error;
  };
}

/** A mistake in the environment or the data folder, in words for the operator: the start ends with this one line. */
export class ConfigError extends Error {
  /** What the process exits with. */
  readonly exitCode: number = 1;
}

/** Another box is active: this one exits with a code of its own, and follows from its next start on. */
export class FencedStart extends ConfigError {
  override readonly exitCode = FENCED_EXIT;
}

/** What a box exits with once another one is active. */
export const FENCED_EXIT = 3;
