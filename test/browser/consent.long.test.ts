/**
 * A third-party app in a browser: registered, granted access, used, revoked, denied. test/oauth covers the
 * endpoints.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE, askOnce } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import {
  authorizationRequest,
  type OAuthTokensJson,
  type Params,
  postForm,
  redemption,
} from "../support/third-party.ts";
import { World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, fillInSignIn, signInTo } from "./support/user-actions.ts";

const NAME = "Portfolio Viewer";
const SCOPE = "orders:write portfolio:read";

describe.skipIf(NO_BROWSER)("a third-party app", () => {
  const openPage = useBrowser();
  let world: World;
  let app: Server;
  /** The app's redirect URI. */
  let callback: string;
  let clientId: string;

  beforeAll(async () => {
    world = await World.start({
      users: 0,
      named: { developer: { password: PASSWORD }, person: { password: PASSWORD } },
    });
    app = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<title>app</title>Back."));
    await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
    callback = `http://127.0.0.1:${(app.address() as AddressInfo).port}/callback`;
  });
  afterAll(async () => {
    app.closeAllConnections();
    app.close();
    await expectEndsWell(world);
  });

  /** The authorization request of the app, with changed parameters. */
  const requestOf = (changes: Params = {}) => {
    const { params, verifier } = authorizationRequest(clientId, SCOPE, callback);
    const query = new URLSearchParams({ ...params, ...changes });
    return { address: `${API_BASE}/oauth/authorize?${query}`, state: params["state"]!, verifier };
  };
  const waitForRedirect = async (page: Page): Promise<URLSearchParams> => {
    await page.waitForURL(`${callback}?*`);
    return new URL(page.url()).searchParams;
  };
  const waitForConsent = (page: Page): Promise<void> =>
    page.getByRole("heading", { level: 1, name: `Allow "${NAME}" to access your account?` }).waitFor();

  test("a third-party app is registered on the page", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/account/apps", "developer@example.com");
    const form = page.getByRole("form", { name: "Register an app" });
    await form.getByLabel("Name").fill(NAME);
    await form.getByLabel("Redirect URIs").fill("http://client.example/callback");
    await form.getByLabel("Confidential client").uncheck();
    await form.getByRole("button", { name: "Register app" }).click();
    await form.getByText(/isn't allowed: use https/).waitFor();
    await form.getByLabel("Redirect URIs").fill(callback);
    await form.getByRole("button", { name: "Register app" }).click();
    const own = page.getByRole("region", { name: "Your apps" }).getByRole("listitem").filter({ hasText: NAME });
    clientId = (await own.getByRole("definition").first().textContent())!;
    expect(await own.getByRole("definition").nth(1).textContent()).toBe(callback);
  });

  test("a third-party app gets access from a user who signs in for it, and loses it again", async () => {
    const page = await openPage({ baseURL: world.server.root });
    const { address, state, verifier } = requestOf();
    await page.goto(address);
    await page.getByRole("heading", { name: "Sign in to continue" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Sign in" }).click();
    await fillInSignIn(page, "person@example.com");
    await waitForConsent(page);
    expect(await page.getByRole("main").getByRole("listitem").locator("strong").allTextContents()).toEqual([
      "Trade on your behalf",
      "View your portfolio",
    ]);
    expect(await page.getByRole("main").textContent()).toContain(new URL(callback).host);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    const params = await waitForRedirect(page);
    expect([params.get("state"), params.get("iss")]).toEqual([state, world.server.root]);

    const fields = { client_id: clientId, ...redemption({ code: params.get("code")!, verifier }, callback) };
    const { status, data } = await postForm<OAuthTokensJson>(world, "/oauth/token", fields);
    expect([status, data.scope]).toEqual([200, SCOPE]);
    const read = async (): Promise<number> =>
      (await askOnce(world.server, data.access_token, "GET", "/me/positions")).status;
    expect(await read()).toBe(200);

    await page.goto("/account/apps");
    const granted = page.getByRole("region", { name: "Apps with access to your account" });
    await granted.getByText(/^Access: .*Trade on your behalf/).waitFor();
    await granted.getByRole("button", { name: `Revoke access of ${NAME}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke access" }).click();
    await granted.getByText("No apps have access to your account.").waitFor();
    expect(await read()).toBe(401);
    const again = { client_id: clientId, grant_type: "refresh_token", refresh_token: data.refresh_token };
    expect((await postForm(world, "/oauth/token", again)).status).toBe(400);
  });

  test("a third-party app receives access_denied if the user denies", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/portfolio", "person@example.com");
    const { address, state } = requestOf();
    await page.goto(address);
    await waitForConsent(page);
    await page.getByRole("button", { name: "Deny" }).click();
    const params = await waitForRedirect(page);
    expect([params.get("error"), params.get("state"), params.get("code")]).toEqual(["access_denied", state, null]);
    await page.goto("/account/apps");
    await page.getByText("No apps have access to your account.").waitFor();
  });

  test("a third-party app can't redirect a user to an unregistered address", async () => {
    const page = await openPage({ baseURL: world.server.root, expected: [/ 404 .*oauth\/clients\/nobody/] });
    await signInTo(page, "/portfolio", "person@example.com");
    for (const [changes, why] of [
      [{ redirect_uri: `${callback}/other` }, /redirects to an address that this app hasn't registered/],
      [{ client_id: "nobody" }, /isn't registered with this exchange/],
    ] as const) {
      await page.goto(requestOf(changes).address);
      await page.getByRole("heading", { name: "Invalid request" }).waitFor();
      await expectLoaded(page);
      expect(await page.getByRole("main").getByRole("alert").textContent()).toMatch(why);
      expect(new URL(page.url()).origin).toBe(world.server.root);
      expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
    }
  });
});
