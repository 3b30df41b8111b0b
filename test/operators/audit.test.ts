/**
 * The audit log, and what must be in no log at all. Each flow that changes money or access is gone through once, and its
 * lines are looked up by the id of the request that asked for it; the secrets that it met are noted, and in the end
 * searched for in everything that the server wrote.
 */
import { createHash, createPublicKey, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReadOnly } from "../../engine/projection/database.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { admin as runAdmin } from "../support/admin.ts";
import { expectEndsWell } from "../support/checks.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { rowsOf, signingKeys } from "../support/data-dir.ts";
import {
  freshAddress,
  freshEmail,
  Guests,
  messagesTo,
  phoneCode,
  resetToken,
  type SignInJson,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { TestProvider } from "../support/oidc-provider.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import {
  authorizationRequest,
  basic,
  CALLBACK,
  codeIn,
  FORM,
  type OAuthClientJson,
  redemption,
} from "../support/third-party.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

const REDIRECT_URI = `${PUBLIC_URL}${API_BASE}/auth/social/one/callback`;
const SCOPES = ["orders:write", "portfolio:read"];
const PEOPLE = Object.fromEntries(
  ["alice", "bob", "carol"].map((sub) => [sub, { sub, email: `${sub}@example.com`, email_verified: true }]),
);

interface Line {
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

/** By what they are; each is found nowhere in the end. */
const secrets = new Map<string, string>();
function secret(what: string, text: string): string {
  expect(text.length).toBeGreaterThanOrEqual(6);
  secrets.set(`${what} ${secrets.size}`, text);
  return text;
}

let world: World;
let provider: TestProvider;
let market: TestMarket;
const guests = new Guests();
beforeAll(async () => {
  provider = await TestProvider.start([REDIRECT_URI], 0, PEOPLE);
  const { issuer, clientId, clientSecret } = provider;
  const env = {
    PUBLIC_URL,
    LOG_LEVEL: "trace",
    TRUSTED_PROXIES: "127.0.0.1",
    SOCIAL_PROVIDERS: JSON.stringify({
      one: { issuer, client_id: clientId, client_secret: secret("provider's secret", clientSecret) },
    }),
  };
  const named = {
    seeded: { tier: 1, password: secret("seeded password", "seeded with a long password") },
    trader: { scopes: [SCOPES] },
    other: {},
  };
  world = await World.start({ users: 0, named, env });
  market = world.market();
  for (const name of Object.keys(named)) secret("seeded token", tokenOf(name));
});
afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
  await provider.close();
});

function lines(where: string, ...values: (string | number)[]): Line[] {
  const rows = rowsOf<Line>(world.server.dataDir, `SELECT * FROM audit_log WHERE ${where} ORDER BY id`, ...values);
  return rows.map((row) => ({ ...row, details: row.details && JSON.parse(row.details as unknown as string) }));
}

function idsIn(table: string, where: string, ...values: (string | number)[]): number[] {
  const sql = `SELECT id FROM ${table} WHERE ${where} ORDER BY id`;
  return rowsOf<{ id: number }>(world.server.dataDir, sql, ...values).map(({ id }) => id);
}

const freshPassword = (): string => secret("password", `a password ${randomBytes(12).toString("base64url")}`);

/** Somebody at an address of their own, who knows what the audit log must say of each request. */
class Person {
  readonly address = freshAddress();
  client: Client;
  private askedAt = 0;

  constructor(token: string | null = null) {
    this.client = guests.client(world.server, token);
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
    // No refusal says a secret back.
    if (answer.code !== 0) for (const [what, text] of secrets) if (answer.msg.includes(text)) expect.fail(what);
    return answer;
  }

  /** Asks for a change; its lines are there when the answer is, in any order, and no more of them than these. */
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
    const found = lines("request_id = ?", String(headers["x-request-id"]));
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

  /** From here on the person's session, whose tokens are noted. */
  async signIn(email: string, password: string): Promise<Session> {
    const answer = await this.ask<SignInJson>("POST", "/auth/login", { email, password });
    expect(answer.status).toBe(200);
    const { user } = answer.data;
    const [line] = this.expectLines(answer, [{ action: "session.start", actor: `user ${user.id}`, user_id: user.id }]);
    expect(line!.details).toMatchObject({ method: "password" });
    return this.session(answer.data, line!.subject!);
  }

