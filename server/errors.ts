/** The one table of error codes. User mistakes are values: a handler answers or throws `ApiError`, never a bare Error. */

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

/** What a caller did wrong or met, with the words it is told. */
export class ApiError extends Error {
  readonly kind: ErrorKind;
  /** Seconds, for 429 and 503. */
  readonly retryAfter: number | null;

  /** @param cause of an internal error: for the log, never for the caller */
  constructor(kind: ErrorKind, message: string, retryAfter: number | null = null, cause?: unknown) {
    super(message, { cause });
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

/** Of a server that takes no requests yet, or no more. */
export const STARTING = "the exchange is starting";
export const STOPPING = "the exchange is shutting down";
/** Of one whose journal or engine failed. */
export const FAILED = "trading has stopped";

/** Of what was begun, and may be durable or not: nobody can tell any more. @param why in words */
export function outcomeUnknown(why: string): ApiError {
  return new ApiError(ErrorKind.internal, `${why}: no response in time, check before you retry`);
}

/** The request had no effect: it may be sent again. */
export function overloaded(message: string): ApiError {
  return new ApiError(ErrorKind.overloaded, message, 1);
}

/** What a caller is told of whatever was thrown: its own mistakes in their words, our own as an internal error. */
export function asApiError(thrown: unknown): ApiError {
  return thrown instanceof ApiError ? thrown : new ApiError(ErrorKind.internal, "internal error", null, thrown);
}

/** For `catch`: a refusal of ours becomes `value`, anything else stays what it is. */
export function refusedAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof ApiError && error.kind.status < 500) return value;
    throw error;
  };
}

/** A mistake in the environment or the data folder, in words for the operator: the start ends with this one line. */
export class ConfigError extends Error {}
