/**
 * The stage of the OAuth tests: a server, two users who consent, and an owner who registers clients. Handwritten requests
 * and third parties act on it; each test registers its own clients, so that no two tests share a grant. Secrets of all
 * sorts collect here: at the end none is in the log or in the database.
 */
import { expect } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, type Client, type Options } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignedIn } from "../support/identity.ts";
import { CALLBACK, type OAuthClientJson, type OAuthTokensJson, ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, World } from "../support/world.ts";

export const READ = "portfolio:read";
export const WRITE = "orders:write";

export interface GrantJson {
  readonly id: number;
  readonly client_id: string;
  readonly client_name: string;
  readonly scopes: readonly string[];
  readonly created_at: number;
  readonly last_used_at: number | null;
}

/** Like `askOnce`, for the world's current server. */
export const ask = <T = unknown>(
  of: World,
  token: string | null,
  method: string,
  path: string,
  options: Options = {},
): Promise<Answer<T>> => askOnce<T>(of.server, token, method, path, options);

/** Expects an error by its name from RFC 6749, section 5.2, in the standard's format. */
export function expectOAuthError(answer: Answer, error: string, status: number | readonly number[] = 400): void {
  expect([answer.status, answer.msg]).toEqual([expect.toBeOneOf([status].flat()), error]);
  expect(answer.headers["cache-control"]).toBe("no-store");
}

export async function expectDead(party: ThirdParty, tokens: OAuthTokensJson): Promise<void> {
  expect((await ask(party.world, tokens.access_token, "GET", "/me")).code).toBe(40100);
  expectOAuthError(await party.refresh(tokens.refresh_token), "invalid_grant");
}

/** Uses both tokens; returns those that the refresh gave. */
export async function expectAlive(party: ThirdParty, tokens: OAuthTokensJson): Promise<OAuthTokensJson> {
  expect((await ask(party.world, tokens.access_token, "GET", "/me")).code).toBe(0);
  const answer = await party.refresh(tokens.refresh_token);
  expect([answer.status, answer.msg]).toEqual([200, expect.anything()]);
  return answer.data;
}

export const grantsOf = (user: Client): Promise<GrantJson[]> => user.all<GrantJson>("/me/oauth-grants");
export const grantTo = async (user: Client, party: ThirdParty): Promise<GrantJson | undefined> =>
  (await grantsOf(user)).find(({ client_id }) => client_id === party.clientId);

export class OAuthStage {
  readonly world: World;
  readonly alice: SignedIn;
  readonly bob: SignedIn;
  /** Registers the clients. */
  readonly owner: Client;
  private readonly guests: Guests;
  private registered = 0;

  private constructor(world: World, guests: Guests, [alice, bob, owner]: readonly SignedIn[]) {
    this.world = world;
    this.guests = guests;
    this.alice = alice!;
    this.bob = bob!;
    this.owner = owner!.client;
  }

  /** @param more names of further users with a password; `boss` is an operator */
  static async start(more: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<OAuthStage> {
    const password = PASSWORD;
    const people = more.map((name) => {
      return [name, name === "boss" ? { password, role: "operator" as const } : { password }] as const;
    });
    const named = {
      ...{ alice: { password, scopes: [ALL_SCOPES] }, bob: { password }, owner: { password } },
      ...Object.fromEntries(people),
    };
    const world = await World.start({ users: 1, named, markets: [2, 2], env: { LOG_LEVEL: "trace", ...env } });
    const guests = new Guests();
    const signedIn: SignedIn[] = [];
    for (const name of ["alice", "bob", "owner"]) {
      signedIn.push(await guests.signIn(world.server, `${name}@example.com`));
    }
    return new OAuthStage(world, guests, signedIn);
  }

  /** Must appear in no log and in no database. */
  get secrets(): Set<string> {
    return this.guests.secrets;
  }

  signInAs(name: string): Promise<SignedIn> {
    return this.guests.signIn(this.world.server, `${name}@example.com`);
  }

  /** A fresh client of the owner. */
  async register(confidential = false, redirectUri = CALLBACK): Promise<ThirdParty> {
    // An owner may have fifty clients: remove those of finished tests.
    if (++this.registered % 30 === 0) {
      const older = (await this.owner.all<OAuthClientJson>("/me/oauth-clients")).slice(10);
      for (const { id } of older) await this.owner.data("DELETE", `/me/oauth-clients/${id}`);
    }
    return this.registerFor(this.owner, confidential, redirectUri);
  }

  /** @param user a session's client */
  registerFor(user: Client, confidential = false, redirectUri = CALLBACK): Promise<ThirdParty> {
    return ThirdParty.register(this.world, user, { confidential, redirectUri, secrets: this.secrets });
  }

  expectUnlogged(): void {
    expectUnlogged(this.secrets, this.world.server);
  }

  async stop(): Promise<void> {
    this.guests.close();
    await expectEndsWell(this.world);
    this.expectUnlogged();
    expectUnkept(this.secrets, this.world.server.dataDir);
  }
}
