/**
 * Runs the proxies' example files in front of a real exchange: what a client gets through them while the exchange trades,
 * while it is down, and when it dies with a request in flight. Only addresses, ports and certificates are replaced.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { request as secureRequest } from "node:https";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { freePort } from "../../bench/support/free-port.ts";
import { temporaryFolder } from "../support/server.ts";
import { tokenOf, World } from "../support/world.ts";
import { Running, readDocument } from "./code-blocks.ts";

const HOST = "127.0.0.1";
const DEADLINE_MS = 20_000;

function replaceAll(text: string, pairs: Readonly<Record<string, string>>): string {
  let changed = text;
  for (const [from, to] of Object.entries(pairs)) {
    if (!changed.includes(from)) throw new Error(`the file has no ${from}`);
    changed = changed.replaceAll(from, to);
  }
  return changed;
}

interface Ports {
  readonly exchange: number;
  readonly plain: number;
  readonly secure: number;
}

interface Proxy {
  readonly program: string;
  readonly logFile: string;
  /** Writes the configuration into `folder`. @returns the command-line arguments */
  configure(folder: string, ports: Ports): string[];
}

const NGINX: Proxy = {
  program: "nginx",
  logFile: "exchange.log",
  configure(folder, { exchange, plain, secure }) {
    const example = replaceAll(readDocument("docs/operations/nginx.conf"), {
      "listen 80;": `listen ${HOST}:${plain};`,
      "listen 443 ssl;": `listen ${HOST}:${secure} ssl;`,
      "127.0.0.1:8080": `${HOST}:${exchange}`,
      "  listen [::]:80;\n": "",
      "  listen [::]:443 ssl;\n": "",
      "/etc/letsencrypt/live/exchange.example.com/fullchain.pem": join(folder, "cert.pem"),
      "/etc/letsencrypt/live/exchange.example.com/privkey.pem": join(folder, "key.pem"),
      "/var/log/nginx": folder,
    });
    const own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${join(folder, name)};`)
      .join("\n");
    const file = join(folder, "nginx.conf");
    const top = `daemon off;\nuser root;\nworker_processes 1;\npid ${join(folder, "pid")};\nevents {}\n`;
    writeFileSync(file, `${top}http {\n${own}\n${example}}\n`);
    return ["-c", file, "-e", join(folder, "start.log")];
  },
};

const CADDY: Proxy = {
  program: "caddy",
  logFile: "exchange.log",
  configure(folder, { exchange, secure }) {
    const tls = `tls ${join(folder, "cert.pem")} ${join(folder, "key.pem")}`;
    const example = replaceAll(readDocument("docs/operations/Caddyfile"), {
      "127.0.0.1:8080": `${HOST}:${exchange}`,
      "exchange.example.com {": `https://${HOST}:${secure} {\n\tbind ${HOST}\n\t${tls}`,
      "\tlog {\n": `\tlog {\n\t\toutput file ${join(folder, "exchange.log")}\n`,
    });
    const file = join(folder, "Caddyfile");
    writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n${example}`);
    return ["run", "--adapter", "caddyfile", "--config", file];
  },
};

interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function ask(port: number, path: string, { method = "GET", headers = {}, body }: Call = {}): Promise<Response> {
  return new Promise((resolve, reject) => {
    const options = { host: HOST, port, path, method, headers, rejectUnauthorized: false };
    const sent = secureRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const json = ({ body }: Response): { code: number; msg: string; data: unknown; trace_id?: string } =>
  JSON.parse(body.toString()) as ReturnType<typeof json>;

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > deadline) throw new Error("the condition did not hold in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe.each([NGINX, CADDY])("$program", (proxy) => {
  const { error } = spawnSync(proxy.program, ["-v"]);
  if (error !== undefined) {
    console.log(`skipping the example of ${proxy.program}: it is not installed`);
    test.skip("is not installed");
    return;
  }

  const folder = temporaryFolder();
  const token = tokenOf("user0");
  const authorization = { Authorization: `Bearer ${token}` };
  const post = (body: object, headers: Readonly<Record<string, string>> = {}): Call => ({
    method: "POST",
    headers: { ...authorization, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  let world: World;
  let running: Running;
  let ports: Ports;
  let order: object;

  beforeAll(async () => {
    ports = { exchange: await freePort(), plain: await freePort(), secure: await freePort() };
    const env = { PORT: String(ports.exchange), TRUSTED_PROXIES: HOST, PUBLIC_URL: "https://exchange.example.com" };
    const subject = ["-subj", "/CN=exchange.example.com", "-addext", `subjectAltName=IP:${HOST}`];
    const files = ["-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")];
    const made = spawnSync("openssl", [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      ...subject,
      ...files,
    ]);
    if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`);
    running = new Running(proxy.program, proxy.configure(folder, ports), folder, { HOME: folder });
    // The exchange isn't running yet: the proxy responds in its place.
    await until(async () => (await ask(ports.secure, "/readyz")).status === 503);
    world = await World.start({ users: 1, env });
    const [market] = world.markets;
    order = { market_id: market!.id, outcome_id: market!.outcomes[0], side: 1, price: 4200, quantity: 10 };
  });
  afterAll(async () => {
    if (running !== undefined) {
      running.child.kill("SIGTERM");
      await running.exited;
    }
    await world?.stop();
  });

  test("orders, errors and request ids pass a proxy unchanged", async () => {
    const placed = await ask(ports.secure, "/api/v1/orders", post(order, { "X-Request-Id": "mine-1" }));
    expect([placed.status, json(placed).code]).toEqual([202, 0]);
    expect(placed.headers["x-request-id"]).toBe("mine-1");
    expect(placed.headers["strict-transport-security"]).toBeDefined();
    const refused = await ask(ports.secure, "/api/v1/orders", post({ ...order, price: 0 }));
    expect([refused.status, json(refused).code]).toEqual([400, 40000]);
    expect(json(refused).msg).toContain("price");
    const unknown = await ask(ports.secure, "/api/v1/markets/999999");
    expect([unknown.status, json(unknown).code]).toEqual([404, 4040]);
  });

  test("API documents pass a proxy compressed", async () => {
    const { headers, body } = await ask(ports.secure, "/openapi.json", { headers: { "Accept-Encoding": "gzip" } });
    expect(headers["content-encoding"]).toBe("gzip");
    expect((JSON.parse(gunzipSync(body).toString()) as { openapi: string }).openapi).toMatch(/^3\.1/);
  });

  test("a body above 64 KiB through a proxy is 413 in the API's envelope", async () => {
    for (const size of [65_537, 300_000]) {
      const large = await ask(ports.secure, "/api/v1/orders", post({ text: "x".repeat(size) }));
      expect([large.status, json(large).code, json(large).data]).toEqual([413, 40000, null]);
      expect(large.headers["content-type"]).toMatch(/^application\/json/);
      expect(json(large).msg).toContain("65536");
    }
  });

  test("a WebSocket passes a proxy and receives order updates; logs contain no token", async () => {
    const socket = new WebSocket(`wss://${HOST}:${ports.secure}/api/v1/ws?token=${token}`, {
      rejectUnauthorized: false,
    });
    const received = new Promise<string>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("message", (data: Buffer) => {
        const { event } = JSON.parse(data.toString()) as { event?: string };
        if (event === "order.updated") resolve(event);
      });
    });
    await new Promise((resolve) => socket.once("open", resolve));
    expect((await ask(ports.secure, "/api/v1/orders", post(order))).status).toBe(202);
    expect(await received).toBe("order.updated");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.close();
    await closed;
    const log = (): string => readFileSync(join(folder, proxy.logFile), "utf8");
    await until(async () => log().includes("/api/v1/ws"));
    expect(log()).not.toContain(token);
  });

  test("behind a proxy, metrics are for this machine only", async () => {
    const { status } = await ask(ports.secure, "/metrics", { headers: { "X-Forwarded-For": "203.0.113.9" } });
    // nginx allows this machine, Caddy no machine.
    expect(status).toBe(proxy === NGINX ? 200 : 404);
  });

  test.runIf(proxy === NGINX)("nginx rejects malformed requests in the API's envelope", async () => {
    const status = new Promise<[number, string]>((resolve, reject) => {
      const sent = request({ host: HOST, port: ports.secure, path: "/api/v1/markets" }, (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on("end", () => resolve([response.statusCode!, text]));
      });
      sent.on("error", reject);
      sent.end();
    });
    const [code, text] = await status;
    expect([code, (JSON.parse(text) as { code: number }).code]).toEqual([400, 40000]);
    const long = await ask(ports.secure, `/${"a".repeat(20_000)}`);
    expect([long.status, json(long).code]).toEqual([400, 40000]);
  });

  test("behind a proxy, an exchange that dies with a request in flight gives 50000, one that is down 50300 with Retry-After", async () => {
    world.server.signal("SIGSTOP");
    // The kernel still accepts connections and bytes for a stopped process: the proxy forwards the order and waits.
    const pending = ask(ports.secure, "/api/v1/orders", post({ ...order, client_order_id: "in-flight" }));
    await until(async () => openSockets(ports.exchange) > 0);
    await world.server.kill();
    const unknown = await pending;
    expect([unknown.status, json(unknown).code]).toEqual([500, 50000]);
    expect(json(unknown).msg).toContain("check");
    expect(json(unknown).trace_id).toMatch(/./);

    const headers = { "X-Request-Id": "mine-2" };
    const away = await ask(ports.secure, "/api/v1/orders", post({ ...order, client_order_id: "away" }, headers));
    expect([away.status, json(away).code, json(away).data]).toEqual([503, 50300, null]);
    expect(away.headers["content-type"]).toMatch(/^application\/json/);
    expect(Number(away.headers["retry-after"])).toBeGreaterThan(0);
    expect(json(away).trace_id).toMatch(/./);
    if (proxy === NGINX) expect([json(away).trace_id, away.headers["x-request-id"]]).toEqual(["mine-2", "mine-2"]);

    world.server = await world.server.restart();
    await until(async () => (await ask(ports.secure, "/readyz")).status === 200);
    const absent = await ask(ports.secure, "/api/v1/orders?client_order_id=away&status=all", {
      headers: authorization,
    });
    expect((json(absent).data as { items: unknown[] }).items).toEqual([]);
  });
});

/** Counts connections from this machine to a port with bytes in their receive queue, from /proc/net/tcp. */
function openSockets(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  return rows.filter((row) => {
    const [, address, , state, queues] = row.trim().split(/\s+/);
    return address === local && state === "01" && Number.parseInt(queues!.split(":")[1]!, 16) > 0;
  }).length;
}
