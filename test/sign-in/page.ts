/**
 * A browser with the exchange's page open, whose refresh token is in a cookie that no script can read. Knows cookies,
 * tokens and requests, not what the tests expect of them; the one expectation here is that of a cookie that is over.
 */
import { expect } from "vitest";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { type Guests, PASSWORD } from "../support/identity.ts";
import type { TestServer } from "../support/server.ts";
import { expectRefused } from "../support/trading.ts";

/** The address of the page. In production a TLS proxy stands in front of the server. */
export const PAGE_URL = "https://exchange.test";
export const COOKIE = "__Host-session";
/** The header that removes the cookie. */
export const REMOVED = `${COOKIE}=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict`;
/** The callback of the identity provider "one". */
export const REDIRECT_URI = `${PAGE_URL}${API_BASE}/auth/social/one/callback`;
/** The headers that a browser adds to a request from our own page. */
export const OURS = { Origin: PAGE_URL, "Sec-Fetch-Site": "same-origin" };

export interface PageTokens {
  readonly access_token: string;
  readonly refresh_token: null;
}
export interface SessionJson {
  readonly id: number;
  readonly method: string;
  readonly current: boolean;
  readonly user_agent: string | null;
}

/** Where a page runs: the exchange, the test file's clients, and the cookie's name. */
export interface PageContext {
  /** Its server may change: the page sends to the current one. */
  readonly world: { readonly server: TestServer };
  readonly guests: Guests;
  /** By plain HTTP the name differs. */
  readonly cookie?: string;
}

/** One browser with our page open: it stores and sends the server's cookies, and holds the last access token. */
export class Page {
  /** Cookies by name. */
  readonly cookies = new Map<string, string>();
  accessToken = "";
  private readonly context: PageContext;
  private readonly cookie: string;
  /** A client of the current server. */
  private client: Client | null = null;

  constructor(context: PageContext) {
    this.context = context;
    this.cookie = context.cookie ?? COOKIE;
  }

  /** Signs in by password. */
  static async signIn(user: string, context: PageContext): Promise<Page> {
    const page = new Page(context);
    const answer = await page.login(user);
    if (answer.code !== 0) throw new Error(`${answer.code} ${answer.msg}`);
    return page;
  }

  /** The refresh token. */
  get token(): string | null {
    return this.cookies.get(this.cookie) ?? null;
  }

  set token(value: string) {
    this.cookies.set(this.cookie, value);
  }

  get user(): Client {
    const { guests, world } = this.context;
    return guests.client(world.server, this.accessToken);
  }

  get cookieHeader(): Record<string, string> {
    if (this.cookies.size === 0) return {};
    return { Cookie: [...this.cookies].map((pair) => pair.join("=")).join("; ") };
  }

  /** Another browser with the same cookie, or with the given refresh token. */
  copy(token = this.token!): Page {
    const copy = new Page(this.context);
    copy.token = token;
    return copy;
  }

  async request<T>(method: string, path: string, body?: unknown, headers = {}): Promise<Answer<T>> {
    const { guests, world } = this.context;
    if (this.client?.server !== world.server) this.client = guests.client(world.server, null, 8);
    const options = { headers: { "User-Agent": "a browser", ...this.cookieHeader, ...headers } };
    const answer = await this.client.request<T>(method, path, body === undefined ? options : { ...options, body });
    this.store(answer);
    return answer;
  }

  login(user: string, headers = {}): Promise<Answer<PageTokens>> {
    const body = { email: `${user}@example.com`, password: PASSWORD, cookie: true };
    return this.taking(this.request<PageTokens>("POST", "/auth/login", body, { ...OURS, ...headers }));
  }

  refresh(headers = {}): Promise<Answer<PageTokens>> {
    return this.taking(this.request<PageTokens>("POST", "/auth/refresh", {}, { ...OURS, ...headers }));
  }

  /** Fails if the server rejects the cookie. */
  async refreshed(): Promise<void> {
    const { code, msg, data } = await this.refresh();
    expect([code, msg]).toEqual([0, "ok"]);
    expect(data).toEqual({ access_token: expect.any(String), refresh_token: null });
  }

  /** Sends a request with the last access token. */
  async me(): Promise<number> {
    return (await this.user.request("GET", "/me")).code;
  }

  private async taking(asked: Promise<Answer<PageTokens>>): Promise<Answer<PageTokens>> {
    const answer = await asked;
    if (answer.code !== 0) return answer;
    this.accessToken = answer.data.access_token;
    this.context.guests.secrets.add(this.accessToken);
    return answer;
  }

  private store({ headers }: Answer): void {
    for (const line of headers["set-cookie"] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/; Max-Age=0\b/.test(line)) this.cookies.delete(name!);
      else {
        this.cookies.set(name!, value!);
        this.context.guests.secrets.add(value!);
      }
    }
  }
}

/** Expects the server to reject and remove the cookie. That ends the cookie's session. */
export async function expectOver(page: Page): Promise<void> {
  const answer = await expectRefused(page.refresh(), 401, 40100);
  expect(answer.headers["set-cookie"]).toEqual([REMOVED]);
  expect(page.token).toBeNull();
}
