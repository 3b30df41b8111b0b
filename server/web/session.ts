/**
 * The signed-in session. Keeps the access token in memory only; after a reload, the refresh token in an HttpOnly cookie,
 * which no script can read, restores it. Tabs of a browser share the cookie: only one renews at a time, and each learns
 * when another signs in or out.
 */

import { computed, signal } from "@preact/signals";
import { ApiError, type CallOptions, call, errorOf, send } from "./api.ts";
import { exclusively, kept, openTabs } from "./browser.ts";
import { required } from "./required.ts";
import type { SignInChallenge, User } from "./types.ts";
import { toast } from "./ui/toast.tsx";

/** "unknown" until the session is restored or known to be gone. */
export const sessionState = signal<"unknown" | "in" | "out">("unknown");
export const user = signal<User | null>(null);
/** The signed-in user, for pages and steps that require one. */
export const signedInUser = (): User => required(user.value, "a signed-in user");
export const isOperator = computed(() => user.value?.role === "operator");
/** Why restoring the session takes longer, for the user; null otherwise. */
export const sessionNotice = signal<string | null>(null);

let token: string | null = null;
/** Expiry of the token, ms since the epoch. */
let expiresAt = 0;
/** How long before its expiry the token is renewed, ms. */
let renewBeforeMs = 0;
let renewing: Promise<boolean> | null = null;
let restoring: Promise<void> | null = null;
/** The user is signing out here: the server's rejection of the session is no news then. */
let isSigningOut = false;
let renewalTimer: ReturnType<typeof setTimeout> | undefined;
/** Delay before the next try after a failed renewal, ms. */
let renewalRetryMs = 0;
/** Incremented when a session ends: responses to earlier requests belong to nobody. */
let generation = 0;
const listeners = new Set<(token: string | null) => void>();

/** Message between tabs: whose session began, or that it ended. */
type TabMessage = { readonly signedIn: number } | "out";
const tabs = openTabs<TabMessage>("session", receiveFromTab);
const broadcast = (message: TabMessage): void => tabs.send(message);

/** Kept by the browser: a refresh cookie probably exists. The page can't see the cookie itself. */
const HINT = "signed-in";
const MAX_RENEW_BEFORE_MS = 30_000;
/** Fraction of the token's lifetime after which an idle page renews it, so that its stream continues. */
const IDLE_RENEWAL = { at: 0.75, spread: 0.1 } as const;
/** Retries a failed renewal soon, while the server still accepts the spent token in place of the undelivered one. */
const RENEWAL_RETRY = { firstMs: 2_000, mostMs: 60_000 } as const;
/** Timeouts of requests that set the cookie: a dead connection must not block all tabs. */
const TIMEOUT_MS = { renewal: 5_000, signIn: 20_000 } as const;
const LOCK = "renew-session";
const OTHER_USER_TEXT = "Another account has signed in in this browser.";

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: null;
}

/** Calls the listener with each new token, and with null when the session ends. */
export function onToken(listener: (token: string | null) => void): void {
  listeners.add(listener);
}

/** Returns a token that stays valid for a while; null if nobody is signed in. @throws ApiError */
export async function accessToken(): Promise<string | null> {
  if (token === null || Date.now() < expiresAt - renewBeforeMs) return token;
  try {
    await renew();
  } catch (error) {
    if (Date.now() >= expiresAt) throw error;
  }
  return token;
}

interface Claims {
  readonly sub: string;
  readonly iat: number;
  readonly exp: number;
}

function storeToken(text: string): void {
  const [, payload = ""] = text.split(".");
  const { sub, iat, exp } = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))) as Claims;
  // Another user signed in in another tab: nothing shown here is theirs.
  const known = user.peek();
  if (known !== null && known.id !== Number(sub)) clearSession(OTHER_USER_TEXT);
  token = text;
  // Relative to this machine's clock, which may be wrong.
  const lifeMs = (exp - iat) * 1_000;
  expiresAt = Date.now() + lifeMs;
  renewBeforeMs = Math.min(MAX_RENEW_BEFORE_MS, lifeMs / 5);
  const { at, spread } = IDLE_RENEWAL;
  renewalRetryMs = RENEWAL_RETRY.firstMs;
  scheduleRenewal(lifeMs * (at + spread * Math.random()));
  kept.set(HINT, "1");
  for (const listener of listeners) listener(token);
}

