/**
 * What comes back with a suspended account: sessions never, personal access tokens and grants to third parties only if the
 * operator who restores the account says so.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import type { SignedIn } from "../support/identity.ts";
import { operatorOf, userNamed } from "../support/operator.ts";
import type { OAuthTokensJson, ThirdParty } from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { ask, expectAlive, expectDead, grantTo, OAuthStage, READ } from "./oauth-stage.ts";

let stage: OAuthStage;
let boss: Client;
beforeAll(async () => {
  stage = await OAuthStage.start(["boss"]);
  boss = await operatorOf(stage.world.server, "boss");
});
afterAll(async () => {
  boss.close();
  await stage.stop();
});

interface Access {
  readonly person: SignedIn;
  readonly pat: Client;
  readonly party: ThirdParty;
  readonly tokens: OAuthTokensJson;
}

async function accessOf(name: string): Promise<Access> {
  const person = await stage.signInAs(name);
  const body = { name: "bot", scopes: [READ] };
  const { token } = await person.client.data<{ token: string }>("POST", "/me/personal-access-tokens", body);
  stage.secrets.add(token);
  const party = await stage.register(true);
  return { person, pat: new Client(stage.world.server, token), party, tokens: await party.tokens(person.client) };
}

async function suspendAndRestore(name: string, body: object, { person, pat, tokens }: Access): Promise<void> {
  const { id } = await userNamed(boss, name);
  await boss.data("POST", `/admin/users/${id}/suspend`, { note: "stolen laptop" });
  for (const client of [person.client, pat]) await expectRefused(client.request("GET", "/me"), 403, 40300, /suspended/);
  await expectRefused(ask(stage.world, tokens.access_token, "GET", "/wallet/balance"), 403, 40300, /suspended/);
  const ended = "SELECT end_reason FROM sessions WHERE user_id = ? AND grant_id IS NULL AND ended_at IS NULL";
  expect(rowsOf(stage.world.server.dataDir, ended, id)).toEqual([]);
  await boss.data("POST", `/admin/users/${id}/restore`, body);
  await expectRefused(person.client.request("GET", "/me"), 401, 40100);
  const refresh = person.client.request("POST", "/auth/refresh", { body: { refresh_token: person.refreshToken } });
  await expectRefused(refresh, 401, 40100);
}

test("tokens and grants are revoked with the restoration, unless the operator restores them", async () => {
  for (const body of [{}, { tokens: "revoke" }]) {
    const access = await accessOf("alice");
    await suspendAndRestore("alice", body, access);
    await expectRefused(access.pat.request("GET", "/wallet/balance"), 401, 40100);
    await expectDead(access.party, access.tokens);
    const again = await stage.signInAs("alice");
    expect(await grantTo(again.client, access.party)).toBeUndefined();
    expect(await again.client.all("/me/personal-access-tokens")).toEqual([]);
    access.pat.close();
  }
});

test("tokens and grants that the operator restores work again; sessions don't", async () => {
  const access = await accessOf("bob");
  await suspendAndRestore("bob", { tokens: "restore", note: "known" }, access);
  expect((await access.pat.request("GET", "/wallet/balance")).code).toBe(0);
  await expectAlive(access.party, access.tokens);
  const [line] = rowsOf<{ details: string }>(
    stage.world.server.dataDir,
    "SELECT details FROM audit_log WHERE action = 'user.restore' ORDER BY id DESC LIMIT 1",
  );
  expect(JSON.parse(line!.details)).toEqual({ note: "known", tokens: "restore" });
  access.pat.close();
});

test("another word than restore or revoke changes nothing", async () => {
  const { id } = await userNamed(boss, "owner");
  await boss.data("POST", `/admin/users/${id}/suspend`, {});
  for (const tokens of ["keep", null, true, ""]) {
    await expectRefused(
      boss.request("POST", `/admin/users/${id}/restore`, { body: { tokens } }),
      400,
      40000,
      /^tokens: /,
    );
  }
  expect((await userNamed(boss, "owner")).suspended_at).not.toBeNull();
});
