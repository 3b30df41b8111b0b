/**
 * Second factors on the page, with Chromium's virtual authenticator: an authenticator app and a passkey are added, sign in
 * and are removed; the desk is closed to operators without one, and two operators reset a lost second factor.
 */
import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { OPERATORS } from "../support/markets.ts";
import { AuthenticatorApp, addApp } from "../support/second-factor.ts";
import { World } from "../support/world.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { NO_BROWSER, screenshotOnPhone, useBrowser } from "./support/page.ts";
import { expectLoaded, fillInSignIn, PATIENTLY, signInTo } from "./support/user-actions.ts";

const SECURITY = "/account/security";
const NARROW = { width: 360, height: 740 };
/** What Chromium logs for a rejected code. */
const WRONG_CODE = / 401 .*second-factor/;
/** The socket of an ending session may close before the sign-out completes, and then tries to renew the token. */
const possible = [/ 40[01] .*auth\/refresh/];

describe.skipIf(NO_BROWSER)("second factors", () => {
  const openPage = useBrowser();
  let world: World;
  /** Passkeys require a host name. */
  let baseURL: string;
  const guests = new Guests();
  beforeAll(async () => {
    const names = ["app", "key", "lost", "keyboard"];
    const named = Object.fromEntries(names.map((name) => [name, { password: PASSWORD, deposit: 0 }]));
    world = await World.start({
      users: 0,
      named: { ...named, ...OPERATORS },
      env: { PUBLIC_URL: "http://localhost:0", REQUIRE_OPERATOR_SECOND_FACTOR: "on" },
    });
    baseURL = `http://localhost:${world.server.port}`;
  });
  afterAll(async () => {
    guests.close();
    await expectEndsWell(world);
  });

  const emailOf = (name: string): string => `${name}@example.com`;

  test("an authenticator app: added with a code, recovery codes shown once, required at sign-in", async () => {
    const page = await openPage({ baseURL, expected: [WRONG_CODE, / 400 .*confirm/], possible });
    await signInTo(page, SECURITY, emailOf("app"));
    await expectLoaded(page);
    await proveByPassword(page, "Add authenticator app");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Name/).fill("My phone");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("img", { name: "QR code with the secret" }).waitFor();
    const app = new AuthenticatorApp(await dialog.getByRole("textbox", { name: "Secret" }).inputValue());
    await expectFits(page, "app");
    await dialog.getByLabel("Code", { exact: true }).fill(app.wrong());
    await dialog.getByRole("button", { name: "Add app" }).click();
    await dialog.getByText(/wrong, 4 more tries/i).waitFor();
    await dialog.getByLabel("Code", { exact: true }).fill(app.next());
    await dialog.getByRole("button", { name: "Add app" }).click();
    const codes = dialog.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await expect.poll(() => codes.count(), PATIENTLY).toBe(10);
    const [code] = await codes.allTextContents();
    await expectFits(page, "recovery codes");
    await dialog.getByRole("button", { name: "I've stored them" }).click();
    await page.getByRole("heading", { name: "My phone" }).waitFor();
    await page.getByText("10 left").waitFor();
    await expectFits(page, "security");
    await page.reload();
    await page.getByRole("heading", { name: "My phone" }).waitFor();
    expect(await page.content()).not.toContain(code!);

    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("app"));
    await page.getByRole("heading", { name: "Two-factor authentication" }).waitFor();
    await expectFits(page, "second step");
    await page.getByLabel("Code").fill(app.wrong());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/wrong, or used before; 4 more tries/i).waitFor();
    await page.getByLabel("Code").fill(app.next());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL((url) => url.pathname === SECURITY);
    await page.getByText("10 left").waitFor();

    // A recovery code, then removal of the second factor.
    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("app"));
    await page.getByLabel("Code").fill(code!);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("9 left").waitFor();
    await proveByPassword(page, "Remove My phone");
    await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("No second factors.").waitFor();
  });

  test("a passkey: created by the device, signs in, and is rejected without user verification", async () => {
    const page = await openPage({ baseURL, possible });
    const device = await VirtualDevice.of(page);
    await signInTo(page, SECURITY, emailOf("key"));
    await expectLoaded(page);
    await proveByPassword(page, "Add passkey");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Name/).fill("This laptop");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("button", { name: "I've stored them" }).click();
    await page.getByRole("heading", { name: "This laptop" }).waitFor();
    expect(await device.credentials()).toHaveLength(1);

    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("key"));
    await page.getByRole("heading", { name: "Two-factor authentication" }).waitFor();
    await expectFits(page, "passkey step");
    // The fingerprint doesn't match.
    await device.setVerified(false);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByText(/The passkey wasn't used/).waitFor(PATIENTLY);
    await device.setVerified(true);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.waitForURL((url) => url.pathname === SECURITY);
    await page.getByRole("heading", { name: "This laptop" }).waitFor();
    const [made] = await device.credentials();
    expect(made).toMatchObject({ rpId: "localhost", isResidentCredential: true });
    expect(made!.signCount).toBeGreaterThan(1);

    // The same device can't be added twice.
    await proveByPassword(page, "Add passkey");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByText(/already has a passkey for your account/).waitFor();
  });

  test("a second factor works by keyboard", async () => {
    const page = await openPage({ baseURL });
    await signInTo(page, SECURITY, emailOf("keyboard"));
    await expectLoaded(page);
    await page.getByRole("button", { name: "Add authenticator app" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Confirm it's you" }).waitFor();
    await page.getByRole("dialog").getByLabel("Password", { exact: true }).focus();
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Add authenticator app" }).getByLabel(/^Name/).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    const app = new AuthenticatorApp(await dialog.getByRole("textbox", { name: "Secret" }).inputValue());
    await dialog.getByLabel("Code", { exact: true }).focus();
    await page.keyboard.type(app.next());
    await page.keyboard.press("Enter");
    await dialog.getByRole("button", { name: "I've stored them" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate<string>("document.activeElement.id")).toBe("factors");
  });

  test("the desk is closed to an operator without a second factor, and links to setup; two operators reset a lost one", async () => {
    const { client } = await guests.signIn(world.server, emailOf("lost"));
    await addApp(client);
    const pages: Page[] = [];
    for (const name of ["operator", "second"]) {
      const page = await openPage({ baseURL });
      await VirtualDevice.of(page);
      await signInTo(page, "/desk", emailOf(name));
      await page.getByText(/must sign in with a second factor/).waitFor();
      await expectFits(page, "desk closed");
      await page.getByRole("link", { name: "Open security settings" }).click();
      await page.getByText(/Add one to use the operator desk/).waitFor();
      await proveByPassword(page, "Add passkey");
      await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "I've stored them" }).click();
      await page.getByText(/can use the operator desk/).waitFor();
      expect(await page.getByRole("button", { name: "Remove Passkey" }).isDisabled()).toBe(true);
      pages.push(page);
    }
    const { id } = await client.get<{ id: number }>("/me");
    for (const [i, page] of pages.entries()) {
      await page.goto(`/desk/users?user=${id}`);
      await page.getByRole("button", { name: "Reset second factor" }).click();
      await expectFits(page, "reset");
      await page.getByRole("dialog").getByLabel(/note/i).fill("Seen on video.");
      await page.getByRole("dialog").getByRole("button", { name: "Reset", exact: true }).click();
      await page.getByText(i === 0 ? /another operator must repeat the action/ : /with the password alone/).waitFor();
    }
    await pages[0]!.goto("/desk/approvals");
    await pages[0]!.getByText("No approvals pending.").waitFor();
    expect((await client.request("GET", "/me")).code).toBe(40100);
  });
});