function scheduleRenewal(waitMs: number): void {
  clearTimeout(renewalTimer);
  renewalTimer = setTimeout(() => void renew().catch(() => {}), waitMs);
}

function scheduleRenewalRetry(error: unknown): void {
  const { retryAfter = null } = error instanceof ApiError ? error : {};
  scheduleRenewal(retryAfter === null ? renewalRetryMs : retryAfter * 1_000);
  renewalRetryMs = Math.min(2 * renewalRetryMs, RENEWAL_RETRY.mostMs);
}

/** @param why shown to a user who didn't end the session here; null: show nothing */
function clearSession(why: string | null = null): void {
  if (why !== null) toast(why, true);
  generation++;
  clearTimeout(renewalTimer);
  token = null;
  expiresAt = 0;
  user.value = null;
  sessionState.value = "out";
  sessionNotice.value = null;
  kept.set(HINT, null);
  for (const listener of listeners) listener(null);
}

/** Renews the token. Returns true if the user is signed in afterwards. @throws ApiError if the server can't be reached or is busy */
export function renew(): Promise<boolean> {
  renewing ??= renewUnderLock()
    .catch((error) => {
      if (token !== null) scheduleRenewalRetry(error);
      throw error;
    })
    .finally(() => {
      renewing = null;
    });
  return renewing;
}

/** One tab at a time: a response still in flight would overwrite the newer cookie. */
function withRenewalLock<T>(run: () => Promise<T>): Promise<T> {
  return exclusively(LOCK, run);
}

async function renewUnderLock(): Promise<boolean> {
  await withRenewalLock(async () => {
    const startGeneration = generation;
    try {
      // keepalive: the server has already replaced the cookie, so that the response must arrive even if the page closes.
      const options = { body: {}, keepalive: true, signal: AbortSignal.timeout(TIMEOUT_MS.renewal) };
      const { access_token } = await call<Tokens>("POST", "/auth/refresh", options);
      // Unless the user has signed out in the meantime.
      if (generation === startGeneration) storeToken(access_token);
    } catch (error) {
      if (!isRejection(error)) throw error;
      if (generation === startGeneration) clearSession(sessionEndText(error));
    }
  });
  if (token !== null && user.peek() === null) {
    const startGeneration = generation;
    const found = await call<User>("GET", "/me", { token });
    if (generation === startGeneration) setUser(found);
  }
  return token !== null;
}

function setUser(found: User): void {
  user.value = found;
  sessionState.value = "in";
  sessionNotice.value = null;
}

/** The server rejected the session, as opposed to no response, a rate limit or a server error. */
function isRejection(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status !== 0 && error.status !== 429 && error.status < 500;
}

function sessionEndText({ status, message }: ApiError): string | null {
  if (status === 403) return `You've been signed out: ${message}.`;
  return user.peek() === null || isSigningOut ? null : "Your session has expired or was ended elsewhere.";
}

/** Restores the session: at startup, and when another tab signs in. */
export function startSession(): Promise<void> {
  restoring ??= restoreSession().finally(() => {
    restoring = null;
  });
  return restoring;
}

async function restoreSession(): Promise<void> {
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    // Without site data the page can't know, and asks.
    if (kept.get(HINT) === null && kept.isShared) {
      clearSession();
      return;
    }
    try {
      await renew();
      // Still unknown if that renewal began for the previous user.
      if (sessionState.peek() !== "unknown") return;
    } catch (error) {
      if (isRejection(error)) {
        clearSession(sessionEndText(error));
        return;
      }
      const { status = 0, retryAfter = null } = error instanceof ApiError ? error : {};
      const seconds = retryAfter ?? wait;
      sessionNotice.value =
        status === 429
          ? `Too many sign-ins from your network. Retrying in ${seconds} s`
          : "Can't reach the exchange. Retrying";
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    }
  }
}

