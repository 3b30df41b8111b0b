/**
 * The cookie that holds the web page's refresh token: no script can read it, and browsers do not send it from another
 * site. Only `POST /auth/refresh` accepts it, and only from requests that a form on another site cannot make. It gives
 * no other access, so no other route needs protection against cross-site requests (RFC 6265, section 8.2).
 */

import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { cookieIn, isSecure, setCookie } from "../http/cookies.ts";
import type { Tokens } from "./sessions.ts";

const NAME = "session";
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Request headers that `mayUse` checks. */
export const COOKIE_GUARDS = ["content-type", "origin", "sec-fetch-site"] as const;

export class SessionCookie {
  private readonly publicUrl: () => string;

  constructor(publicUrl: () => string) {
    this.publicUrl = publicUrl;
  }

  /** The Set-Cookie that stores the refresh token until it expires. @param now ms */
  keep({ session, refreshToken }: Pick<Tokens, "session" | "refreshToken">, now: number): string {
    // A session begins later than its request, by the time that its password took.
    const { createdAt, expiresAt } = session.row;
    return this.set(refreshToken, Math.round((expiresAt - Math.max(now, createdAt)) / 1_000));
  }

  /** The Set-Cookie that deletes it. */
  remove(): string {
    return this.set("", 0);
  }

  /** The refresh token in a Cookie header; null if there is none. */
  read(header: string): string | null {
    return cookieIn(header, NAME, this.publicUrl());
  }

  /**
   * Checks a request that receives or uses the cookie. The server already rejected an Origin of another host.
   * @param headers those of COOKIE_GUARDS, "" for missing ones
   * @throws ApiError 40000 for a request that a form could send; 40300 from a page of another site, or of this host over
   * plain HTTP when the exchange uses HTTPS: an attacker on the network could have written such a page
   */
  mayUse(headers: Readonly<Record<(typeof COOKIE_GUARDS)[number], string>>): void {
    if (!JSON_TYPE.test(headers["content-type"])) {
      throw badRequest("Content-Type: must be application/json when the session is kept in a cookie");
    }
    if (headers["sec-fetch-site"] === "cross-site") throw forbidden("Sec-Fetch-Site");
    if (isSecure(this.publicUrl()) && headers.origin.startsWith("http:")) throw forbidden("Origin");
  }

  private set(value: string, maxAge: number): string {
    return setCookie(NAME, value, { sameSite: "strict", maxAge }, this.publicUrl());
  }
}

function forbidden(header: string): ApiError {
  return new ApiError(ErrorKind.forbidden, `${header}: pages of other sites may not use this`);
}
