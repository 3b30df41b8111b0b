/**
 * A real OpenID provider on a loopback port, and a browser that signs in there. Knows its accounts and one client,
 * and requires no password: the browser names the account in a header, and every account consents.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import type { Configuration, KoaContextWithOIDC, Provider } from "oidc-provider";

export interface TestAccount {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
}

/** By subject, which is what `signInAt` takes. */
type TestAccounts = Readonly<Record<string, TestAccount>>;

const TEST_ACCOUNTS: TestAccounts = {
  alice: { sub: "alice", email: "Alice@Example.com", email_verified: true },
  bob: { sub: "bob", email: "bob@example.com", email_verified: true },
  unverified: { sub: "unverified", email: "unverified@example.com", email_verified: false },
  mailless: { sub: "mailless" },
};

const CLIENT_ID = "exchange";
/** Of the browser to this provider's sign-in page. */
const ACCOUNT_HEADER = "x-test-account";
/** Of whatever the provider issues. */
const TTL_S = 600;
const MAX_REDIRECTS = 10;

/** One browser's cookies, by name only: the provider sets none twice. */
class CookieJar {
  private readonly cookies = new Map<string, string>();

  header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  store(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [, name, value, attributes] = /^([^=]+)=([^;]*)(.*)$/.exec(line)!;
      const expires = /; *expires=([^;]+)/i.exec(attributes!)?.[1];
      if (expires !== undefined && Date.parse(expires) <= Date.now()) this.cookies.delete(name!);
      else this.cookies.set(name!, value!);
    }
  }
}

export class TestProvider {
  readonly issuer: string;
  readonly clientId = CLIENT_ID;
  readonly clientSecret: string;
  private readonly server: Server;
  private readonly redirectUris: readonly string[];

  private constructor(server: Server, issuer: string, clientSecret: string, redirectUris: readonly string[]) {
    this.server = server;
    this.issuer = issuer;
    this.clientSecret = clientSecret;
    this.redirectUris = redirectUris;
  }

  /**
   * @param port 0 for a free one
   * @param accounts read at each sign-in, so they may change in between
   */
  static async start(redirectUris: readonly string[], port = 0, accounts = TEST_ACCOUNTS): Promise<TestProvider> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clientSecret = randomBytes(24).toString("base64url");
    const provider = await createProvider(issuer, clientSecret, redirectUris, accounts);
    const answer = provider.callback();
    server.on("request", (request, response) => {
      if (request.url?.startsWith("/interaction/") === true) void signIn(provider, accounts, request, response);
      else void answer(request, response);
    });
    return new TestProvider(server, issuer, clientSecret, redirectUris);
  }

  get port(): number {
    return Number(new URL(this.issuer).port);
  }

  /**
   * Goes through the provider's pages in a fresh browser.
   * @param account a subject; null refuses to sign in
   * @returns the callback's URL, with code and state or the error
   */
  async signInAt(authorizationUrl: string, account: string | null): Promise<string> {
    const jar = new CookieJar();
    let url = authorizationUrl;
    for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
      const headers = { cookie: jar.header(), [ACCOUNT_HEADER]: account ?? "" };
      const response = await fetch(url, { redirect: "manual", headers });
      const text = await response.text();
      const location = response.headers.get("location");
      if (location === null) throw new Error(`the provider answered ${response.status}: ${text}`);
      jar.store(response);
      url = new URL(location, url).href;
      if (this.redirectUris.some((redirectUri) => url.startsWith(`${redirectUri}?`))) return url;
    }
    throw new Error(`${MAX_REDIRECTS} redirects and no callback`);
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

async function signIn(
  provider: Provider,
  accounts: TestAccounts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const account = request.headers[ACCOUNT_HEADER];
  const isKnown = typeof account === "string" && Object.hasOwn(accounts, account);
  const result = isKnown ? { login: { accountId: account } } : { error: "access_denied" };
  await provider.interactionFinished(request, response, result);
}

async function createProvider(
  issuer: string,
  clientSecret: string,
  redirectUris: readonly string[],
  accounts: TestAccounts,
) {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const configuration: Configuration = {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
        redirect_uris: [...redirectUris],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: "test" }] },
    cookies: { keys: [randomBytes(24).toString("base64url")] },
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    ttl: { Interaction: TTL_S, Grant: TTL_S, Session: TTL_S, AccessToken: TTL_S, IdToken: TTL_S },
    pkce: { required: () => true },
    findAccount: (_context, sub) => {
      const account = accounts[sub];
      return account && { accountId: sub, claims: () => ({ ...account }) };
    },
    loadExistingGrant: grantAll,
  };
  return withQuietConsole(async () => {
    const { Provider } = await import("oidc-provider");
    return new Provider(issuer, configuration);
  });
}

/** Consents to every request. */
async function grantAll({ oidc }: KoaContextWithOIDC) {
  const grant = new oidc.provider.Grant({ accountId: oidc.account!.accountId, clientId: oidc.client!.clientId });
  grant.addOIDCScope([...oidc.requestParamOIDCScopes].join(" "));
  await grant.save();
  return grant;
}

/** Hides the provider's warnings about older versions of Node, on which it works, and about its store in memory. */
async function withQuietConsole<T>(work: () => Promise<T>): Promise<T> {
  const { info, warn } = console;
  console.info = console.warn = () => {};
  try {
    return await work();
  } finally {
    Object.assign(console, { info, warn });
  }
}