/** Refreshes the signed-in user. @throws ApiError */
export async function loadUser(): Promise<void> {
  setUser(await request<User>("GET", "/me"));
}

type SignedIn = Tokens & { readonly user: User };

/** Signs in. @returns the second-factor challenge, null if signed in @throws ApiError */
export async function signIn(email: string, password: string): Promise<SignInChallenge | null> {
  const response = await postSignIn("/auth/login", { email, password });
  if ("challenge" in response) return response;
  completeSignIn(response);
  return null;
}

/** Completes a second-factor challenge. @param shown a code, or the browser's passkey assertion @throws ApiError */
export async function finishSignIn(challenge: string, shown: { code: string } | { passkey: object }): Promise<void> {
  completeSignIn((await postSignIn("/auth/login/second-factor", { challenge, ...shown })) as SignedIn);
}

async function postSignIn(path: string, body: object): Promise<SignedIn | SignInChallenge> {
  await renewing?.catch(() => {});
  const options = { body: { ...body, cookie: true }, signal: AbortSignal.timeout(TIMEOUT_MS.signIn) };
  return withRenewalLock(() => call<SignedIn | SignInChallenge>("POST", path, options));
}

function completeSignIn(response: SignedIn): void {
  storeToken(response.access_token);
  setUser(response.user);
  broadcast({ signedIn: response.user.id });
}

/** Picks up the cookie that an identity provider's sign-in has set. @returns null without a session @throws ApiError */
export async function completeProviderSignIn(): Promise<User | null> {
  if (!(await renew())) return null;
  const found = signedInUser();
  broadcast({ signedIn: found.id });
  return found;
}

/** Signs out. @throws ApiError if the session may still be alive */
export async function signOut(): Promise<void> {
  isSigningOut = true;
  try {
    await request("POST", "/auth/logout");
  } catch (error) {
    // A session that has already ended is fine.
    if (!(error instanceof ApiError) || (error.status !== 401 && error.status !== 403)) throw error;
  } finally {
    isSigningOut = false;
  }
  clearSession();
  broadcast("out");
}

/** As `call`, with the session's token. @throws ApiError */
export async function request<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await requestRaw(method, path, options);
  return ((await response.json()) as { data: T }).data;
}

/** As `request`, but returns the successful response itself. @throws ApiError */
export async function requestRaw(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const startGeneration = generation;
  const used = await accessToken();
  assertSameSession(startGeneration);
  const first = await send(method, path, { ...options, token: used });
  // One user's data is never shown to another.
  if (used !== null) assertSameSession(startGeneration);
  if (first.ok) return first;
  const error = await errorOf(first);
  if (error.status !== 401 || used === null) throw error;
  // A concurrent request may have renewed the token.
  if (token === used && !(await renew())) throw error;
  assertSameSession(startGeneration);
  const second = await send(method, path, { ...options, token });
  assertSameSession(startGeneration);
  if (!second.ok) throw await errorOf(second);
  return second;
}

/** Makes sure that a request runs as the user who made it. @throws ApiError */
function assertSameSession(startGeneration: number): void {
  if (generation !== startGeneration) throw new ApiError(401, 40100, "signed out in the meantime", null, null);
}

function receiveFromTab(message: TabMessage): void {
  if (message === "out") {
    if (token !== null) clearSession();
    return;
  }
  if (user.peek()?.id === message.signedIn) return;
  if (user.peek() !== null) clearSession(OTHER_USER_TEXT);
  kept.set(HINT, "1");
  sessionState.value = "unknown";
  void startSession();
}

// A page restored from the back-forward cache has missed the messages of other tabs.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) void startSession();
});
