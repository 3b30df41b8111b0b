/**
 * The session cookie in a real browser: scripts can't read it, reloads and tabs share it, other sites can't use it, and a
 * sign-in at another site's identity provider sets it. The pages are stubs served by a proxy in front of the server;
 * test/sign-in/cookie-sessions.test.ts covers the server side.
 */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { type TestAccount, TestProvider } from "../support/oidc-provider.ts";
import { World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";

const STUB = "<!doctype html><title>stub</title>";

/** Sends a request from the page's script; returns status and body. */
function ask(page: Page, path: string, body: object): Promise<{ status: number; data: { refresh_token: unknown } }> {
  const init = `{ method: "POST", headers: { "Content-Type": "application/json" }, body: ${JSON.stringify(JSON.stringify(body))} }`;
  return page.evaluate(
    `fetch("${API_BASE}${path}", ${init}).then(async (r) => ({ status: r.status, data: (await r.json()).data }))`,
  );
}

/** A proxied request: its path, cookies and response status. */
type Proxied = readonly [path: string, cookies: string | undefined, status: number];

/** Proxies API requests to the server, and serves a stub for all others. */
function proxyTo(serverPort: () => number, proxied: Proxied[]): Server {
  return createServer((asked, answer) => {
    const { method, url = "", headers } = asked;
    if (!url.startsWith(API_BASE)) {
      answer.setHeader("Content-Type", "text/html").end(STUB);
      return;
    }
    const passing = request({ host: "127.0.0.1", port: serverPort(), path: url, method, headers }, (given) => {
      proxied.push([url, headers.cookie, given.statusCode!]);
      answer.writeHead(given.statusCode!, given.headers);
      given.pipe(answer);
    });
    passing.on("error", () => answer.destroy());
    asked.pipe(passing);
  });
}

describe.skipIf(NO_BROWSER)("the session's cookie in a browser", () => {
  const openPage = useBrowser();
  const testAccounts: Record<string, TestAccount> = {
    ada: { sub: "ada", email: "ada@example.com", email_verified: true },
  };
  let provider: TestProvider;
  let world: World;
  const proxied: Proxied[] = [];
  const proxy = proxyTo(() => world.server.port, proxied);
  /** A different site from the provider's and from 127.0.0.1. */
  let own: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    own = `http://localhost:${(proxy.address() as AddressInfo).port}`;
    provider = await TestProvider.start([`${own}${API_BASE}/auth/social/one/callback`], 0, testAccounts);
    const { issuer, clientId, clientSecret } = provider;
    const providers = { one: { issuer, client_id: clientId, client_secret: clientSecret } };
    const env = { PUBLIC_URL: own, SOCIAL_PROVIDERS: JSON.stringify(providers) };
    world = await World.start({ users: 0, named: { owner: { password: PASSWORD } }, markets: [], env });
  });
  afterAll(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await provider?.close();
    if (world !== undefined) await expectEndsWell(world);
  });

  async function openStub(expected: readonly RegExp[] = []): Promise<Page> {
    const page = await openPage({ baseURL: own, expected });
    await page.goto("/");
    return page;
  }

  async function signIn(page: Page): Promise<void> {
    const answer = await ask(page, "/auth/login", { email: "owner@example.com", password: PASSWORD, cookie: true });
    expect([answer.status, answer.data.refresh_token]).toEqual([200, null]);
  }

  test("the session's cookie survives reloads, serves two tabs concurrently, and is hidden from scripts", async () => {
    const page = await openStub();
    await signIn(page);
    expect(await page.evaluate("document.cookie")).toBe("");
    await page.reload();
    expect((await ask(page, "/auth/refresh", {})).status).toBe(200);
    const tab = await page.context().newPage();
    await tab.goto(`${own}/`);
    for (let round = 0; round < 3; round++) {
      const asked = [page, tab, page, tab].map((each) => ask(each, "/auth/refresh", {}));
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    }
    // Leave the page before the response arrives.
    await page.evaluate(`void fetch("${API_BASE}/auth/refresh", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }).catch(() => {})`); // biome-ignore format: one line
    await page.reload();
    expect((await ask(page, "/auth/refresh", {})).status).toBe(200);
  });

  test("the session's cookie can't be used by a page of another site", async () => {
    const page = await openStub([/NotSameOrigin .*auth\/refresh/, / 403 .*auth\/refresh/]);
    await signIn(page);
    const [before] = await page.context().cookies();
    const foreign = await page.context().newPage();
    await foreign.goto(`http://127.0.0.1:${new URL(own).port}/`);
    proxied.length = 0;
    const url = `${own}${API_BASE}/auth/refresh`;
    for (const type of ["text/plain", ""]) {
      const body = `new Blob(["{}"], { type: "${type}" })`;
      const init = `{ method: "POST", mode: "no-cors", credentials: "include", body: ${body} }`;
      await foreign.evaluate(`fetch("${url}", ${init}).catch(() => null)`);
    }
    const form = `<form method=post enctype=text/plain action="${url}"><input name="{}" value=""></form>`;
    await foreign.evaluate(`document.body.innerHTML = ${JSON.stringify(form)}`);
    await Promise.all([foreign.waitForURL(url), foreign.evaluate("document.forms[0].submit()")]);
    expect(proxied).toEqual(Array(3).fill([`${API_BASE}/auth/refresh`, undefined, 403]));
    expect((await page.context().cookies())[0]).toEqual(before);
    expect((await ask(page, "/auth/refresh", {})).status).toBe(200);
  });

  test("the session's cookie is set by a sign-in at another site, with no token in the URL", async () => {
    const page = await openStub();
    await page.setExtraHTTPHeaders({ "x-test-account": "ada" });
    await page.goto(`${API_BASE}/auth/social/one?return_to=${encodeURIComponent("/markets?q=1")}`);
    expect(page.url()).toBe(`${own}/sign-in/done?to=${encodeURIComponent("/markets?q=1")}`);
    const kept = (await page.context().cookies(own)).find(({ name }) => name === "session");
    expect(kept).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
    expect((await ask(page, "/auth/refresh", {})).status).toBe(200);
  });
});
