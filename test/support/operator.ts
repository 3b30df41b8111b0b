/** An operator over the API: signs in with a password, reads and changes users. */

import type { Static } from "typebox";
import type { AuditLine, OperatorApplication, OperatorUser } from "../../server/operators/schemas.ts";

import { Client } from "./client.ts";
import { PASSWORD, signIn } from "./identity.ts";
import type { TestServer } from "./server.ts";
import type { UserSpec } from "./world.ts";

export type OperatorUserJson = Static<typeof OperatorUser>;
export type ApplicationJson = Static<typeof OperatorApplication>;
export type AuditJson = Static<typeof AuditLine>;

export const OPERATOR: UserSpec = { role: "operator", password: PASSWORD, deposit: 0 };

/** @param sockets the number of concurrent requests */
export async function operatorOf(server: TestServer, name = "operator", sockets = 1): Promise<Client> {
  const { client, accessToken } = await signIn(server, `${name}@example.com`);
  client.close();
  return new Client(server, accessToken, sockets);
}

export async function userNamed(operator: Client, name: string): Promise<OperatorUserJson> {
  const { items } = await operator.get<{ items: OperatorUserJson[] }>(`/admin/users?email=${name}@example.com`);
  return items[0]!;
}

export function setTerms(operator: Client, id: number, terms: object): Promise<OperatorUserJson> {
  return operator.data("PATCH", `/admin/users/${id}/terms`, terms);
}
