/**
 * A third party asks for access to somebody's account, in a browser: registered, let in, used, sent away, refused. What
 * the endpoints take and give is test/oauth/oauth.test.ts.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
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
import { describeInBrowser } from "./support/page.ts";
import { expectLoaded, fillInSignIn, signInTo } from "./support/person.ts";

const NAME = "Portfolio Viewer";
const SCOPE = "orders:write portfolio:read";

describeInBrowser("a third party", (openPage) => {
  let world: World;
  let app: Server;
  /** Of the app, where users come back to. */
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

  /** Where the app sends a user, with changed parameters. */
  const requestOf = (changes: Params = {}) => {
    const { params, verifier } = authorizationRequest(clientId, SCOPE, callback);
    const query = new URLSearchParams({ ...params, ...changes });
    return { address: `${API_BASE}/oauth/authorize?${query}`, state: params["state"]!, verifier };
  };
  const cameBack = async (page: Page): Promise<URLSearchParams> => {
    await page.waitForURL(`${callback}?*`);
    return new URL(page.url()).searchParams;
  };
  const askedFor = (page: Page): Promise<void> =>
    page.getByRole("heading", { level: 1, name: `Let "${NAME}" use your account?` }).waitFor();

  test("is registered on the page", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/account/apps", "developer@example.com");
    const form = page.getByRole("form", { name: "Register an app" });
    await form.getByLabel("Name").fill(NAME);
    await form.getByLabel("Redirect URIs").fill("http://client.example/callback");
    await form.getByLabel("It can keep a secret").uncheck();
    await form.getByRole("button", { name: "Register the app" }).click();
    await form.getByText(/is none of: an https address/).waitFor();
    await form.getByLabel("Redirect URIs").fill(callback);
    await form.getByRole("button", { name: "Register the app" }).click();
    const own = page.getByRole("region", { name: "Your own apps" }).getByRole("listitem").filter({ hasText: NAME });
    clientId = (await own.getByRole("definition").first().textContent())!;
    expect(await own.getByRole("definition").nth(1).textContent()).toBe(callback);
  });

  test("is let in by a person who signs in for it, and sent away again", async () => {
    const page = await openPage({ baseURL: world.server.root });
    const { address, state, verifier } = requestOf();
    await page.goto(address);
    await page.getByRole("heading", { name: "Sign in first" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Sign in" }).click();
    await fillInSignIn(page, "person@example.com");
    await askedFor(page);
    expect(await page.getByRole("main").getByRole("listitem").locator("strong").allTextContents()).toEqual([
      "Trade for you",
      "See your portfolio",
    ]);
    expect(await page.getByRole("main").textContent()).toContain(new URL(callback).host);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    const given = await cameBack(page);
    expect([given.get("state"), given.get("iss")]).toEqual([state, world.server.root]);

    const fields = { client_id: clientId, ...redemption({ code: given.get("code")!, verifier }, callback) };
    const { status, data } = await postForm<OAuthTokensJson>(world, "/oauth/token", fields);
    expect([status, data.scope]).toEqual([200, SCOPE]);
    const read = async (): Promise<number> =>
      (await askOnce(world.server, data.access_token, "GET", "/me/positions")).status;
    expect(await read()).toBe(200);

    await page.goto("/account/apps");
    const granted = page.getByRole("region", { name: "Apps that may use your account" });
    await granted.getByText(/^May: .*Trade for you/).waitFor();
    await granted.getByRole("button", { name: `Revoke access of ${NAME}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke access" }).click();
    await granted.getByText("You let no app use your account.").waitFor();
    expect(await read()).toBe(401);
    const again = { client_id: clientId, grant_type: "refresh_token", refresh_token: data.refresh_token };
    expect((await postForm(world, "/oauth/token", again)).status).toBe(400);
  });

  test("hears that it was refused", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/portfolio", "person@example.com");
    const { address, state } = requestOf();
    await page.goto(address);
    await askedFor(page);
    await page.getByRole("button", { name: "Don't allow" }).click();
    const given = await cameBack(page);
    expect([given.get("error"), given.get("state"), given.get("code")]).toEqual(["access_denied", state, null]);
    await page.goto("/account/apps");
    await page.getByText("You let no app use your account.").waitFor();
  });

  test("can't lead anybody to an address that it hasn't registered", async () => {
    const page = await openPage({ baseURL: world.server.root, expected: [/ 404 .*oauth\/clients\/nobody/] });
    await signInTo(page, "/portfolio", "person@example.com");
    for (const [changes, why] of [
      [{ redirect_uri: `${callback}/other` }, /would lead to an address that this app hasn't registered/],
      [{ client_id: "nobody" }, /isn't registered at this exchange/],
    ] as const) {
      await page.goto(requestOf(changes).address);
      await page.getByRole("heading", { name: "This request can't be answered" }).waitFor();
      await expectLoaded(page);
      expect(await page.getByRole("main").getByRole("alert").textContent()).toMatch(why);
      expect(new URL(page.url()).origin).toBe(world.server.root);
      expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
    }
  });
});
