/**
 * Who is signed in. The access token lives in this module's memory alone; what brings it back after a reload is the
 * refresh token in an HttpOnly cookie, which no script can read. Tabs of one browser share the cookie: one renews at a
 * time, and each hears where another signs in or out.
 */
import { computed, signal } from "@preact/signals";
import { ApiError, type CallOptions, call, errorOf, send } from "./api.ts";
import type { SignInChallenge, User } from "./types.ts";
import { toast } from "./ui/toast.tsx";

/** unknown: it is being found out. */
export const sessionState = signal<"unknown" | "in" | "out">("unknown");
export const user = signal<User | null>(null);
export const isOperator = computed(() => user.value?.role === "operator");
/** Why a session that should be there isn't back yet, null otherwise. */
export const sessionNotice = signal<string | null>(null);

let token: string | null = null;
/** ms since the epoch. */
let expiresAt = 0;
/** Renewed so long before it expires, ms. */
let renewBeforeMs = 0;
let renewing: Promise<boolean> | null = null;
let restoring: Promise<void> | null = null;
/** Whoever is signed in ends it here: being told of that by the exchange is no news. */
let isSigningOut = false;
let renewalTimer: ReturnType<typeof setTimeout> | undefined;
/** How long after a renewal that fails the next one comes. */
let renewalRetryMs = 0;
/** Rises where a session ends here: what was asked for before it is nobody's any more. */
let generation = 0;
const listeners = new Set<(token: string | null) => void>();

/** What tabs tell each other: whose session began, or that it ended. */
type TabMessage = { readonly signedIn: number } | "out";
const tabs = new BroadcastChannel("session");
const broadcast = (message: TabMessage): void => tabs.postMessage(message);

/** Says that there is a cookie to ask for: the page can't see it. */
const HINT = "signed-in";
const MAX_RENEW_BEFORE_MS = 30_000;
/** When a page that nobody touches renews its token, so that its stream goes on. */
const IDLE_RENEWAL = { at: 0.75, spread: 0.1 } as const;
/** After one that failed: soon, while the token just spent is still taken for the new one that didn't arrive. */
const RENEWAL_RETRY = { firstMs: 2_000, mostMs: 60_000 } as const;
/** Of requests that bring a cookie: a line that died must not keep all tabs waiting. */
const TIMEOUT_MS = { renewal: 5_000, signIn: 20_000 } as const;
const LOCK = "renew-session";
const OTHER_USER_TEXT = "Another account has signed in in this browser, and so here too.";

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: null;
}

/** Calls back with each new token, and with null where the session ends. */
export function onToken(listener: (token: string | null) => void): void {
  listeners.add(listener);
}

/** The token that is good for a while yet, null where nobody is signed in. @throws ApiError */
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
  // Somebody else signed in in another tab: nothing that is shown here is theirs.
  if (user.peek() !== null && user.peek()!.id !== Number(sub)) clearSession(OTHER_USER_TEXT);
  token = text;
  // By this machine's clock, whatever that shows.
  const lifeMs = (exp - iat) * 1_000;
  expiresAt = Date.now() + lifeMs;
  renewBeforeMs = Math.min(MAX_RENEW_BEFORE_MS, lifeMs / 5);
  const { at, spread } = IDLE_RENEWAL;
  renewalRetryMs = RENEWAL_RETRY.firstMs;
  scheduleRenewal(lifeMs * (at + spread * Math.random()));
  localStorage.setItem(HINT, "1");
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

/** @param why told to whoever was signed in and didn't end it here */
function clearSession(why: string | null = null): void {
  if (why !== null) toast(why, true);
  generation++;
  clearTimeout(renewalTimer);
  token = null;
  expiresAt = 0;
  user.value = null;
  sessionState.value = "out";
  sessionNotice.value = null;
  localStorage.removeItem(HINT);
  for (const listener of listeners) listener(null);
}

/** True where there is a good token afterwards, and its user is known. @throws ApiError where nobody could say */
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

/** One tab at a time: the cookie of an answer that is under way would come after the new one. */
function withRenewalLock<T>(run: () => Promise<T>): Promise<T> {
  // Where the page isn't served over HTTPS or from the machine itself browsers have no locks.
  return navigator.locks === undefined ? run() : navigator.locks.request(LOCK, run);
}

async function renewUnderLock(): Promise<boolean> {
  await withRenewalLock(async () => {
    const asked = generation;
    try {
      // It may go on when the page is left: the cookie that it brings is the only one that counts then.
      const options = { body: {}, keepalive: true, signal: AbortSignal.timeout(TIMEOUT_MS.renewal) };
      const { access_token } = await call<Tokens>("POST", "/auth/refresh", options);
      // Unless they signed out meanwhile.
      if (generation === asked) storeToken(access_token);
    } catch (error) {
      if (!isRejection(error)) throw error;
      if (generation === asked) clearSession(sessionEndText(error));
    }
  });
  if (token !== null && user.peek() === null) {
    const asked = generation;
    const found = await call<User>("GET", "/me", { token });
    if (generation === asked) setUser(found);
  }
  return token !== null;
}

