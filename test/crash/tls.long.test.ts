/** TLS: with a certificate the server speaks HTTPS and WSS only; a wrong certificate or key stops the start. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get as getPlainly, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { Agent, get, request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { makeCertificate, NO_OPENSSL } from "../support/certificate.ts";
import type { OrderJson } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { seedOf, tokenOf } from "../support/world.ts";

const HOST = "127.0.0.1";

describe.skipIf(NO_OPENSSL)("TLS", () => {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  let server: TestServer;
  /** Of a client that knows the certificate. */
  let trusting: { readonly ca: Buffer; readonly servername: string };

  beforeAll(async () => {
    makeCertificate(cert, key);
    trusting = { ca: readFileSync(cert), servername: "localhost" };
    const seed = seedOf({ users: 0, named: { owner: { password: PASSWORD } } });
    server = await TestServer.start({ seed, env: { TLS_CERT: cert, TLS_KEY: key } });
  });
  afterAll(() => server?.kill());

  const at = (path: string) => ({ host: HOST, port: server.port, path: `/api/v1${path}`, agent: false });

  async function post<T>(
    path: string,
    body: object,
    headers: OutgoingHttpHeaders,
  ): Promise<{ readonly response: IncomingMessage; readonly json: T }> {
    const options = { ...at(path), ...trusting, method: "POST" };
    const sent = request({ ...options, headers: { "Content-Type": "application/json", ...headers } });
    sent.end(JSON.stringify(body));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { response, json: JSON.parse(Buffer.concat(chunks).toString()) as T };
  }

  test("an HTTPS client gets a response", async () => {
    const [response] = (await once(get({ ...at("/time"), ...trusting }), "response")) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
  });

  test("the session cookie is secure over TLS", async () => {
    const body = { email: "owner@example.com", password: PASSWORD, cookie: true };
    const { response } = await post("/auth/login", body, { Origin: `https://${HOST}:${server.port}` });
    expect(response.headers["set-cookie"]).toEqual([
      expect.stringMatching(/^__Host-session=pm_ref_.*; Secure; SameSite=Strict$/),
    ]);
  });

  test("a client that doesn't know the certificate gets no response, nor does one without TLS", async () => {
    const unknown = get({ ...at("/time"), servername: "localhost" });
    await expect(once(unknown, "response")).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const plain = getPlainly(at("/time"));
    await expect(once(plain, "response")).rejects.toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|HPE_)/) });
  });

  test("an order over HTTPS is reported over WSS, and a stop closes the socket", async () => {
    const token = tokenOf("owner");
    const url = `wss://${HOST}:${server.port}/api/v1/ws?token=${token}`;
    const socket = new WebSocket(url, { agent: new Agent(trusting) });
    const updated = new Promise<{ data: OrderJson }>((resolve) => {
      socket.on("message", (data) => {
        const frame = JSON.parse(String(data)) as { event?: string; data: OrderJson };
        if (frame.event === "order.updated") resolve(frame);
      });
    });
    await once(socket, "open");
    const body = { market_id: 1, outcome_id: 1, side: 1, price: 100, quantity: 1 };
    const { json } = await post<{ data: OrderJson }>("/orders", body, { Authorization: `Bearer ${token}` });
    expect((await updated).data).toMatchObject({ id: json.data.id, status: "open" });
    await server.stop();
    expect(socket.readyState).not.toBe(WebSocket.OPEN);
  });

  test("a TLS certificate or key that is wrong, missing or unset stops the start", async () => {
    const none = join(folder, "none.pem");
    const [otherKey, otherCert] = [join(folder, "other-key.pem"), join(folder, "other-cert.pem")];
    makeCertificate(otherCert, otherKey);
    for (const [TLS_CERT, TLS_KEY, line] of [
      [key, key, /^cannot start: TLS_CERT, TLS_KEY: .*\n$/],
      [cert, cert, /^cannot start: TLS_CERT, TLS_KEY: .*\n$/],
      [cert, otherKey, /^cannot start: TLS_CERT, TLS_KEY: .*\n$/],
      [none, key, /^cannot start: TLS_CERT: cannot read ".*none\.pem" \(ENOENT\)\n$/],
      [cert, none, /^cannot start: TLS_KEY: cannot read ".*none\.pem" \(ENOENT\)\n$/],
      [cert, "", /^cannot start: TLS_CERT and TLS_KEY go together: set both\n$/],
    ] as const) {
      const { code, errors } = await TestServer.refuse({ env: { TLS_CERT, TLS_KEY } });
      expect([TLS_CERT, TLS_KEY, code, errors]).toEqual([TLS_CERT, TLS_KEY, 1, expect.stringMatching(line)]);
    }
  });
});
