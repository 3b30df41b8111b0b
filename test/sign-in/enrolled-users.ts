/** Seeded users with authenticator apps, as the tests of second factors use them. Records the apps' secrets. */
import { expect } from "vitest";
import type { Answer, Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import type { Guests } from "../support/identity.ts";
import { addApp, type Enrolled, FACTORS, type FactorsJson } from "../support/second-factor.ts";
import type { World } from "../support/world.ts";

export const emailOf = (name: string): string => `${name}@example.com`;

/** Signs in and adds an authenticator app. The guests' secrets include the app's secret and recovery codes. */
export async function enrol(guests: Guests, { server }: World, name: string): Promise<Enrolled & { client: Client }> {
  const { client } = await guests.signIn(server, emailOf(name));
  const enrolled = await addApp(client);
  guests.secrets.add(enrolled.app.secret);
  for (const code of enrolled.recoveryCodes ?? []) guests.secrets.add(code).add(code.replaceAll("-", ""));
  return { ...enrolled, client };
}

export const listFactors = (client: Client): Promise<FactorsJson> => client.get(FACTORS);

/** Returns the actions of a user's second factors in the audit log, oldest first. */
export const factorAudit = ({ server }: World, userId: number): string[] =>
  rowsOf<{ action: string }>(
    server.dataDir,
    "SELECT action FROM audit_log WHERE user_id = ? AND action LIKE 'second_factor%' ORDER BY id",
    userId,
  ).map(({ action }) => action);

export function expectRejected({ code, msg }: Answer, expected: number, words: RegExp): void {
  expect([code, msg]).toEqual([expected, expect.stringMatching(words)]);
}
