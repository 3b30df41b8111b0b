/** The actions of a token's owner, and the tokens that they make, for the tests of personal access tokens. */
import type { Static } from "typebox";
import type { Pat } from "../../server/accounts/schemas.ts";
import type { Answer, Client } from "../support/client.ts";
import { type CreatedPatJson, createPat, type Guests } from "../support/identity.ts";
import type { World } from "../support/world.ts";

export type PatJson = Static<typeof Pat>;

export const PATH = "/me/personal-access-tokens";

export const tryMake = (session: Client, body: object): Promise<Answer<CreatedPatJson>> =>
  session.request("POST", PATH, { body: { name: "bot", scopes: ["orders:write"], ...body } });
export const list = (session: Client, limit = 200): Promise<PatJson[]> => session.all(PATH, limit);
export const revoke = (session: Client, id: unknown): Promise<Answer> => session.request("DELETE", `${PATH}/${id}`);
export const recordOf = async (session: Client, id: number): Promise<PatJson> =>
  (await list(session)).find((each) => each.id === id)!;
export const askMe = (client: Client, headers = {}): Promise<Answer> => client.request("GET", "/me", { headers });

/** Returns a session's client of a seeded user. */
export const enter = async (guests: Guests, world: World, name: string): Promise<Client> =>
  (await guests.signIn(world.server, `${name}@example.com`)).client;

/** Makes a token that the test file's guests keep. Fails if the server rejects it. */
export async function make(guests: Guests, session: Client, more: object = {}): Promise<CreatedPatJson> {
  const made = await createPat(session, more);
  guests.secrets.add(made.token);
  return made;
}