/** Clicks a button that changes second factors, and proves the identity by password if asked. */
async function proveByPassword(page: Page, button: string): Promise<void> {
  await page.getByRole("button", { name: button }).click();
  const dialog = page.getByRole("dialog", { name: "Confirm it's you" });
  const asksForProof = dialog.waitFor().then(() => true);
  const nextButton = page.getByRole("dialog").getByRole("button", { name: /^(Continue|Remove)$/ });
  if (!(await Promise.race([asksForProof, nextButton.waitFor().then(() => dialog.isVisible())]))) return;
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.waitFor({ state: "detached" });
}

async function signOut(page: Page): Promise<void> {
  await page.getByLabel("Account menu").first().click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL((url) => url.pathname === "/");
}

/** Expects the page to be accessible, and to fit the narrowest phone. */
async function expectFits(page: Page, name: string): Promise<void> {
  await expectAccessible(page);
  const before = page.viewportSize()!;
  await page.setViewportSize(NARROW);
  expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth"), name).toBeLessThanOrEqual(0);
  await page.setViewportSize(before);
  await screenshotOnPhone(page, `second-factor-${name.replaceAll(" ", "-")}`);
}

interface Credential {
  readonly rpId?: string;
  readonly isResidentCredential: boolean;
  readonly signCount: number;
}

/** Chromium's virtual platform authenticator, with successful user verification by default. */
class VirtualDevice {
  private readonly session: CDPSession;
  private readonly authenticatorId: string;

  private constructor(session: CDPSession, authenticatorId: string) {
    this.session = session;
    this.authenticatorId = authenticatorId;
  }

  static async of(page: Page): Promise<VirtualDevice> {
    const session = await page.context().newCDPSession(page);
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return new VirtualDevice(session, authenticatorId);
  }

  async credentials(): Promise<Credential[]> {
    const { authenticatorId } = this;
    return (await this.session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  }

  async setVerified(isUserVerified: boolean): Promise<void> {
    const { authenticatorId } = this;
    await this.session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  }
}
