/**
 * Second factors on the page, with Chromium's virtual authenticator: an authenticator app and a passkey are added, sign in
 * and are removed; an operator finds the desk shut until then, and two of them reset what somebody lost.
 */
import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { OPERATORS } from "../support/markets.ts";
import { AuthenticatorApp, addApp } from "../support/second-factor.ts";
import { World } from "../support/world.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { describeInBrowser, screenshotOnPhone } from "./support/page.ts";
import { expectLoaded, fillInSignIn, PATIENTLY, signInTo } from "./support/person.ts";

const SECURITY = "/account/security";
const NARROW = { width: 360, height: 740 };
/** What Chromium writes of an answer that says no. */
const WRONG_CODE = / 401 .*second-factor/;
/** The socket of a session that ends may hear of it before the answer to the signing out comes, and ask for a token. */
const possible = [/ 40[01] .*auth\/refresh/];

describeInBrowser("second factors", (openPage) => {
  let world: World;
  /** Where passkeys are: by a name. */
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

  test("an authenticator app: added with a code, shown recovery codes once, and asked for at the sign-in", async () => {
    const page = await openPage({ baseURL, expected: [WRONG_CODE, / 400 .*confirm/], possible });
    await signInTo(page, SECURITY, emailOf("app"));
    await expectLoaded(page);
    await proveByPassword(page, "Add an authenticator app");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Name/).fill("My phone");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("img", { name: "QR code with the secret" }).waitFor();
    const app = new AuthenticatorApp(await dialog.getByRole("textbox", { name: "Secret" }).inputValue());
    await expectFits(page, "app");
    await dialog.getByLabel("Code", { exact: true }).fill(app.wrong());
    await dialog.getByRole("button", { name: "Add the app" }).click();
    await dialog.getByText(/wrong, 4 more tries/i).waitFor();
    await dialog.getByLabel("Code", { exact: true }).fill(app.next());
    await dialog.getByRole("button", { name: "Add the app" }).click();
    const codes = dialog.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await expect.poll(() => codes.count(), PATIENTLY).toBe(10);
    const [code] = await codes.allTextContents();
    await expectFits(page, "recovery codes");
    await dialog.getByRole("button", { name: "I have stored them" }).click();
    await page.getByRole("heading", { name: "My phone" }).waitFor();
    await page.getByText("10 left").waitFor();
    await expectFits(page, "security");
    await page.reload();
    await page.getByRole("heading", { name: "My phone" }).waitFor();
    expect(await page.content()).not.toContain(code!);

    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("app"));
    await page.getByRole("heading", { name: "One more step" }).waitFor();
    await expectFits(page, "second step");
    await page.getByLabel("Code").fill(app.wrong());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/wrong, or used before; 4 more tries/i).waitFor();
    await page.getByLabel("Code").fill(app.next());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL((url) => url.pathname === SECURITY);
    await page.getByText("10 left").waitFor();

    // A recovery code, then all of it off again.
    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("app"));
    await page.getByLabel("Code").fill(code!);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("9 left").waitFor();
    await proveByPassword(page, "Remove My phone");
    await page.getByRole("dialog").getByRole("button", { name: "Remove it" }).click();
    await page.getByText("You have none yet.").waitFor();
  });

  test("a passkey: made by the device, signs in, and is refused where the person isn't verified", async () => {
    const page = await openPage({ baseURL, possible });
    const device = await VirtualDevice.of(page);
    await signInTo(page, SECURITY, emailOf("key"));
    await expectLoaded(page);
    await proveByPassword(page, "Add a passkey");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Name/).fill("This laptop");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("button", { name: "I have stored them" }).click();
    await page.getByRole("heading", { name: "This laptop" }).waitFor();
    expect(await device.credentials()).toHaveLength(1);

    await signOut(page);
    await page.goto(`/sign-in?to=${SECURITY}`);
    await fillInSignIn(page, emailOf("key"));
    await page.getByRole("heading", { name: "One more step" }).waitFor();
    await expectFits(page, "passkey step");
    // Nobody touches it with the right finger.
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

    // The same device isn't taken twice.
    await proveByPassword(page, "Add a passkey");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByText(/has a passkey of your account already/).waitFor();
  });

  test("all of it by keyboard", async () => {
    const page = await openPage({ baseURL });
    await signInTo(page, SECURITY, emailOf("keyboard"));
    await expectLoaded(page);
    await page.getByRole("button", { name: "Add an authenticator app" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Is it you?" }).waitFor();
    await page.getByRole("dialog").getByLabel("Password", { exact: true }).focus();
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Add an authenticator app" }).getByLabel(/^Name/).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    const app = new AuthenticatorApp(await dialog.getByRole("textbox", { name: "Secret" }).inputValue());
    await dialog.getByLabel("Code", { exact: true }).focus();
    await page.keyboard.type(app.next());
    await page.keyboard.press("Enter");
    await dialog.getByRole("button", { name: "I have stored them" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate<string>("document.activeElement.id")).toBe("factors");
  });

  test("the desk is shut to an operator without one, and says where to get it; two reset what somebody lost", async () => {
    const { client } = await guests.signIn(world.server, emailOf("lost"));
    await addApp(client);
    const pages: Page[] = [];
    for (const name of ["operator", "second"]) {
      const page = await openPage({ baseURL });
      await VirtualDevice.of(page);
      await signInTo(page, "/desk", emailOf(name));
      await page.getByText(/must sign in with a second factor/).waitFor();
      await expectFits(page, "desk shut");
      await page.getByRole("link", { name: "Open your account's security" }).click();
      await page.getByText(/until then the desk stays shut/).waitFor();
      await proveByPassword(page, "Add a passkey");
      await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "I have stored them" }).click();
      await page.getByText(/the desk is open to you/).waitFor();
      expect(await page.getByRole("button", { name: "Remove Passkey" }).isDisabled()).toBe(true);
      pages.push(page);
    }
    const { id } = await client.get<{ id: number }>("/me");
    for (const [i, page] of pages.entries()) {
      await page.goto(`/desk/users?user=${id}`);
      await page.getByRole("button", { name: "Reset the second factor" }).click();
      await expectFits(page, "reset");
      await page.getByRole("dialog").getByLabel(/note/i).fill("Seen on video.");
      await page.getByRole("dialog").getByRole("button", { name: "Reset it" }).click();
      await page.getByText(i === 0 ? /Another operator must ask for the same/ : /password alone now/).waitFor();
    }
    await pages[0]!.goto("/desk/approvals");
    await pages[0]!.getByText("No second approval is awaited.").waitFor();
    expect((await client.request("GET", "/me")).code).toBe(40100);
  });
});

/** Presses a button that changes second factors, and shows the password that is asked for. */
async function proveByPassword(page: Page, button: string): Promise<void> {
  await page.getByRole("button", { name: button }).click();
  const dialog = page.getByRole("dialog", { name: "Is it you?" });
  const isAsked = dialog.waitFor().then(() => true);
  const goesOn = page.getByRole("dialog").getByRole("button", { name: /^(Continue|Remove it)$/ });
  if (!(await Promise.race([isAsked, goesOn.waitFor().then(() => dialog.isVisible())]))) return;
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.waitFor({ state: "detached" });
}

async function signOut(page: Page): Promise<void> {
  await page.getByLabel("Your account", { exact: true }).first().click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL((url) => url.pathname === "/");
}

/** No barriers, and nothing wider than the narrowest phone. */
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

/** Chromium's own authenticator, built into the machine, with a finger that is right unless it is said otherwise. */
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