  session({ access_token, refresh_token, user }: SignInJson, id: number): Session {
    noteTokens(access_token, refresh_token);
    this.client = guests.client(world.server, access_token);
    return { id, user, accessToken: access_token, refreshToken: refresh_token };
  }
}

interface Session {
  readonly id: number;
  readonly user: UserJson;
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** Parts too: a token without its beginning would be as good to whoever has that from elsewhere. */
function noteTokens(accessToken: string, refreshToken: string): void {
  secret("access token", accessToken);
  secret("access token's signature", accessToken.split(".")[2]!);
  secret("refresh token", refreshToken);
  secret("refresh token's secret part", refreshToken.slice(-43));
}

/** Registers a new person, verifies the address unless it says otherwise, and signs in. */
async function newcomer(
  isVerified = true,
): Promise<{ person: Person; session: Session; email: string; password: string }> {
  const person = new Person();
  const [email, password] = [freshEmail(), freshPassword()];
  const { status } = await person.ask("POST", "/auth/register", { email, password });
  expect(status).toBe(201);
  if (isVerified) {
    const token = secret("verification token", await verificationToken(world.server, email));
    expect((await person.ask("POST", "/auth/verify-email", { token, password })).status).toBe(200);
  }
  return { person, session: await person.signIn(email, password), email, password };
}

const own = (user: UserJson): { actor: string; user_id: number } => ({ actor: `user ${user.id}`, user_id: user.id });

async function pat(person: Person, { user }: Session, name = "bot"): Promise<{ id: number; token: string }> {
  const line = { action: "pat.create", ...own(user), details: { scopes: SCOPES, expires_at: null } };
  const body = { name, scopes: SCOPES };
  const made = await person.change<{ id: number; token: string }>("POST", "/me/personal-access-tokens", body, [line]);
  const { id, token } = made;
  expect(lines("action = 'pat.create' AND subject = ?", id)).toHaveLength(1);
  secret("personal access token", token);
  secret("personal access token without its beginning", token.slice(-40));
  return { id, token };
}

type ThirdParty = OAuthClientJson & { readonly client_secret: string };

async function thirdParty(person: Person, { user }: Session): Promise<ThirdParty> {
  const body = { name: "third party", redirect_uris: [CALLBACK], confidential: true };
  const line = { action: "client.create", ...own(user), details: expect.objectContaining({ name: "third party" }) };
  const made = await person.change<ThirdParty>("POST", "/me/oauth-clients", body, [line]);
  expect(lines("action = 'client.create' AND subject = ?", made.id)).toHaveLength(1);
  secret("client secret", made.client_secret);
  secret("client's Authorization header", basic(made.client_id, made.client_secret).Authorization.slice(6));
  return made;
}

/** The consent page's request, and the verifier that belongs to it. */
function consent(party: ThirdParty, scopes: readonly string[]): { body: object; verifier: string } {
  const { params, verifier } = authorizationRequest(party.client_id, scopes.join(" "));
  secret("code verifier", verifier);
  return { body: { ...params, decision: "approve" }, verifier };
}

/** The form that redeems the code which the browser was sent back with. */
function codeForm(redirectTo: string, verifier: string): string {
  const code = secret("authorization code", codeIn(redirectTo));
  return new URLSearchParams(redemption({ code, verifier })).toString();
}

type Flow = readonly [name: string, run: () => Promise<void>];

const FLOWS: readonly Flow[] = [
  [
    "registration, verified e-mail, sign-in and sign-out",
    async () => {
      const visitor = new Person();
      const [email, password] = [freshEmail(), freshPassword()];
      const registered = { action: "user.create", actor: "visitor" };
      const user = await visitor.change<UserJson>("POST", "/auth/register", { email, password }, [registered]);
      expect(lines("action = 'user.create' AND subject = ?", user.id)).toHaveLength(1);
      const token = secret("verification token", await verificationToken(world.server, email));
      const verified = { action: "user.verify_email", ...own(user), subject: user.id };
      await visitor.change("POST", "/auth/verify-email", { token, password }, [verified]);
      const wrong = secret("wrong password", "not the password of anybody");
      for (const tried of [wrong, `${password} `]) {
        visitor.expectLines(await visitor.ask("POST", "/auth/login", { email, password: tried }), []);
      }
      const { id } = await visitor.signIn(email, password);
      const out = { action: "session.end", ...own(user), subject: id, details: { reason: "logout" } };
      await visitor.change("POST", "/auth/logout", undefined, [out]);
      // What changes nothing leaves nothing.
      for (const [path, body] of [
        ["/auth/register", { email, password }],
        ["/auth/verify-email", { token }],
        ["/auth/logout", undefined],
      ] as const) {
        const answer = await visitor.ask("POST", path, body);
        expect([path, answer.status >= 400]).toEqual([path, true]);
        visitor.expectLines(answer, []);
      }
    },
  ],
  [
    "phone and identity: tier 1, and the operator's word on tier 2",
    async () => {
      const { person, session, email } = await newcomer(false);
      const { user } = session;
      const token = secret("verification token", await verificationToken(world.server, email));
      await person.change("POST", "/auth/verify-email", { token }, [{ action: "user.verify_email", ...own(user) }]);
      const phone = "+14155552671";
      const before = messagesTo(world.server, phone).length;
      const set = { action: "user.set_phone", ...own(user), subject: user.id };
      await person.change("POST", "/me/phone", { phone }, [set]);
      const code = secret("code", await phoneCode(world.server, phone, before + 1));
      const wrong = code === "000000" ? "000001" : "000000";
      person.expectLines(await person.ask("POST", "/me/phone/verify", { code: wrong }), []);
      const verified = { action: "user.verify_phone", ...own(user), subject: user.id };
      await person.change("POST", "/me/phone/verify", { code }, [verified]);
      const number = secret("document number", `X${randomBytes(6).toString("hex").toUpperCase()}`);
      const body = { document_type: "passport", document_number: number, country: "DE" };
      const details = { document_type: "passport", country: "DE" };
      const applied = { action: "identity.apply", ...own(user), details };
      const { id } = await person.change<{ id: number }>("POST", "/me/identity", body, [applied]);
      expect(lines("action = 'identity.apply' AND subject = ?", id)).toHaveLength(1);
      await admin("identity", "approve", email);
      const decided = lines("action LIKE 'identity.%' AND user_id = ? AND actor = 'admin'", user.id);
      expect(decided).toMatchObject([{ action: "identity.approve" }]);
      expect((await person.ask<UserJson>("GET", "/me")).data.kyc_tier).toBe(2);
    },
  ],
  [
    "passwords: changed, forgotten and set anew",
    async () => {
      const { person, session, email, password } = await newcomer();
      const { user } = session;
      const second = await new Person().signIn(email, password);
      const next = freshPassword();
      const wrong = secret("wrong password", "neither the old nor the new one");
      person.expectLines(await person.ask("POST", "/me/password", { current: wrong, new: next }), []);
      const ended = (id: number, reason: string): Partial<Line> & { action: string; actor: string } => {
        return { action: "session.end", ...own(user), subject: id, details: { reason } };
      };
      await person.change("POST", "/me/password", { current: password, new: next }, [
        { action: "user.change_password", ...own(user), subject: user.id },
        ended(second.id, "password_changed"),
      ]);
      person.expectLines(await person.ask("POST", "/auth/forgot-password", { email }), []);
      const token = secret("reset token", await resetToken(world.server, email));
      const visitor = new Person();
      const last = freshPassword();
      await visitor.change("POST", "/auth/reset-password", { token, password: last }, [
        { action: "user.reset_password", ...own(user), subject: user.id },
        ended(session.id, "password_reset"),
      ]);
      await visitor.signIn(email, last);
    },
  ],
  [
    "refresh tokens: one that is used twice ends its session",
    async () => {
      const { person, session } = await newcomer();
      const { user, refreshToken } = session;
      const visitor = new Person();
      const refreshed = await visitor.ask<SignInJson>("POST", "/auth/refresh", { refresh_token: refreshToken });
      noteTokens(refreshed.data.access_token, refreshed.data.refresh_token);
      const reuse = await visitor.ask("POST", "/auth/refresh", { refresh_token: refreshToken });
      expect(reuse.status).toBe(401);
      const details = { reason: "refresh_token_reused" };
      visitor.expectLines(reuse, [{ action: "session.end", user_id: user.id, subject: session.id, details }]);
      expect((await person.ask("GET", "/me")).code).toBe(40100);
    },
  ],
  [
    "sessions that their owner ends from another one",
    async () => {
      const { person, session, email, password } = await newcomer();
      const second = await new Person().signIn(email, password);
      const { user } = session;
      const details = { reason: "ended_by_user" };
      const line = { action: "session.end", ...own(user), subject: second.id, details };
      await person.change("DELETE", `/me/sessions/${second.id}`, undefined, [line]);
      person.expectLines(await person.ask("DELETE", `/me/sessions/${second.id}`), []);
    },
  ],
  [
    "personal access tokens: made and revoked, and nobody else's",
    async () => {
      const { person, session } = await newcomer();
      const { user } = session;
      const { id, token } = await pat(person, session);
      const bot = new Person(token);
      expect((await bot.ask("GET", "/wallet/balance")).status).toBe(200);
      bot.expectLines(await bot.ask("GET", "/me"), []);
      const stranger = await newcomer();
      const path = `/me/personal-access-tokens/${id}`;
      stranger.person.expectLines(await stranger.person.ask("DELETE", path), []);
      await person.change("DELETE", path, undefined, [{ action: "pat.revoke", ...own(user), subject: id }]);
      person.expectLines(await person.ask("DELETE", path), []);
    },
  ],
  [
    "third parties: clients, grants, codes, tokens, and their end",
    async () => {
      const { person, session } = await newcomer();
      const { user } = session;
      const party = await thirdParty(person, session);
      const bot = new Person();
      const actor = `oauth client ${party.id}`;

      const asked = consent(party, ["portfolio:read"]);
      const given = { action: "grant.create", ...own(user) };
      const first = await person.change<{ redirect_to: string }>("POST", "/oauth/authorize", asked.body, [given]);
      const grants = await person.ask<{ items: { id: number }[] }>("GET", "/me/oauth-grants");
      const grantId = grants.data.items[0]!.id;
      expect(lines("action = 'grant.create' AND subject = ?", grantId)).toHaveLength(1);
      const form = codeForm(first.redirect_to, asked.verifier);
      const headers = { ...FORM, ...basic(party.client_id, party.client_secret) };
      const opened = await bot.ask<SignInJson>("POST", "/oauth/token", form, headers);
      expect(opened.status).toBe(200);
      noteTokens(opened.data.access_token, opened.data.refresh_token);
      const [started] = bot.expectLines(opened, [{ action: "session.start", actor, user_id: user.id }]);
      expect(started!.details).toMatchObject({ method: "authorization_code", scopes: "portfolio:read" });

      // A second use of the code takes what it gave.
      const again = await bot.ask("POST", "/oauth/token", form, headers);
      expect(again.status).toBe(400);
      const reused = { subject: started!.subject, details: { reason: "authorization_code_reused" } };
      bot.expectLines(again, [{ action: "session.end", actor, user_id: user.id, ...reused }]);

      // More scopes extend the grant.
      const more = consent(party, SCOPES);
      const extended = { action: "grant.extend", ...own(user), subject: grantId };
      const next = await person.change<{ redirect_to: string }>("POST", "/oauth/authorize", more.body, [extended]);
      const second = codeForm(next.redirect_to, more.verifier);
      const tokens = (await bot.ask<SignInJson>("POST", "/oauth/token", second, headers)).data;
      noteTokens(tokens.access_token, tokens.refresh_token);
      const renew = new URLSearchParams({
        grant_type: "refresh_token",
        refresh_token: tokens.refresh_token,
      }).toString();
      const renewed = (await bot.ask<SignInJson>("POST", "/oauth/token", renew, headers)).data;
      noteTokens(renewed.access_token, renewed.refresh_token);
      await bot.ask("POST", "/oauth/introspect", `token=${renewed.access_token}`, headers);
      const revoked = await bot.ask("POST", "/oauth/revoke", `token=${renewed.refresh_token}`, headers);
      expect(revoked.status).toBe(200);
      bot.expectLines(revoked, [{ action: "session.end", actor, user_id: user.id, details: { reason: "revoked" } }]);

      // What the user revokes ends what it opened, as does what the third party's owner removes.
      const third = consent(party, SCOPES);
      const approved = await person.ask<{ redirect_to: string }>("POST", "/oauth/authorize", third.body);
      const third2 = codeForm(approved.data.redirect_to, third.verifier);
      const live = (await bot.ask<SignInJson>("POST", "/oauth/token", third2, headers)).data;
      noteTokens(live.access_token, live.refresh_token);
      await person.change("DELETE", `/me/oauth-grants/${grantId}`, undefined, [
        { action: "grant.revoke", ...own(user), subject: grantId },
        { action: "session.end", ...own(user), details: { reason: "grant_revoked" } },
      ]);
      await person.ask("POST", "/oauth/authorize", consent(party, SCOPES).body);
      await person.change("DELETE", `/me/oauth-clients/${party.id}`, undefined, [
        { action: "client.remove", ...own(user), subject: party.id },
        { action: "grant.revoke", ...own(user) },
      ]);
    },
  ],
  [
    "sign-in at an identity provider: an account, a link, a session",
    async () => {
      const alice = await socialSignIn("alice");
      const { user: made } = alice.answer.data;
      const details = { provider: "one" };
      alice.person.expectLines(alice.answer, [
        { action: "user.create", subject: made.id },
        { action: "user.link_identity", ...own(made), details },
        { action: "session.start", ...own(made), details: expect.objectContaining({ method: "social:one" }) },
      ]);
      const again = await socialSignIn("alice");
      again.person.expectLines(again.answer, [{ action: "session.start", ...own(made) }]);
      // Whoever has registered the address before and never verified it loses it.
      const { session } = await squatter("bob@example.com");
      const { user } = session;
      const bob = await socialSignIn("bob");
      bob.person.expectLines(bob.answer, [
        { action: "user.claim_email", user_id: user.id, subject: user.id },
        { action: "session.end", user_id: user.id, subject: session.id },
        { action: "user.link_identity", ...own(user), subject: user.id, details },
        { action: "session.start", ...own(user) },
      ]);
    },
  ],
  [
    "an address that is claimed, by a sign-in or by a mailed link, from whoever registered it",
    async () => {
      for (const email of ["carol@example.com", freshEmail()]) {
        const { person } = await squatter(email);
        if (email.startsWith("carol")) await socialSignIn("carol");
        else {
          const owner = new Person();
          await owner.ask("POST", "/auth/forgot-password", { email });
          const token = secret("reset token", await resetToken(world.server, email));
          expect((await owner.ask("POST", "/auth/reset-password", { token, password: freshPassword() })).status).toBe(
            200,
          );
        }
        expect((await person.ask("GET", "/me")).code).toBe(40100);
      }
    },
  ],
  [
    "complete sets: split and merged, by whichever token",
    async () => {
      const trader = new Person(tokenOf("trader"));
      const { id } = (await trader.ask<UserJson>("GET", "/me")).data;
      const actor = `user ${id} by pat`;
      const body = { market_id: market.id, quantity: 7 };
      const line = { actor: expect.stringContaining(actor) as string, user_id: id, details: body };
      await trader.change("POST", "/wallet/split", body, [{ action: "wallet.split", ...line }]);
      await trader.change("POST", "/wallet/merge", body, [{ action: "wallet.merge", ...line }]);
      // What is refused has changed nothing.
      for (const [path, quantity, status] of [
        ["/wallet/merge", 1, 422],
        ["/wallet/split", 1_000_000_000, 429],
      ] as const) {
        const answer = await trader.ask("POST", path, { ...body, quantity });
        expect([path, answer.status]).toEqual([path, status]);
        trader.expectLines(answer, []);
      }
      trader.expectLines(await trader.ask("POST", "/wallet/split", { ...body, market_id: 999_999 }), []);
    },
  ],
  [
    "the operator: suspension and keys",
    async () => {
      const { person, session, email } = await newcomer();
      const { user } = session;
      await admin("suspend", email);
      expect((await person.ask("GET", "/me")).code).toBe(40300);
      await admin("restore", email);
      expect(lines("actor = 'admin' AND user_id = ?", user.id)).toMatchObject([
        { action: "user.suspend", subject: user.id },
        { action: "user.restore", subject: user.id },
      ]);
      for (const key of privateParts(world.server.dataDir)) secret("private key", key);
      await admin("keys", "rotate");
      for (const key of privateParts(world.server.dataDir)) secret("private key", key);
      expect(lines("action = 'keys.rotate'")).toMatchObject([{ actor: "admin", user_id: null }]);
    },
  ],
  [
    "trading with every kind of secret in the URL and in headers",
    async () => {
      const trader = new Person(tokenOf("trader"));
      const socket = await Socket.open(world.server, tokenOf("trader"));
      await socket.data("order.place", terms(market, 0, BUY, 4_000, 5));
      await world.client("other").place(terms(market, 1, BUY, 6_000, 5));
      await trader.ask("POST", "/orders", terms(market, 0, SELL, 9_000, 1));
      await socket.close();
      // Wrong in every way that a request with a secret can be.
      const token = secret("unknown token", `pm_pat_${randomBytes(32).toString("base64url")}`);
      await expect(Socket.open(world.server, token)).rejects.toThrow();
      const stranger = new Person(token);
      await stranger.ask("GET", "/me");
      await stranger.ask("GET", "/me", undefined, { Authorization: `Basic ${token}` });
      await stranger.ask("GET", `/markets?token=${token}`);
      await stranger.ask("GET", `/nothing/${token}`);
      await stranger.ask("POST", "/auth/login", `{"email":"x@example.com","password":"${token}`);
      await stranger.ask("POST", "/auth/login", { email: token, password: token });
      await stranger.ask("POST", "/auth/refresh", { refresh_token: token, password: token });
      await stranger.ask("POST", "/auth/verify-email", { token });
      await stranger.ask("POST", "/auth/reset-password", { token, password: secret("password", "1234567890") });
      await stranger.ask("POST", "/oauth/token", `grant_type=refresh_token&refresh_token=${token}`, FORM);
      await stranger.ask("GET", `/auth/social/one/callback?code=${token}&state=${token}`);
    },
  ],
];

/** Somebody who registers an address without ever verifying it. */
async function squatter(email: string): Promise<{ person: Person; session: Session }> {
  const person = new Person();
  const password = freshPassword();
  expect((await person.ask("POST", "/auth/register", { email, password })).status).toBe(201);
  return { person, session: await person.signIn(email, password) };
}

async function socialSignIn(account: string): Promise<{ person: Person; answer: Answer<SignInJson> }> {
  const person = new Person();
  const start = await person.ask("GET", "/auth/social/one");
  const [, cookie] = /^([^;]+)/.exec(start.headers["set-cookie"]![0]!)!;
  secret("browser's binding", cookie!.slice(cookie!.indexOf("=") + 1));
  const back = new URL(await provider.signInAt(start.headers.location!, account));
  secret("provider's code", back.searchParams.get("code")!);
  secret("state", back.searchParams.get("state")!);
  const path = back.pathname.slice(API_BASE.length) + back.search;
  const answer = await person.ask<SignInJson>("GET", path, undefined, { Cookie: cookie! });
  expect([answer.status, answer.msg]).toEqual([200, answer.msg]);
  noteTokens(answer.data.access_token, answer.data.refresh_token);
  return { person, answer };
}

async function admin(...args: string[]): Promise<void> {
  expect(await runAdmin(world.server.dataDir, ...args)).toMatchObject({ code: 0 });
}

/** The private members of the keys in the server's folder. */
function privateParts(dataDir: string): string[] {
  return signingKeys(dataDir).flatMap((jwk) => {
    createPublicKey({ key: { kty: jwk["kty"]!, n: jwk["n"]!, e: jwk["e"]! }, format: "jwk" });
    return ["d", "p", "q", "dp", "dq", "qi"].flatMap((member) => jwk[member] ?? []);
  });
}

const done = new Set<string>();
async function go([name, run]: Flow): Promise<void> {
  if (done.has(name)) return;
  done.add(name);
  await run();
}

describe("every change of money or access is in the log, with who, what, when, request and address", () => {
  for (const flow of FLOWS) test(flow[0], () => go(flow));

  test("what the seed made: users, deposits and tokens", async () => {
    const seeded = lines("actor = 'seed'");
    const ids = ["seeded", "trader", "other"].flatMap((name) => idsIn("users", "email = ?", `${name}@example.com`));
    const deposits = idsIn("entries", "type = 'deposit'");
    const tokens = idsIn("personal_access_tokens", "user_id <= 3");
    const of = (action: string): Line[] => seeded.filter((line) => line.action === action);
    expect(of("user.create").map(({ subject }) => subject)).toEqual(ids);
    expect(of("wallet.deposit").map(({ user_id }) => user_id)).toEqual(ids);
    expect(of("wallet.deposit").map(({ subject }) => subject)).toEqual(deposits);
    for (const { details } of of("wallet.deposit")) expect(details).toMatchObject({ amount: 10_000 * USDC });
    expect(of("pat.create").map(({ user_id }) => user_id)).toEqual(ids);
    expect(of("pat.create").map(({ subject }) => subject)).toEqual(tokens);
    expect(of("user.create").length + of("wallet.deposit").length + of("pat.create").length).toBe(seeded.length);
  });
});

describe("the log", () => {
  test("is numbered without a gap, in the order of time, and whoever is named exists", async () => {
    for (const flow of FLOWS) await go(flow);
    const all = lines("1");
    expect(all.map(({ id }) => id)).toEqual(all.map((_, n) => n + 1));
    const users = new Set(idsIn("users", "1"));
    for (const { id, user_id, actor } of all) {
      if (user_id !== null) expect([id, users.has(user_id)]).toEqual([id, true]);
      expect([id, actor]).toEqual([
        id,
        expect.stringMatching(/^(seed|admin|visitor|(user|oauth client) [1-9]\d*( by (pat|oauth) [1-9]\d*)?)$/),
      ]);
    }
  });

  test("has a line for each thing that the tables say was made or ended", async () => {
    for (const flow of FLOWS) await go(flow);
    const missing: unknown[] = [];
    for (const [action, table, column] of [
      ["user.create", "users", "created_at"],
      ["user.verify_email", "users", "email_verified_at"],
      ["user.verify_phone", "users", "phone_verified_at"],
      ["pat.create", "personal_access_tokens", "created_at"],
      ["pat.revoke", "personal_access_tokens", "revoked_at"],
      ["session.start", "sessions", "created_at"],
      ["session.end", "sessions", "ended_at"],
      ["client.create", "oauth_clients", "created_at"],
      ["client.remove", "oauth_clients", "deleted_at"],
      ["grant.create", "oauth_grants", "created_at"],
      ["grant.revoke", "oauth_grants", "revoked_at"],
      ["identity.apply", "identity_applications", "created_at"],
      ["wallet.deposit", "entries", "created_at"],
    ] as const) {
      // The seed's users are born verified, as is who comes from an identity provider or by a mailed link.
      const among = action.startsWith("user.verify") ? "id > 3 AND password_hash IS NOT NULL" : "1";
      const only = table === "entries" ? "type = 'deposit'" : among;
      const ids = idsIn(table, `${column} IS NOT NULL AND ${only}`);
      // What is over is swept away in time.
      const isSwept = /\.(revoke|remove|end)$/.test(action);
      expect([action, ids.length > 0 || isSwept]).toEqual([action, true]);
      const told = new Set(lines("action = ?", action).map(({ subject }) => subject));
      if (action === "user.verify_email") {
        for (const { subject } of lines("action = 'user.reset_password'")) told.add(subject);
      }
      for (const id of ids) if (!told.has(id)) missing.push(`${action} of ${id}`);
    }
    expect(missing).toEqual([]);
  });

  test("lets nobody change or remove a line", async () => {
    expectRefused([
      "UPDATE audit_log SET action = 'x'",
      "UPDATE audit_log SET details = NULL WHERE id = 1",
      "UPDATE OR REPLACE audit_log SET id = 1 WHERE id = 2",
      "DELETE FROM audit_log",
      "DELETE FROM audit_log WHERE id = 1",
      "INSERT INTO audit_log (id, at, action, actor) VALUES (1, 1, 'x', 'x') ON CONFLICT DO UPDATE SET action = 'x'",
    ]);
  });

  test("lets nobody replace a line", async () => {
    expectRefused([
      "INSERT OR REPLACE INTO audit_log (id, at, action, actor) VALUES (1, 1, 'x', 'x')",
      "REPLACE INTO audit_log (id, at, action, actor) SELECT 1, 1, 'x', 'x'",
    ]);
  });
});

/** Runs each statement as somebody with the database in hand would; nothing of it stays. */
function expectRefused(statements: readonly string[]): void {
  const db = openSqlite(join(world.server.dataDir, "exchange.db"), { timeout: 10_000 });
  const count = (): unknown => db.prepare("SELECT count(*), total(length(action)) FROM audit_log").raw().get();
  const before = count();
  for (const sql of statements) {
    const { error, left } = rolledBack(db, () => {
      try {
        db.exec(sql);
        return { error: "", left: count() };
      } catch (thrown) {
        return { error: (thrown as Error).message, left: count() };
      }
    });
    expect.soft([sql, /append-only|UNIQUE/.test(error), left]).toEqual([sql, true, before]);
  }
  expect(count()).toEqual(before);
  db.close();
}

/** Runs it in a transaction of which nothing stays. */
function rolledBack<T>(db: Database.Database, run: () => T): T {
  let result: T | undefined;
  const undo = new Error("undone");
  try {
    db.transaction(() => {
      result = run();
      throw undo;
    })();
  } catch (error) {
    if (error !== undo) throw error;
  }
  return result!;
}

// The last test: it stops the server.
describe("no secret anywhere", () => {
  test("neither in a log line, on stderr, in the audit log, in the database, nor in any other file of ours", async () => {
    for (const flow of FLOWS) await go(flow);
    const { server } = world;
    const { dataDir } = server;
    await server.stop();
    const log = server.log.map((line) => JSON.stringify(line)).join("\n") + server.errors;
    const db = openReadOnly(join(dataDir, "exchange.db"));
    const columns = textColumns(db);
    const audit = columns
      .filter(({ table }) => table === "audit_log")
      .flatMap(({ values }) => values)
      .join("\n");
    db.close();
    // The search finds what is there: names in the tables and lines in the log.
    expect(log).toContain("shutting down");
    expect(audit).toContain("third party");
    expect(columns.length).toBeGreaterThan(30);
    const kinds = new Set([...secrets.keys()].map((what) => what.replace(/ \d+$/, "")));
    expect(kinds.size).toBeGreaterThan(20);

    const files = filesIn(dataDir).filter((path) => !/^(outbox|keys)\/|^seed\.json$/.test(relative(dataDir, path)));
    const contents = files.map((path) => [relative(dataDir, path), readFileSync(path)] as const);
    expect(contents.map(([name]) => name)).toContain("exchange.db");
    const found: string[] = [];
    for (const [what, text] of secrets) {
      const isCode = what.startsWith("code ") && /^\d{6}$/.test(text);
      // What an operator has to look at to decide. It stays out of the logs.
      const isDocument = what.startsWith("document number");
      const forms = isCode ? [] : spellings(text);
      const isIn = (where: string): boolean =>
        isCode ? new RegExp(`(?<!\\d)${text}(?!\\d)`).test(where) : forms.some((form) => where.includes(form));
      if (isIn(log)) found.push(`${what} in the log`);
      if (isIn(audit)) found.push(`${what} in the audit log`);
      if (isCode || isDocument) continue;
      for (const { table, column, values } of columns) {
        if (values.some((value) => isIn(value))) found.push(`${what} in ${table}.${column}`);
      }
      for (const [name, bytes] of contents) {
        if (forms.some((form) => bytes.includes(form))) found.push(`${what} in the file ${name}`);
      }
    }
    expect(found).toEqual([]);

    // Their hashes are, which is what they are known by.
    const stored = new Set(columns.flatMap(({ values }) => values));
    const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
    for (const [what, text] of secrets) {
      if (/^seeded token \d+$/.test(what)) expect([what, stored.has(sha256(text))]).toEqual([what, true]);
    }
    // Of what is over they are swept away.
    const made = [...secrets].filter(([what]) => /^personal access token \d+$/.test(what));
    expect(made.some(([, text]) => stored.has(sha256(text)))).toBe(true);
    const { values: passwords } = columns.find((each) => each.table === "users" && each.column === "password_hash")!;
    expect(passwords.length).toBeGreaterThan(5);
    for (const phc of passwords) expect(phc).toMatch(/^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$[\w+/]+\$[\w+/]+$/);
  });
});

/** A text as it could be written: itself, in a URL, in base64 of either alphabet, in hexadecimal. */
function spellings(text: string): string[] {
  const bytes = Buffer.from(text);
  const base64 = bytes.toString("base64").replace(/=+$/, "");
  return [...new Set([text, encodeURIComponent(text), base64, bytes.toString("base64url"), bytes.toString("hex")])];
}

function textColumns(db: Database.Database): { table: string; column: string; values: string[] }[] {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  return tables.flatMap((table) => {
    const columns = db.pragma(`table_info(${table})`) as { name: string; type: string }[];
    return columns
      .filter(({ type }) => type === "TEXT" || type === "")
      .map(({ name: column }) => {
        const values = db.prepare(`SELECT ${column} FROM ${table} WHERE ${column} IS NOT NULL`).pluck().all();
        return { table, column, values: values.map(String) };
      });
  });
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.isFile() ? [path] : [];
  });
}
