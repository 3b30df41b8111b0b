/** TLS: with a certificate the server speaks HTTPS and WSS only; a wrong certificate or key stops the start. */
import { X509Certificate } from "node:crypto";
import { on, once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { get as getPlainly, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { Agent, get, request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { makeCertificate, NO_OPENSSL } from "../support/certificate.ts";
import { eventually } from "../support/checks.ts";
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
    const seed = seedOf({ users: 0, named: { owner: { password: PASSWORD }, other: {} } });
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

  test("a renewed certificate is served without a restart, to REST and to sockets; a broken one isn't", async () => {
    const ends = async (): Promise<number> => {
      const text = await metrics();
      return Number(/^exchange_certificate_end_timestamp_seconds (\S+)$/m.exec(text)![1]);
    };
    const metrics = async (): Promise<string> => {
      const [response] = (await once(get({ ...at(""), path: "/metrics", ...trusting }), "response")) as [
        IncomingMessage,
      ];
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    };
    expect(await ends()).toBe(Date.parse(new X509Certificate(readFileSync(cert)).validTo) / 1_000);
    await server.logged(({ msg }) => msg === "the certificate ends soon: renew it");
    const url = `wss://localhost:${server.port}/api/v1/ws?token=${tokenOf("owner")}`;
    const opened = async (): Promise<WebSocket> => {
      const socket = new WebSocket(url, { ca: trusting.ca });
      await once(socket, "open");
      return socket;
    };
    const before = await opened();
    writeFileSync(cert, "half");
    await server.logged(({ msg }) => msg === "the certificate's files can't be used", 20_000);
    makeCertificate(cert, key);
    await server.logged(({ msg }) => msg === "the renewed certificate is served", 20_000);
    const old = trusting.ca;
    trusting = { ca: readFileSync(cert), servername: "localhost" };
    await expect(once(get({ ...at("/time"), ca: old, servername: "localhost" }), "response")).rejects.toThrow();
    const after = await opened();
    // Both get what is published.
    let subscribed = 0;
    const heard = [before, after].map(async (socket) => {
      socket.send('{"op":"subscribe","channel":"trades","market_id":1,"id":1}');
      for await (const [data] of on(socket, "message")) {
        const { event, id } = JSON.parse(String(data)) as { event?: string; id?: number };
        if (id === 1) subscribed++;
        if (event === "trade.created") return true;
      }
      return false;
    });
    await eventually(async () => expect(subscribed).toBe(2));
    const order = { market_id: 1, outcome_id: 1, price: 5_000, quantity: 1 };
    const headers = { Authorization: `Bearer ${tokenOf("owner")}` };
    await post("/wallet/split", { market_id: 1, quantity: 1 }, headers);
    await post("/orders", { ...order, side: 2 }, headers);
    await post("/orders", { ...order, side: 1 }, { Authorization: `Bearer ${tokenOf("other")}` });
    expect(await Promise.all(heard)).toEqual([true, true]);
    for (const socket of [before, after]) socket.close();
  }, 60_000);

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
