/**
 * A server whose audit log and secrets are under test: people at addresses of their own, an identity provider, the log's
 * lines as the database has them, and every secret that the tests met.
 */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { admin } from "../support/admin.ts";
import { expectEndsWell } from "../support/checks.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import {
  freshAddress,
  freshEmail,
  Guests,
  type SignInJson,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { TestProvider } from "../support/oidc-provider.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, World } from "../support/world.ts";

const REDIRECT_URI = `${PUBLIC_URL}${API_BASE}/auth/social/one/callback`;
const SCOPES = ["orders:write", "portfolio:read"];
const PEOPLE = Object.fromEntries(
  ["alice", "bob", "carol"].map((sub) => [sub, { sub, email: `${sub}@example.com`, email_verified: true }]),
);
const SEEDED_PASSWORD = "seeded with a long password";

export interface Line {
  readonly id: number;
  readonly at: number;
  readonly action: string;
  readonly actor: string;
  readonly user_id: number | null;
  readonly subject: number | null;
  readonly details: Record<string, unknown> | null;
  readonly request_id: string | null;
  readonly address: string | null;
}

export interface Session {
  readonly id: number;
  readonly user: UserJson;
  readonly accessToken: string;
  readonly refreshToken: string;
}

export const own = (user: UserJson): { actor: string; user_id: number } => ({
  actor: `user ${user.id}`,
  user_id: user.id,
});

export class AuditedWorld {
  /** By kind and number; at the end each is found nowhere. */
  readonly secrets = new Map<string, string>();
  readonly world: World;
  readonly provider: TestProvider;
  readonly market: TestMarket;
  private readonly guests = new Guests();

  private constructor(world: World, provider: TestProvider) {
    this.world = world;
    this.provider = provider;
    this.market = world.market();
  }

  static async start(): Promise<AuditedWorld> {
    const provider = await TestProvider.start([REDIRECT_URI], 0, PEOPLE);
    const { issuer, clientId, clientSecret } = provider;
    const env = {
      PUBLIC_URL,
      LOG_LEVEL: "trace",
      TRUSTED_PROXIES: "127.0.0.1",
      SOCIAL_PROVIDERS: JSON.stringify({ one: { issuer, client_id: clientId, client_secret: clientSecret } }),
    };
    const named = { seeded: { tier: 1, password: SEEDED_PASSWORD }, trader: { scopes: [SCOPES] }, other: {} };
    const stage = new AuditedWorld(await World.start({ users: 0, named, env }), provider);
    stage.secret("provider's secret", clientSecret);
    stage.secret("seeded password", SEEDED_PASSWORD);
    for (const name of Object.keys(named)) stage.secret("seeded token", tokenOf(name));
    return stage;
  }

  async stop(): Promise<void> {
    this.guests.close();
    await expectEndsWell(this.world);
    await this.provider.close();
  }

  /** Notes a secret. @param what its kind */
  secret(what: string, text: string): string {
    expect(text.length).toBeGreaterThanOrEqual(6);
    this.secrets.set(`${what} ${this.secrets.size}`, text);
    return text;
  }

  client(token: string | null): Client {
    return this.guests.client(this.world.server, token);
  }

  person(token: string | null = null): Person {
    return new Person(this, token);
  }

  lines(where: string, ...values: (string | number)[]): Line[] {
    const rows = rowsOf<Line>(
      this.world.server.dataDir,
      `SELECT * FROM audit_log WHERE ${where} ORDER BY id`,
      ...values,
    );
    return rows.map((row) => ({ ...row, details: row.details && JSON.parse(row.details as unknown as string) }));
  }

  idsIn(table: string, where: string, ...values: (string | number)[]): number[] {
    const sql = `SELECT id FROM ${table} WHERE ${where} ORDER BY id`;
    return rowsOf<{ id: number }>(this.world.server.dataDir, sql, ...values).map(({ id }) => id);
  }

  freshPassword(): string {
    return this.secret("password", `a password ${randomBytes(12).toString("base64url")}`);
  }

  /** Notes the parts of tokens too: a token without its prefix is as useful to somebody who knows the prefix. */
  noteTokens(accessToken: string, refreshToken: string): void {
    this.secret("access token", accessToken);
    this.secret("access token's signature", accessToken.split(".")[2]!);
    this.secret("refresh token", refreshToken);
    this.secret("refresh token's secret part", refreshToken.slice(-43));
  }

