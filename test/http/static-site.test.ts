/** The web page as the gateway serves it: compressed, cacheable, and with a policy that runs nothing else. */

import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PAGE_PATHS } from "../../server/http/page-paths.ts";
import { Client, type RawAnswer } from "../support/client.ts";
import { TestServer } from "../support/server.ts";

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
/** Of everything that the first page loads by itself, compressed. */
const MAX_FIRST_LOAD_BYTES = 50 * 1_024;

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await TestServer.start({});
  client = new Client(server, null);
});
afterAll(async () => {
  client.close();
  await server.stop();
});

const get = (path: string, headers: Record<string, string> = {}): Promise<RawAnswer> =>
  client.send("GET", path, headers, null);

/** Paths that the document loads by itself. */
function loadedBy(html: string): string[] {
  // A phone loads this icon when it puts the page on its home screen.
  const links = html.replaceAll(/<link rel="apple-touch-icon"[^>]*>/g, "");
  return [...links.matchAll(/(?:src|href)="\.(\/[^"]+)"/g)].map((match) => match[1]!);
}

describe("the page", () => {
  it.each(PAGE_PATHS)("the page is at %s", async (path) => {
    const answer = await get(path.replaceAll(/:\w+/g, "some%20thing"));
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(answer.body.toString()).toContain('<div id="page">');
  });

  it("the page may run and load its own files only, and no page may frame it", async () => {
    const { headers, body } = await get("/");
    const policy = new Map(
      String(headers["content-security-policy"])
        .split("; ")
        .map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]),
    );
    expect(policy.get("default-src")).toBe("'none'");
    expect(policy.get("frame-ancestors")).toBe("'none'");
    for (const what of ["script-src", "style-src", "connect-src", "base-uri", "form-action"]) {
      expect(policy.get(what)).toBe("'self'");
    }
    expect(String(headers["content-security-policy"])).not.toMatch(/unsafe|\*|http/);
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(headers["cross-origin-opener-policy"]).toBe("same-origin");
    expect(headers["access-control-allow-origin"]).toBeUndefined();
    expect(headers["set-cookie"]).toBeUndefined();
    // The page has nothing that the policy would block.
    expect(body.toString()).not.toMatch(/<style|style=|onload|<script(?![^>]*src=)|https?:/);
  });

  it("the page is compressed as the client accepts it, always the same bytes", async () => {
    const plain = await get("/");
    const script = loadedBy(plain.body.toString()).find((path) => path.endsWith(".js") && path.includes("assets"))!;
    for (const path of ["/", script]) {
      const { body, headers } = await get(path);
      expect(headers["content-encoding"]).toBeUndefined();
      expect(headers.vary).toContain("Accept-Encoding");
      const small = await get(path, { "accept-encoding": "gzip, deflate, br;q=0.9" });
      expect(small.headers["content-encoding"]).toBe("br");
      expect(brotliDecompressSync(small.body).equals(body)).toBe(true);
      const zipped = await get(path, { "accept-encoding": "gzip, br;q=0" });
      expect(zipped.headers["content-encoding"]).toBe("gzip");
      expect(gunzipSync(zipped.body).equals(body)).toBe(true);
      expect((await get(path, { "accept-encoding": "*;q=0" })).headers["content-encoding"]).toBeUndefined();
    }
  });

  it("the page is revalidated, and its assets are immutable", async () => {
    const first = await get("/");
    expect(first.headers["cache-control"]).toBe("no-cache");
    const again = await get("/", { "if-none-match": String(first.headers.etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
    expect(again.headers["content-security-policy"]).toBe(first.headers["content-security-policy"]);
    expect((await get("/", { "if-none-match": "*" })).status).toBe(304);
    // Another encoding has another ETag.
    const other = await get("/", { "if-none-match": String(first.headers.etag), "accept-encoding": "br" });
    expect(other.status).toBe(200);
    expect((await get("/", { "if-none-match": '"another"' })).status).toBe(200);
    for (const path of loadedBy(first.body.toString())) {
      const { status, headers } = await get(path);
      expect(status, path).toBe(200);
      const isAsset = path.startsWith("/assets/");
      expect(headers["cache-control"], path).toBe(isAsset ? "public, max-age=31536000, immutable" : "no-cache");
    }
    const font = loadedBy(first.body.toString()).find((path) => path.endsWith(".woff2"));
    expect((await get(font!)).headers["content-type"]).toBe("font/woff2");
  });

  it("the page loads less than 50 KB at first", async () => {
    const encoding = { "accept-encoding": "br" };
    const document = await get("/", encoding);
    const paths = loadedBy(brotliDecompressSync(document.body).toString());
    expect(paths.length).toBeGreaterThan(2);
    const sizes = await Promise.all(paths.map(async (path) => (await get(path, encoding)).body.length));
    expect(sizes.reduce((sum, size) => sum + size, document.body.length)).toBeLessThan(MAX_FIRST_LOAD_BYTES);
  });

  it("the site responds to an unknown path with a page for people and the envelope for programs", async () => {
    const shown = await get("/no/such/page", HTML);
    expect(shown.status).toBe(404);
    expect(shown.headers["content-type"]).toBe("text/html; charset=utf-8");
    const program = await get("/no/such/page");
    expect([program.status, JSON.parse(program.body.toString()).code]).toEqual([404, 4040]);
    const api = await get("/api/v1/no/such/path", HTML);
    expect([api.status, JSON.parse(api.body.toString()).code]).toEqual([404, 4040]);
    const broken = await get("/markets/%ff", HTML);
    expect(broken.status).toBe(404);
  });

  it("the site serves its own files only", async () => {
    for (const path of ["/../package.json", "/assets/../../main.js", "/%2e%2e/main.js", "/main.js", "//etc/passwd"]) {
      const { status, body } = await get(path);
      expect([path, status]).toEqual([path, 404]);
      expect(JSON.parse(body.toString()).code).toBe(4040);
    }
  });

  it("the site accepts GET and HEAD only", async () => {
    const head = await client.send("HEAD", "/", {}, null);
    expect([head.status, head.body.length]).toEqual([200, 0]);
    const posted = await client.send("POST", "/", { "content-type": "application/json" }, "{}");
    expect([posted.status, posted.headers.allow]).toEqual([405, "GET, HEAD"]);
    expect(JSON.parse(posted.body.toString()).code).toBe(40500);
    expect((await client.send("POST", "/nowhere", HTML, "{}")).status).toBe(404);
  });
});

it("with a path and https in PUBLIC_URL, the page is below that path and requires HTTPS", async () => {
  const below = await TestServer.start({ env: { PUBLIC_URL: "https://exchange.test/trade/" } });
  const visitor = new Client(below, null);
  try {
    const { headers, body } = await visitor.send("GET", "/markets/any", { "accept-encoding": "br" }, null);
    expect(brotliDecompressSync(body).toString()).toContain('<base href="/trade/"');
    expect(headers["strict-transport-security"]).toMatch(/^max-age=\d+$/);
  } finally {
    visitor.close();
    await below.stop();
  }
});
