/**
 * Genuine access tokens in others' hands: third parties verify them by the published keys, and another deployment's
 * tokens are not valid here, nor ours there. For forged tokens, see forged-tokens.test.ts.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  verify as verifyBytes,
} from "node:crypto";
import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createRemoteJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backUp } from "../../server/backup/backup.ts";
import { expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import { signingKeys } from "../support/data-dir.ts";
import { PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import { type TestServer, temporaryFolder } from "../support/server.ts";
import { ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, PUBLIC_URL, World } from "../support/world.ts";
import { UPGRADE } from "./flooder.ts";
import { decode, Forge } from "./forge.ts";

const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

let world: World;
let server: TestServer;
let me: SignedIn;
/** The access token of a third party of `me`. */
let third: string;
let forge: Forge;

beforeAll(async () => {
  const named = { owner: { password: PASSWORD }, other: { password: PASSWORD } };
  world = await World.start({ users: 1, named });
  ({ server } = world);
  me = await signIn(server, "owner@example.com");
  const other = await signIn(server, "other@example.com");
  const party = await ThirdParty.register(world, other.client, { confidential: true });
  third = (await party.tokens(me.client, ALL_SCOPES.join(" "))).access_token;
  other.client.close();
  const [jwk] = signingKeys(server.dataDir);
  const key = createPrivateKey({ key: jwk!, format: "jwk" });
  const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const [head, claims, othersClaims] = [...me.accessToken.split(".", 2), other.accessToken.split(".")[1]!].map(decode);
  forge = new Forge(key, stranger, othersClaims!, head!, claims!);
});

afterAll(async () => {
  me.client.close();
  await expectEndsWell(world);
  expectUnlogged([me.accessToken, me.refreshToken, third], server);
});

const byHeader = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", "/me", { headers: { Authorization: `Bearer ${token}` } });
const byUrl = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", `/ws?token=${encodeURIComponent(token)}`, { headers: UPGRADE });

const INVALID = { status: 401, code: 40100, data: null, msg: "the token is not valid" };

describe("a genuine token is verified by others", () => {
  const addresses = ["/.well-known/jwks.json", `${API_BASE}/.well-known/jwks.json`];
  const genuine = (): [string, string, string][] => [
    ["session", me.accessToken, "JWT"],
    ["third party's", third, "at+jwt"],
  ];

  async function keySet(path: string): Promise<JSONWebKeySet> {
    const to = new Client(server, null);
    const { status, data, headers } = await to.requestRoot("GET", path);
    to.close();
    expect([status, headers["cache-control"]]).toEqual([200, expect.stringMatching(/max-age=\d+/)]);
    return data as JSONWebKeySet;
  }

  test("a genuine token is verified by others from the key set, which is the same at both addresses and has no private part", async () => {
    const [root, versioned] = await Promise.all(addresses.map(keySet));
    expect(root).toEqual(versioned);
    expect(root!.keys).toHaveLength(1);
    for (const jwk of root!.keys) {
      expect(jwk).toMatchObject({ kty: "RSA", alg: "RS256", use: "sig", kid: forge.kid });
      expect(Object.keys(jwk).filter((name) => PRIVATE_MEMBERS.includes(name))).toEqual([]);
      expect(Buffer.from(jwk.n!, "base64url")).toEqual(forge.n);
    }
    const text = JSON.stringify(root);
    for (const name of PRIVATE_MEMBERS) {
      const secret = signingKeys(server.dataDir)[0]![name];
      if (typeof secret === "string") expect(text).not.toContain(secret);
    }
  });

  test("a genuine token is verified by jose, from the metadata", async () => {
    const to = new Client(server, null);
    const { data } = await to.requestRoot("GET", "/.well-known/oauth-authorization-server");
    to.close();
    const { issuer, jwks_uri } = data as { issuer: string; jwks_uri: string };
    for (const address of [jwks_uri, ...addresses.map((path) => server.root + path)]) {
      const keys = createRemoteJWKSet(new URL(address));
      for (const [what, token, typ] of genuine()) {
        const options = { issuer, audience: issuer + API_BASE, algorithms: ["RS256"], typ };
        const { payload, protectedHeader } = await jwtVerify(token, keys, options);
        expect([what, payload.sub, protectedHeader.typ]).toEqual([what, String(me.user.id), typ]);
        expect(payload).toMatchObject({
          scope: ALL_SCOPES.join(" "),
          exp: payload.iat! + 900,
          jti: expect.any(String),
        });
      }
      const forged = forge.compact(forge.head, forge.claims, (input) => forge.theirs(input));
      await expect(jwtVerify(forged, keys)).rejects.toThrow("signature verification failed");
    }
  });

  test("a genuine token is verified by jsonwebtoken, and by node:crypto alone", async () => {
    const { keys } = await keySet(addresses[0]!);
    const issuer = server.root;
    for (const [, token] of genuine()) {
      const [head, payload, signature] = token.split(".") as [string, string, string];
      const jwk = keys.find(({ kid }) => kid === decode(head)["kid"]);
      const publicKey = createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
      const claims = jsonwebtoken.verify(token, publicKey, {
        algorithms: ["RS256"],
        issuer,
        audience: issuer + API_BASE,
        subject: String(me.user.id),
      });
      expect(claims).toEqual(decode(payload));
      const input = Buffer.from(`${head}.${payload}`);
      expect(verifyBytes("sha256", input, publicKey, Buffer.from(signature, "base64url"))).toBe(true);
      expect(() => jsonwebtoken.verify(token.slice(0, -4), publicKey)).toThrow("invalid signature");
    }
  });
});