  /** Registers a new person and signs in. */
  async newcomer(isVerified = true): Promise<{ person: Person; session: Session; email: string; password: string }> {
    const person = this.person();
    const [email, password] = [freshEmail(), this.freshPassword()];
    const { status } = await person.ask("POST", "/auth/register", { email, password });
    expect(status).toBe(201);
    if (isVerified) {
      const token = this.secret("verification token", await verificationToken(this.world.server, email));
      expect((await person.ask("POST", "/auth/verify-email", { token, password })).status).toBe(200);
    }
    return { person, session: await person.signIn(email, password), email, password };
  }

  /** Somebody who registers an address and never verifies it. */
  async squatter(email: string): Promise<{ person: Person; session: Session }> {
    const person = this.person();
    const password = this.freshPassword();
    expect((await person.ask("POST", "/auth/register", { email, password })).status).toBe(201);
    return { person, session: await person.signIn(email, password) };
  }

  async socialSignIn(account: string): Promise<{ person: Person; answer: Answer<SignInJson> }> {
    const person = this.person();
    const start = await person.ask("GET", "/auth/social/one");
    const [, cookie] = /^([^;]+)/.exec(start.headers["set-cookie"]![0]!)!;
    this.secret("browser's binding", cookie!.slice(cookie!.indexOf("=") + 1));
    const back = new URL(await this.provider.signInAt(start.headers.location!, account));
    this.secret("provider's code", back.searchParams.get("code")!);
    this.secret("state", back.searchParams.get("state")!);
    const path = back.pathname.slice(API_BASE.length) + back.search;
    const answer = await person.ask<SignInJson>("GET", path, undefined, { Cookie: cookie! });
    expect([answer.status, answer.msg]).toEqual([200, answer.msg]);
    this.noteTokens(answer.data.access_token, answer.data.refresh_token);
    return { person, answer };
  }

  async admin(...args: string[]): Promise<void> {
    expect(await admin(this.world.server.dataDir, ...args)).toMatchObject({ code: 0 });
  }
}

/** Somebody at an address of their own, who compares the audit log with each request. */
export class Person {
  readonly stage: AuditedWorld;
  readonly address = freshAddress();
  client: Client;
  private askedAt = 0;

  constructor(stage: AuditedWorld, token: string | null = null) {
    this.stage = stage;
    this.client = stage.client(token);
  }

  async ask<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    this.askedAt = Date.now();
    const options = { headers: { "X-Forwarded-For": this.address, ...headers } };
    const answer = await this.client.request<T>(method, path, body === undefined ? options : { ...options, body });
    // No error message quotes a secret.
    if (answer.code !== 0)
      for (const [what, text] of this.stage.secrets) if (answer.msg.includes(text)) expect.fail(what);
    return answer;
  }

  /** Requests a change; with the response, exactly these lines are in the log, in any order. */
  async change<T = unknown>(
    method: string,
    path: string,
    body: unknown,
    expected: readonly (Partial<Line> & { action: string; actor: string })[],
    headers: Record<string, string> = {},
  ): Promise<T> {
    const answer = await this.ask<T>(method, path, body, headers);
    expect([method, path, answer.status < 400, answer.msg]).toEqual([method, path, true, answer.msg]);
    this.expectLines(answer, expected);
    return answer.data;
  }

  expectLines({ headers }: Answer, expected: readonly Partial<Line>[]): Line[] {
    const found = this.stage.lines("request_id = ?", String(headers["x-request-id"]));
    const key = ({ action = "", subject }: Partial<Line>): string => `${action} ${subject}`;
    const sorted = <T extends Partial<Line>>(list: readonly T[]): T[] =>
      list.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
    expect(found.map(({ action }) => action).sort()).toEqual(expected.map(({ action }) => action).sort());
    sorted(expected).forEach((line, i) => {
      expect(sorted(found)[i]).toMatchObject({ address: this.address, ...line });
    });
    for (const { action, at } of found) {
      expect([action, at >= this.askedAt && at <= Date.now()]).toEqual([action, true]);
    }
    return found;
  }

  /** From here on the person uses this session. */
  async signIn(email: string, password: string): Promise<Session> {
    const answer = await this.ask<SignInJson>("POST", "/auth/login", { email, password });
    expect(answer.status).toBe(200);
    const { user } = answer.data;
    const [line] = this.expectLines(answer, [{ action: "session.start", actor: `user ${user.id}`, user_id: user.id }]);
    expect(line!.details).toMatchObject({ method: "password" });
    return this.session(answer.data, line!.subject!);
  }

  session({ access_token, refresh_token, user }: SignInJson, id: number): Session {
    this.stage.noteTokens(access_token, refresh_token);
    this.client = this.stage.client(access_token);
    return { id, user, accessToken: access_token, refreshToken: refresh_token };
  }
}
