/** Requests and responses of the OAuth endpoints: shapes that every room may name. */

/** Form or query parameters; a request that repeats one was rejected before. */
export type Params = Readonly<Record<string, string>>;

/** An HTTP response whose body has the shape that the standard prescribes. */
export interface OAuthResponse {
  readonly status: number;
  readonly body: object | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type GrantType = (typeof GRANT_TYPES)[number];
export const GRANT_TYPES = ["authorization_code", "refresh_token"] as const;