describe("another deployment", () => {
  const named = { owner: { password: PASSWORD }, other: { password: PASSWORD } };
  const worlds: World[] = [];
  /** Has our keys and another name. */
  let sameKeys: World;
  /** The folder of that deployment as it was before the first sign-in, without its journal. */
  const backup = temporaryFolder();
  /** Its first sign-in, and the sign-in to a deployment that has our name and other keys. */
  let first: SignedIn;
  let second: SignedIn;

  async function deploy(dataDir: string, publicUrl: string): Promise<World> {
    const deployed = await World.start({ users: 1, named, dataDir, env: { PUBLIC_URL: publicUrl } });
    worlds.push(deployed);
    return deployed;
  }
  const copyKeys = (from: string, to: string): void =>
    cpSync(join(from, "keys"), join(to, "keys"), { recursive: true });

  beforeAll(async () => {
    const dataDir = temporaryFolder();
    copyKeys(server.dataDir, dataDir);
    const [withKeys, withName] = await Promise.all([
      deploy(dataDir, PUBLIC_URL),
      deploy(temporaryFolder(), String(forge.claims["iss"])),
    ]);
    sameKeys = withKeys;
    copyKeys(dataDir, backup);
    await backUp(dataDir, join(backup, "exchange.db"), false);
    renameSync(join(backup, "exchange.journal.db"), join(backup, "journal.db"));
    [first, second] = await Promise.all([
      signIn(withKeys.server, "owner@example.com"),
      signIn(withName.server, "owner@example.com"),
    ]);
  });

  afterAll(async () => {
    for (const { client } of [first, second]) client.close();
    for (const each of worlds) {
      expectQuiet(each.server);
      await each.stop();
    }
  });

  test("another deployment with our keys has another name, or with our name other keys: no token of one is valid at the other", async () => {
    const kidOf = (token: string): unknown => decode(token.split(".")[0]!)["kid"];
    const [ours, named] = [first.accessToken, second.accessToken];
    expect([kidOf(ours) === forge.kid, kidOf(named) === forge.kid]).toEqual([true, false]);
    expect(decode(named.split(".")[1]!)["iss"]).toBe(forge.claims["iss"]);
    // Users and sessions have the same ids on those servers.
    expect([first.user.id, second.user.id]).toEqual([me.user.id, me.user.id]);
    const renamed = `${forge.h}.${named.split(".").slice(1).join(".")}`;
    const to = new Client(server, null);
    for (const token of [ours, named, renamed]) {
      expect(await byHeader(to, token)).toMatchObject(INVALID);
      expect(await byUrl(to, token)).toMatchObject(INVALID);
    }
    to.close();
    for (const { server: there } of worlds) {
      const foreign = new Client(there, null);
      expect(await byHeader(foreign, me.accessToken)).toMatchObject(INVALID);
      expect(await byUrl(foreign, me.accessToken)).toMatchObject(INVALID);
      foreign.close();
    }
  });

  test("a deployment that was restored from a backup gives no later token another user's session of the same id", async () => {
    const sessionsOf = async (client: Client): Promise<number[]> => {
      return (await client.all<{ id: number }>("/me/sessions")).map(({ id }) => id);
    };
    const lost = await sessionsOf(first.client);
    await sameKeys.server.kill();
    worlds.splice(worlds.indexOf(sameKeys), 1);
    const restored = await deploy(backup, PUBLIC_URL);
    const after = await signIn(restored.server, "other@example.com");
    // The restored database does not record that the session's id was used before.
    expect(await sessionsOf(after.client)).toEqual(lost);
    const { status, code, data } = await byHeader(after.client, first.accessToken);
    after.client.close();
    expect([status, code, data]).toEqual([401, 40100, null]);
  });
});
