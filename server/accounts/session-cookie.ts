/**
 * The cookie in which the web page keeps its refresh token: no script reads it, and it never comes along from another
 * site. `POST /auth/refresh` alone believes it, and only of requests that a form on another site cannot make: it gives
 * no other access, so nothing else needs guarding against pages that send a user's cookies (RFC 6265, section 8.2).
 */

import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { cookieIn, isSecure, setCookie } from "../http/cookies.ts";
import type { Tokens } from "./sessions.ts";

const NAME = "session";
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Request headers that `mayUse` looks at. */
export const COOKIE_GUARDS: readonly string[] = ["content-type", "origin", "sec-fetch-site"];

export class SessionCookie {
  private readonly publicUrl: () => string;

  constructor(publicUrl: () => string) {
    this.publicUrl = publicUrl;
  }

  /** Set-Cookie with the tokens' refresh token, for as long as that is good. @param now milliseconds */
  keep({ session, refreshToken }: Pick<Tokens, "session" | "refreshToken">, now: number): string {
    return this.set(refreshToken, Math.round((session.row.expiresAt - now) / 1_000));
  }

  /** Set-Cookie that takes it away. */
  remove(): string {
    return this.set("", 0);
  }

  /** The refresh token of a Cookie header; null where it has none. */
  read(header: string): string | null {
    return cookieIn(header, NAME, this.publicUrl());
  }

  /**
   * Of a request that gets or spends the cookie. Where its Origin is of another host it was refused before.
   * @param headers those of COOKIE_GUARDS, "" where they are missing
   * @throws ApiError 40000 for what a form could send, 40300 for a page of another site, or of this host by plain HTTP
   * where the exchange is reached by HTTPS: whoever sits on the line writes such a page
   */
  mayUse(headers: Readonly<Record<string, string>>): void {
    if (!JSON_TYPE.test(headers["content-type"]!)) {
      throw badRequest("Content-Type: must be application/json when the session is kept in a cookie");
    }
    if (headers["sec-fetch-site"] === "cross-site") throw forbidden("Sec-Fetch-Site");
    if (isSecure(this.publicUrl()) && headers["origin"]!.startsWith("http:")) throw forbidden("Origin");
  }

  private set(value: string, maxAge: number): string {
    return setCookie(NAME, value, { sameSite: "strict", maxAge }, this.publicUrl());
  }
}

function forbidden(header: string): ApiError {
  return new ApiError(ErrorKind.forbidden, `${header}: pages of other sites may not use this`);
}
