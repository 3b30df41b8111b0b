/**
 * Identity providers for an exchange under test, and a browser that signs in to the exchange there. The browser records
 * codes, states, cookies and tokens.
 */
import { expect } from "vitest";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import type { Guests, SignInJson } from "../support/identity.ts";
import { type TestAccount, TestProvider } from "../support/oidc-provider.ts";
import type { World } from "../support/world.ts";

/** The server's public address. In production a TLS proxy stands in front of it. */
const PUBLIC_URL = "https://exchange.test";

const NAMES = ["one", "local", "other", "mortal"] as const;
export const REDIRECT_URIS = NAMES.map((name) => `${PUBLIC_URL}${API_BASE}/auth/social/${name}/callback`);

/** By the name under which the exchange offers them; `one` and `local` are the same, and a test may close `mortal`. */
export type Providers = Readonly<Record<(typeof NAMES)[number], TestProvider>>;

type TestAccounts = Readonly<Record<string, TestAccount>>;

/** Starts the providers. The accounts may change while they run. */
export async function startProviders(people: TestAccounts, others: TestAccounts): Promise<Providers> {
  const [one, other, mortal] = await Promise.all(
    [people, others, people].map((accounts) => TestProvider.start(REDIRECT_URIS, 0, accounts)),
  );
  return { one: one!, local: one!, other: other!, mortal: mortal! };
}

const settingsOf = ({ issuer, clientId, clientSecret }: TestProvider) => {
  return { issuer, client_id: clientId, client_secret: clientSecret };
};

/** Returns the environment of an exchange that offers the providers, and one more, `gone`, which never runs. */
export function environmentOf({ one, other, mortal }: Providers): Record<string, string> {
  const offered = {
    one: settingsOf(one),
    local: { ...settingsOf(one), jurisdictions: ["DE", "FR"] },
    other: settingsOf(other),
    mortal: settingsOf(mortal),
    // No server listens on this port.
    gone: { issuer: "http://127.0.0.1:1", client_id: "x", client_secret: "y" },
  };
  return { PUBLIC_URL, LOG_LEVEL: "trace", SOCIAL_PROVIDERS: JSON.stringify(offered) };
}

/** Where browsers go. */
interface BrowserPlace {
  readonly world: World;
  readonly providers: Providers;
  readonly guests: Guests;
}

/** Stores the server's cookies, and follows redirects. */
export class Browser {
  readonly cookies = new Map<string, string>();
  private readonly place: BrowserPlace;

  constructor(place: BrowserPlace) {
    this.place = place;
  }

  /** Goes to the provider's page. */
  async start(name = "one", query = ""): Promise<Answer & { location: string }> {
    const answer = await this.client().request("GET", `/auth/social/${name}${query}`);
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [, cookie, value] = /^([^=]+)=([^;]+)/.exec(line)!;
      this.cookies.set(cookie!, value!);
      this.place.guests.secrets.add(value!);
    }
    const { location = "" } = answer.headers;
    if (location !== "") this.place.guests.secrets.add(new URL(location).searchParams.get("state")!);
    return { ...answer, location };
  }

  /** Goes through the provider's pages and returns the callback's address. */
  async signInAt(account: string | null, name: keyof Providers = "one", query = ""): Promise<string> {
    const { location, code, msg } = await this.start(name, query);
    if (location === "") throw new Error(`${code} ${msg}`);
    const back = await this.place.providers[name].signInAt(location, account);
    const given = new URL(back).searchParams.get("code");
    if (given !== null) this.place.guests.secrets.add(given);
    return back;
  }

  /** Returns from the provider to the server. */
  async finish(callback: string): Promise<Answer<SignInJson>> {
    const { origin, pathname, search } = new URL(callback);
    expect(origin).toBe(PUBLIC_URL);
    const headers: Record<string, string> = { "User-Agent": "a browser" };
    if (this.cookies.size > 0) headers["Cookie"] = [...this.cookies].map((pair) => pair.join("=")).join("; ");
    const path = pathname.slice(API_BASE.length) + search;
    const answer = await this.client().request<SignInJson>("GET", path, { headers });
    if (answer.code === 0)
      for (const token of [answer.data.access_token, answer.data.refresh_token]) this.place.guests.secrets.add(token);
    return answer;
  }

  private client(): Client {
    return this.place.guests.client(this.place.world.server, null);
  }
}