function setUser(found: User): void {
  user.value = found;
  sessionState.value = "in";
  sessionNotice.value = null;
}

/** The session is over, other than where the exchange didn't answer or asks to wait. */
function isRejection(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status !== 0 && error.status !== 429 && error.status < 500;
}

function sessionEndText({ status, message }: ApiError): string | null {
  if (status === 403) return `You are signed out: ${message}.`;
  return user.peek() === null || isSigningOut
    ? null
    : "Your session has ended: it was ended elsewhere, or its time was over.";
}

/** Finds out who is signed in: at start, and when another tab signed in. */
export function startSession(): Promise<void> {
  restoring ??= restoreSession().finally(() => {
    restoring = null;
  });
  return restoring;
}

async function restoreSession(): Promise<void> {
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    if (localStorage.getItem(HINT) === null) {
      clearSession();
      return;
    }
    try {
      await renew();
      // Unless it was begun for whoever was here before.
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
          ? `Too many sign-ins from your network: you are signed in again in ${seconds} s`
          : "The exchange doesn't answer: trying to sign you in again";
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    }
  }
}

/** Reads the caller's account anew. @throws ApiError */
export async function loadUser(): Promise<void> {
  setUser(await request<User>("GET", "/me"));
}

type SignedIn = Tokens & { readonly user: User };

/** @returns what is still to be answered, null where one is in @throws ApiError */
export async function signIn(email: string, password: string): Promise<SignInChallenge | null> {
  const answer = await postSignIn("/auth/login", { email, password });
  if ("challenge" in answer) return answer;
  completeSignIn(answer);
  return null;
}

/** The second step. @param shown a code, or what the browser says of a passkey @throws ApiError */
export async function finishSignIn(challenge: string, shown: { code: string } | { passkey: object }): Promise<void> {
  completeSignIn((await postSignIn("/auth/login/second-factor", { challenge, ...shown })) as SignedIn);
}

async function postSignIn(path: string, body: object): Promise<SignedIn | SignInChallenge> {
  await renewing?.catch(() => {});
  const options = { body: { ...body, cookie: true }, signal: AbortSignal.timeout(TIMEOUT_MS.signIn) };
  return withRenewalLock(() => call<SignedIn | SignInChallenge>("POST", path, options));
}

function completeSignIn(answer: SignedIn): void {
  storeToken(answer.access_token);
  setUser(answer.user);
  broadcast({ signedIn: answer.user.id });
}

/** After a sign-in that left the page: the cookie is there. Null where it isn't. @throws ApiError */
export async function completeProviderSignIn(): Promise<User | null> {
  if (!(await renew())) return null;
  const found = user.peek()!;
  broadcast({ signedIn: found.id });
  return found;
}

/** @throws ApiError where the session may live on */
export async function signOut(): Promise<void> {
  isSigningOut = true;
  try {
    await request("POST", "/auth/logout");
  } catch (error) {
    // One that has ended already is no mistake.
    if (!(error instanceof ApiError) || (error.status !== 401 && error.status !== 403)) throw error;
  } finally {
    isSigningOut = false;
  }
  clearSession();
  broadcast("out");
}

/** As `call`, as whoever is signed in. @throws ApiError */
export async function request<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await requestRaw(method, path, options);
  return ((await response.json()) as { data: T }).data;
}

/** The answer itself, of a success. @throws ApiError */
export async function requestRaw(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const asked = generation;
  const used = await accessToken();
  assertSameSession(asked);
  const first = await send(method, path, { ...options, token: used });
  // Nor is what one may see shown to another.
  if (used !== null) assertSameSession(asked);
  if (first.ok) return first;
  const error = await errorOf(first);
  if (error.status !== 401 || used === null) throw error;
  // Another request may have brought a new token meanwhile.
  if (token === used && !(await renew())) throw error;
  assertSameSession(asked);
  const second = await send(method, path, { ...options, token });
  assertSameSession(asked);
  if (!second.ok) throw await errorOf(second);
  return second;
}

/** What one user asked for is never done as another. @throws ApiError */
function assertSameSession(asked: number): void {
  if (generation !== asked) throw new ApiError(401, 40100, "you were signed out meanwhile", null, null);
}

tabs.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
  if (data === "out") {
    if (token !== null) clearSession();
    return;
  }
  if (user.peek()?.id === data.signedIn) return;
  if (user.peek() !== null) clearSession(OTHER_USER_TEXT);
  localStorage.setItem(HINT, "1");
  sessionState.value = "unknown";
  void startSession();
});

// A page that comes back from the browser's memory heard nothing of other tabs.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) void startSession();
});
