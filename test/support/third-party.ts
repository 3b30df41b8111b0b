/**
 * A registered OAuth client that acts as its own server or app would: the authorization request, the user's consent,
 * codes and tokens, one step at a time or all together. It sends any input, valid or not, and judges no response.
 */
import { createHash, randomBytes } from "node:crypto";
import { type Answer, askOnce, type Client } from "./client.ts";
import type { World } from "./world.ts";

export const CALLBACK = "https://client.example/callback";
export const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const READ = "portfolio:read";

/** Changes of parameters; null removes one. */
export type Changes = Readonly<Record<string, string | null>>;
export type Params = Readonly<Record<string, string>>;

export interface OAuthTokensJson {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
}

export interface OAuthClientJson {
  readonly id: number;
  readonly client_id: string;
  readonly name: string;
  readonly redirect_uris: readonly string[];
  readonly confidential: boolean;
}

/** The code that the browser brought back, and the verifier that redeems it. */
export interface Code {
  readonly code: string;
  readonly verifier: string;
}

export interface ThirdPartyOptions {
  /** Has a secret. */
  readonly confidential?: boolean;
  readonly redirectUri?: string;
  /** Notes the client's secret, verifiers, codes and tokens here. */
  readonly secrets?: Set<string>;
}

export function changed(params: Params, changes: Changes): Record<string, string> {
  const all = Object.entries({ ...params, ...changes });
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null));
}

export const basic = (id: string, secret: string): { Authorization: string } => ({
  Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
});

/** A valid authorization request and its verifier. */
export function authorizationRequest(
  clientId: string,
  scope: string,
  redirectUri = CALLBACK,
): { params: Params; verifier: string } {
  const verifier = randomBytes(32).toString("base64url");
  const params = {
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: "code",
    scope,
    state: randomBytes(8).toString("hex"),
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  };
  return { params, verifier };
}

/** The consent page's request after the user's decision. */
export const decide = (user: Client, params: Params, decision = "approve"): Promise<Answer<{ redirect_to: string }>> =>
  user.request("POST", "/oauth/authorize", { body: { ...params, decision } });

/** The code in the redirect. @throws Error if there is none */
export function codeIn(redirectTo: string): string {
  const code = new URL(redirectTo).searchParams.get("code");
  if (code === null) throw new Error(`no code in ${redirectTo}`);
  return code;
}

/** The token endpoint's fields that redeem a code, without those that identify the client. */
export function redemption({ code, verifier }: Code, redirectUri = CALLBACK): Params {
  return { grant_type: "authorization_code", code, redirect_uri: redirectUri, code_verifier: verifier };
}

/** Posts a form as a third party does. */
export function postForm<T = Record<string, unknown>>(
  world: World,
  path: string,
  fields: Params | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer<T>> {
  const body = typeof fields === "string" ? fields : new URLSearchParams(fields).toString();
  return askOnce(world.server, null, "POST", path, { body, headers: { ...FORM, ...headers } });
}

export class ThirdParty {
  /** Its server may be restarted. */
  readonly world: World;
  readonly id: number;
  readonly clientId: string;
  readonly secret: string | null;
  readonly redirectUri: string;
  private readonly secrets: Set<string>;

  private constructor(world: World, row: OAuthClientJson & { client_secret: string | null }, secrets: Set<string>) {
    this.world = world;
    this.id = row.id;
    this.clientId = row.client_id;
    this.secret = row.client_secret;
    this.redirectUri = row.redirect_uris[0]!;
    this.secrets = secrets;
    if (this.secret !== null) secrets.add(this.secret);
  }

  /** @param owner a session's client */
  static async register(world: World, owner: Client, options: ThirdPartyOptions = {}): Promise<ThirdParty> {
    const { confidential = false, redirectUri = CALLBACK, secrets = new Set() } = options;
    const body = { name: "A third party", redirect_uris: [redirectUri], confidential };
    return new ThirdParty(world, await owner.data("POST", "/me/oauth-clients", body), secrets);
  }

  /** The form's fields that identify the client. */
  get credentials(): Params {
    return this.secret === null
      ? { client_id: this.clientId }
      : { client_id: this.clientId, client_secret: this.secret };
  }

  request(scope = READ): { params: Params; verifier: string } {
    const { params, verifier } = authorizationRequest(this.clientId, scope, this.redirectUri);
    this.secrets.add(verifier);
    return { params, verifier };
  }

  /** The user approves on the consent page. */
  async consent(user: Client, scope = READ): Promise<Code> {
    const { params, verifier } = this.request(scope);
    const { code: status, msg, data } = await decide(user, params);
    if (status !== 0) throw new Error(`consent: ${status} ${msg}`);
    const code = codeIn(data.redirect_to);
    this.secrets.add(code);
    return { code, verifier };
  }

  exchange(code: Code, changes: Changes = {}, headers: Params = {}): Promise<Answer<OAuthTokensJson>> {
    return this.askForTokens(changed({ ...this.credentials, ...redemption(code, this.redirectUri) }, changes), headers);
  }

  refresh(token: string, changes: Changes = {}): Promise<Answer<OAuthTokensJson>> {
    const fields = { ...this.credentials, grant_type: "refresh_token", refresh_token: token };
    return this.askForTokens(changed(fields, changes));
  }

  /** The whole flow. @throws Error unless it ends with tokens */
  async tokens(user: Client, scope = READ): Promise<OAuthTokensJson> {
    const { status, msg, data } = await this.exchange(await this.consent(user, scope));
    if (status !== 200) throw new Error(`token endpoint: ${status} ${msg}`);
    return data;
  }

  revoke(token: string, changes: Changes = {}): Promise<Answer> {
    return postForm(this.world, "/oauth/revoke", changed({ ...this.credentials, token }, changes));
  }

  introspect(token: string, changes: Changes = {}): Promise<Answer<Record<string, unknown>>> {
    return postForm(this.world, "/oauth/introspect", changed({ ...this.credentials, token }, changes));
  }

  private async askForTokens(fields: Params, headers: Params = {}): Promise<Answer<OAuthTokensJson>> {
    const answer = await postForm<OAuthTokensJson>(this.world, "/oauth/token", fields, headers);
    if (answer.status === 200) this.secrets.add(answer.data.access_token).add(answer.data.refresh_token);
    return answer;
  }
}
