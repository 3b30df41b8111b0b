/**
 * What people, bots, third parties and operators do that the audit log records: one flow for each part of the API. Each
 * flow expects its own lines and notes the secrets that it uses.
 */
import { createPublicKey, randomBytes } from "node:crypto";
import { expect } from "vitest";
import { signingKeys } from "../support/data-dir.ts";
import {
  freshEmail,
  messagesTo,
  phoneCode,
  resetToken,
  type SignInJson,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
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
import { tokenOf } from "../support/world.ts";
import { type AuditedWorld, type Line, own, type Person, type Session } from "./audited-world.ts";

const SCOPES = ["orders:write", "portfolio:read"];

async function pat(person: Person, { user }: Session, name = "bot"): Promise<{ id: number; token: string }> {
  const line = { action: "pat.create", ...own(user), details: { scopes: SCOPES, expires_at: null } };
  const body = { name, scopes: SCOPES };
  const made = await person.change<{ id: number; token: string }>("POST", "/me/personal-access-tokens", body, [line]);
  const { id, token } = made;
  expect(person.stage.lines("action = 'pat.create' AND subject = ?", id)).toHaveLength(1);
  person.stage.secret("personal access token", token);
  person.stage.secret("personal access token without its beginning", token.slice(-40));
  return { id, token };
}

type ThirdParty = OAuthClientJson & { readonly client_secret: string };

async function thirdParty(person: Person, { user }: Session): Promise<ThirdParty> {
  const body = { name: "third party", redirect_uris: [CALLBACK], confidential: true };
  const line = { action: "client.create", ...own(user), details: expect.objectContaining({ name: "third party" }) };
  const made = await person.change<ThirdParty>("POST", "/me/oauth-clients", body, [line]);
  expect(person.stage.lines("action = 'client.create' AND subject = ?", made.id)).toHaveLength(1);
  person.stage.secret("client secret", made.client_secret);
  person.stage.secret(
    "client's Authorization header",
    basic(made.client_id, made.client_secret).Authorization.slice(6),
  );
  return made;
}

/** The consent page's request and its verifier. */
function consent(
  stage: AuditedWorld,
  party: ThirdParty,
  scopes: readonly string[],
): { body: object; verifier: string } {
  const { params, verifier } = authorizationRequest(party.client_id, scopes.join(" "));
  stage.secret("code verifier", verifier);
  return { body: { ...params, decision: "approve" }, verifier };
}

/** The form that redeems the code of a redirect. */
function codeForm(stage: AuditedWorld, redirectTo: string, verifier: string): string {
  const code = stage.secret("authorization code", codeIn(redirectTo));
  return new URLSearchParams(redemption({ code, verifier })).toString();
}

export type Flow = readonly [name: string, run: (stage: AuditedWorld) => Promise<void>];

/** Each goes through one part of the API, and expects its lines of the audit log. */
export const FLOWS: readonly Flow[] = [
  [
    "registration, verified e-mail, sign-in and sign-out",
    async (stage) => {
      const visitor = stage.person();
      const [email, password] = [freshEmail(), stage.freshPassword()];
      const registered = { action: "user.create", actor: "visitor" };
      const user = await visitor.change<UserJson>("POST", "/auth/register", { email, password }, [registered]);
      expect(stage.lines("action = 'user.create' AND subject = ?", user.id)).toHaveLength(1);
      const token = stage.secret("verification token", await verificationToken(stage.world.server, email));
      const verified = { action: "user.verify_email", ...own(user), subject: user.id };
      await visitor.change("POST", "/auth/verify-email", { token, password }, [verified]);
      const wrong = stage.secret("wrong password", "not the password of anybody");
      for (const tried of [wrong, `${password} `]) {
        visitor.expectLines(await visitor.ask("POST", "/auth/login", { email, password: tried }), []);
      }
      const { id } = await visitor.signIn(email, password);
      const out = { action: "session.end", ...own(user), subject: id, details: { reason: "logout" } };
      await visitor.change("POST", "/auth/logout", undefined, [out]);
      // A request that changes nothing leaves no line.
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
    "phone and identity: tier 1, and the operator's decision on tier 2",
    async (stage) => {
      const { person, session, email } = await stage.newcomer(false);
      const { user } = session;
      const token = stage.secret("verification token", await verificationToken(stage.world.server, email));
      await person.change("POST", "/auth/verify-email", { token }, [{ action: "user.verify_email", ...own(user) }]);
      const phone = "+14155552671";
      const before = messagesTo(stage.world.server, phone).length;
      const set = { action: "user.set_phone", ...own(user), subject: user.id };
      await person.change("POST", "/me/phone", { phone }, [set]);
      const code = stage.secret("code", await phoneCode(stage.world.server, phone, before + 1));
      const wrong = code === "000000" ? "000001" : "000000";
      person.expectLines(await person.ask("POST", "/me/phone/verify", { code: wrong }), []);
      const verified = { action: "user.verify_phone", ...own(user), subject: user.id };
      await person.change("POST", "/me/phone/verify", { code }, [verified]);
      const number = stage.secret("document number", `X${randomBytes(6).toString("hex").toUpperCase()}`);
      const body = { document_type: "passport", document_number: number, country: "DE" };
      const details = { document_type: "passport", country: "DE" };
      const applied = { action: "identity.apply", ...own(user), details };
      const { id } = await person.change<{ id: number }>("POST", "/me/identity", body, [applied]);
      expect(stage.lines("action = 'identity.apply' AND subject = ?", id)).toHaveLength(1);
      await stage.admin("identity", "approve", email);
      const decided = stage.lines("action LIKE 'identity.%' AND user_id = ? AND actor = 'admin'", user.id);
      expect(decided).toMatchObject([{ action: "identity.approve" }]);
      expect((await person.ask<UserJson>("GET", "/me")).data.kyc_tier).toBe(2);
    },
  ],
  [
    "passwords: changed, forgotten and reset",
    async (stage) => {
      const { person, session, email, password } = await stage.newcomer();
      const { user } = session;
      const second = await stage.person().signIn(email, password);
      const next = stage.freshPassword();
      const wrong = stage.secret("wrong password", "neither the old nor the new one");
      person.expectLines(await person.ask("POST", "/me/password", { current: wrong, new: next }), []);
      const ended = (id: number, reason: string): Partial<Line> & { action: string; actor: string } => {
        return { action: "session.end", ...own(user), subject: id, details: { reason } };
      };
      await person.change("POST", "/me/password", { current: password, new: next }, [
        { action: "user.change_password", ...own(user), subject: user.id },
        ended(second.id, "password_changed"),
      ]);
      person.expectLines(await person.ask("POST", "/auth/forgot-password", { email }), []);
      const token = stage.secret("reset token", await resetToken(stage.world.server, email));
      const visitor = stage.person();
      const last = stage.freshPassword();
      await visitor.change("POST", "/auth/reset-password", { token, password: last }, [
        { action: "user.reset_password", ...own(user), subject: user.id },
        ended(session.id, "password_reset"),
      ]);
      await visitor.signIn(email, last);
    },
  ],
  [
    "refresh tokens: the reuse of one ends its session",
    async (stage) => {
      const { person, session } = await stage.newcomer();
      const { user, refreshToken } = session;
      const visitor = stage.person();
      const refreshed = await visitor.ask<SignInJson>("POST", "/auth/refresh", { refresh_token: refreshToken });
      stage.noteTokens(refreshed.data.access_token, refreshed.data.refresh_token);
      const reuse = await visitor.ask("POST", "/auth/refresh", { refresh_token: refreshToken });
      expect(reuse.status).toBe(401);
      const details = { reason: "refresh_token_reused" };
      visitor.expectLines(reuse, [{ action: "session.end", user_id: user.id, subject: session.id, details }]);
      expect((await person.ask("GET", "/me")).code).toBe(40100);
    },
  ],
  [
    "sessions: a user ends one from another",
    async (stage) => {
      const { person, session, email, password } = await stage.newcomer();
      const second = await stage.person().signIn(email, password);
      const { user } = session;
      const details = { reason: "ended_by_user" };
      const line = { action: "session.end", ...own(user), subject: second.id, details };
      await person.change("DELETE", `/me/sessions/${second.id}`, undefined, [line]);
      person.expectLines(await person.ask("DELETE", `/me/sessions/${second.id}`), []);
    },
  ],
  [
    "personal access tokens: created, and revoked by their owner only",
    async (stage) => {
      const { person, session } = await stage.newcomer();
      const { user } = session;
      const { id, token } = await pat(person, session);
      const bot = stage.person(token);
      expect((await bot.ask("GET", "/wallet/balance")).status).toBe(200);
      bot.expectLines(await bot.ask("GET", "/me"), []);
      const stranger = await stage.newcomer();
      const path = `/me/personal-access-tokens/${id}`;
      stranger.person.expectLines(await stranger.person.ask("DELETE", path), []);
      await person.change("DELETE", path, undefined, [{ action: "pat.revoke", ...own(user), subject: id }]);
      person.expectLines(await person.ask("DELETE", path), []);
    },
  ],
  [
    "third parties: clients, grants, codes, tokens, and their end",
    async (stage) => {
      const { person, session } = await stage.newcomer();
      const { user } = session;
      const party = await thirdParty(person, session);
      const bot = stage.person();
      const actor = `oauth client ${party.id}`;

      const asked = consent(stage, party, ["portfolio:read"]);
      const given = { action: "grant.create", ...own(user) };
      const first = await person.change<{ redirect_to: string }>("POST", "/oauth/authorize", asked.body, [given]);
      const grants = await person.ask<{ items: { id: number }[] }>("GET", "/me/oauth-grants");
      const grantId = grants.data.items[0]!.id;
      expect(stage.lines("action = 'grant.create' AND subject = ?", grantId)).toHaveLength(1);
      const form = codeForm(stage, first.redirect_to, asked.verifier);
      const headers = { ...FORM, ...basic(party.client_id, party.client_secret) };
      const opened = await bot.ask<SignInJson>("POST", "/oauth/token", form, headers);
      expect(opened.status).toBe(200);
      stage.noteTokens(opened.data.access_token, opened.data.refresh_token);
      const [started] = bot.expectLines(opened, [{ action: "session.start", actor, user_id: user.id }]);
      expect(started!.details).toMatchObject({ method: "authorization_code", scopes: "portfolio:read" });

      // A second use of the code revokes the tokens of the first.
      const again = await bot.ask("POST", "/oauth/token", form, headers);
      expect(again.status).toBe(400);
      const reused = { subject: started!.subject, details: { reason: "authorization_code_reused" } };
      bot.expectLines(again, [{ action: "session.end", actor, user_id: user.id, ...reused }]);

      // More scopes extend the grant.
      const more = consent(stage, party, SCOPES);
      const extended = { action: "grant.extend", ...own(user), subject: grantId };
      const next = await person.change<{ redirect_to: string }>("POST", "/oauth/authorize", more.body, [extended]);
      const second = codeForm(stage, next.redirect_to, more.verifier);
      const tokens = (await bot.ask<SignInJson>("POST", "/oauth/token", second, headers)).data;
      stage.noteTokens(tokens.access_token, tokens.refresh_token);
      const renew = new URLSearchParams({
        grant_type: "refresh_token",
        refresh_token: tokens.refresh_token,
      }).toString();
      const renewed = (await bot.ask<SignInJson>("POST", "/oauth/token", renew, headers)).data;
      stage.noteTokens(renewed.access_token, renewed.refresh_token);
      await bot.ask("POST", "/oauth/introspect", `token=${renewed.access_token}`, headers);
      const revoked = await bot.ask("POST", "/oauth/revoke", `token=${renewed.refresh_token}`, headers);
      expect(revoked.status).toBe(200);
      bot.expectLines(revoked, [{ action: "session.end", actor, user_id: user.id, details: { reason: "revoked" } }]);

      // A revoked grant ends its sessions, as does the removal of the client.
      const third = consent(stage, party, SCOPES);
      const approved = await person.ask<{ redirect_to: string }>("POST", "/oauth/authorize", third.body);
      const third2 = codeForm(stage, approved.data.redirect_to, third.verifier);
      const live = (await bot.ask<SignInJson>("POST", "/oauth/token", third2, headers)).data;
      stage.noteTokens(live.access_token, live.refresh_token);
      await person.change("DELETE", `/me/oauth-grants/${grantId}`, undefined, [
        { action: "grant.revoke", ...own(user), subject: grantId },
        { action: "session.end", ...own(user), details: { reason: "grant_revoked" } },
      ]);
      await person.ask("POST", "/oauth/authorize", consent(stage, party, SCOPES).body);
      await person.change("DELETE", `/me/oauth-clients/${party.id}`, undefined, [
        { action: "client.remove", ...own(user), subject: party.id },
        { action: "grant.revoke", ...own(user) },
      ]);
    },
  ],
  [
    "sign-in at an identity provider: an account, a link, a session",
    async (stage) => {
      const alice = await stage.socialSignIn("alice");
      const { user: made } = alice.answer.data;
      const details = { provider: "one" };
      alice.person.expectLines(alice.answer, [
        { action: "user.create", subject: made.id },
        { action: "user.link_identity", ...own(made), details },
        { action: "session.start", ...own(made), details: expect.objectContaining({ method: "social:one" }) },
      ]);
      const again = await stage.socialSignIn("alice");
      again.person.expectLines(again.answer, [{ action: "session.start", ...own(made) }]);
      // Somebody who registered the address and never verified it loses it.
      const { session } = await stage.squatter("bob@example.com");
      const { user } = session;
      const bob = await stage.socialSignIn("bob");
      bob.person.expectLines(bob.answer, [
        { action: "user.claim_email", user_id: user.id, subject: user.id },
        { action: "session.end", user_id: user.id, subject: session.id },
        { action: "user.link_identity", ...own(user), subject: user.id, details },
        { action: "session.start", ...own(user) },
      ]);
    },
  ],
  [
    "an unverified address: its owner claims it by a sign-in or by a mailed link",
    async (stage) => {
      for (const email of ["carol@example.com", freshEmail()]) {
        const { person } = await stage.squatter(email);
        if (email.startsWith("carol")) await stage.socialSignIn("carol");
        else {
          const owner = stage.person();
          await owner.ask("POST", "/auth/forgot-password", { email });
          const token = stage.secret("reset token", await resetToken(stage.world.server, email));
          expect(
            (await owner.ask("POST", "/auth/reset-password", { token, password: stage.freshPassword() })).status,
          ).toBe(200);
        }
        expect((await person.ask("GET", "/me")).code).toBe(40100);
      }
    },
  ],
  [
    "complete sets: split and merged with a personal access token",
    async (stage) => {
      const trader = stage.person(tokenOf("trader"));
      const { id } = (await trader.ask<UserJson>("GET", "/me")).data;
      const actor = `user ${id} by pat`;
      const body = { market_id: stage.market.id, quantity: 7 };
      const line = { actor: expect.stringContaining(actor) as string, user_id: id, details: body };
      await trader.change("POST", "/wallet/split", body, [{ action: "wallet.split", ...line }]);
      await trader.change("POST", "/wallet/merge", body, [{ action: "wallet.merge", ...line }]);
      // A rejected request leaves no line.
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
    async (stage) => {
      const { person, session, email } = await stage.newcomer();
      const { user } = session;
      await stage.admin("suspend", email);
      expect((await person.ask("GET", "/me")).code).toBe(40300);
      await stage.admin("restore", email);
      expect(stage.lines("actor = 'admin' AND user_id = ?", user.id)).toMatchObject([
        { action: "session.end", details: { reason: "account_suspended" } },
        { action: "user.suspend", subject: user.id },
        { action: "user.restore", subject: user.id, details: { note: null, tokens: "revoke" } },
      ]);
      for (const key of privateParts(stage.world.server.dataDir)) stage.secret("private key", key);
      await stage.admin("keys", "rotate");
      for (const key of privateParts(stage.world.server.dataDir)) stage.secret("private key", key);
      expect(stage.lines("action = 'keys.rotate'")).toMatchObject([{ actor: "admin", user_id: null }]);
    },
  ],
  [
    "requests with secrets in the URL, in headers and in invalid bodies",
    async (stage) => {
      const trader = stage.person(tokenOf("trader"));
      const socket = await Socket.open(stage.world.server, tokenOf("trader"));
      await socket.data("order.place", terms(stage.market, 0, BUY, 4_000, 5));
      await stage.world.client("other").place(terms(stage.market, 1, BUY, 6_000, 5));
      await trader.ask("POST", "/orders", terms(stage.market, 0, SELL, 9_000, 1));
      await socket.close();
      // Every kind of faulty request with a secret.
      const token = stage.secret("unknown token", `pm_pat_${randomBytes(32).toString("base64url")}`);
      await expect(Socket.open(stage.world.server, token)).rejects.toThrow();
      const stranger = stage.person(token);
      await stranger.ask("GET", "/me");
      await stranger.ask("GET", "/me", undefined, { Authorization: `Basic ${token}` });
      await stranger.ask("GET", `/markets?token=${token}`);
      await stranger.ask("GET", `/nothing/${token}`);
      await stranger.ask("POST", "/auth/login", `{"email":"x@example.com","password":"${token}`);
      await stranger.ask("POST", "/auth/login", { email: token, password: token });
      await stranger.ask("POST", "/auth/refresh", { refresh_token: token, password: token });
      await stranger.ask("POST", "/auth/verify-email", { token });
      await stranger.ask("POST", "/auth/reset-password", { token, password: stage.secret("password", "1234567890") });
      await stranger.ask("POST", "/oauth/token", `grant_type=refresh_token&refresh_token=${token}`, FORM);
      await stranger.ask("GET", `/auth/social/one/callback?code=${token}&state=${token}`);
    },
  ],
];

/** The private members of the keys in the server's folder. */
function privateParts(dataDir: string): string[] {
  return signingKeys(dataDir).flatMap((jwk) => {
    createPublicKey({ key: { kty: jwk["kty"]!, n: jwk["n"]!, e: jwk["e"]! }, format: "jwk" });
    return ["d", "p", "q", "dp", "dq", "qi"].flatMap((member) => jwk[member] ?? []);
  });
}
