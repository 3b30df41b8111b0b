/**
 * Who is signed in. The access token lives in this module's memory alone; what brings it back after a reload is the
 * refresh token in an HttpOnly cookie, which no script can read. Tabs of one browser share the cookie: one renews at a
 * time, and each hears where another signs in or out.
 */
import { computed, signal } from "@preact/signals";
import { ApiError, type CallOptions, call, errorOf, send } from "./api.ts";
import type { User } from "./types.ts";

/** unknown: it is being found out. */
export const sessionState = signal<"unknown" | "in" | "out">("unknown");
export const user = signal<User | null>(null);
export const isOperator = computed(() => user.value?.role === "operator");
/** Why a session that should be there isn't back yet, null otherwise. */
export const sessionTrouble = signal<string | null>(null);

let token: string | null = null;
/** ms since the epoch. */
let expiresAt = 0;
let renewing: Promise<boolean> | null = null;
const listeners = new Set<(token: string | null) => void>();
const tabs = new BroadcastChannel("session");

/** Says that there is a cookie to ask for: the page can't see it. */
const HINT = "signed-in";
/** Renewed so long before it expires. */
const AHEAD_MS = 30_000;
const LOCK = "renew-session";

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: null;
}

/** Calls back with each new token, and with null where the session ends. */
export function onToken(listener: (token: string | null) => void): void {
  listeners.add(listener);
}

/** The token that is good for a while yet, null where nobody is signed in. */
export async function accessToken(): Promise<string | null> {
  if (token === null || Date.now() < expiresAt - AHEAD_MS) return token;
  await renew();
  return token;
}

function take(text: string): void {
  token = text;
  const [, payload = ""] = text.split(".");
  const { iat, exp } = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))) as {
    iat: number;
    exp: number;
  };
  // By this machine's clock, whatever that shows.
  expiresAt = Date.now() + (exp - iat) * 1_000;
  localStorage.setItem(HINT, "1");
  for (const listener of listeners) listener(token);
}

function forget(): void {
  token = null;
  expiresAt = 0;
  user.value = null;
  sessionState.value = "out";
  sessionTrouble.value = null;
  localStorage.removeItem(HINT);
  for (const listener of listeners) listener(null);
}

/** True where there is a good token afterwards. */
export function renew(): Promise<boolean> {
  renewing ??= renewAlone().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function renewAlone(): Promise<boolean> {
  const ask = async (): Promise<boolean> => {
    try {
      // It may go on when the page is left: the cookie that it brings is the only one that counts then.
      take((await call<Tokens>("POST", "/auth/refresh", { body: {}, keepalive: true })).access_token);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500)
        throw error;
      forget();
      return false;
    }
  };
  // Where the page isn't served over HTTPS or from the machine itself browsers have no locks.
  return navigator.locks === undefined ? ask() : navigator.locks.request(LOCK, ask);
}

/** Finds out who is signed in: at start, and when another tab signed in. */
export async function startSession(): Promise<void> {
  if (localStorage.getItem(HINT) === null) {
    sessionState.value = "out";
    return;
  }
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    try {
      if (await renew()) await loadUser();
      sessionTrouble.value = null;
      return;
    } catch (error) {
      const { status = 0, retryAfter = null } = error instanceof ApiError ? error : {};
      const seconds = retryAfter ?? wait;
      sessionTrouble.value =
        status === 429
          ? `Too many sign-ins from your network: you are signed in again in ${seconds} s.`
          : "The exchange doesn't answer: trying to sign you in again.";
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    }
  }
}

/** @throws ApiError */
export async function loadUser(): Promise<void> {
  user.value = await request<User>("GET", "/me");
  sessionState.value = "in";
}

/** @throws ApiError */
export async function signIn(email: string, password: string): Promise<void> {
  const answer = await call<Tokens & { user: User }>("POST", "/auth/login", {
    body: { email, password, cookie: true },
  });
  take(answer.access_token);
  user.value = answer.user;
  sessionState.value = "in";
  tabs.postMessage("in");
}

/** After a sign-in that left the page: the cookie is there. @throws ApiError */
export async function signedInElsewhere(): Promise<boolean> {
  if (!(await renew())) return false;
  await loadUser();
  tabs.postMessage("in");
  return true;
}

export async function signOut(): Promise<void> {
  try {
    await call("POST", "/auth/logout", { token });
  } catch (error) {
    // One that has ended already is no mistake.
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
  }
  forget();
  tabs.postMessage("out");
}

/** As `call`, as whoever is signed in. @throws ApiError */
export async function request<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await requestRaw(method, path, options);
  return ((await response.json()) as { data: T }).data;
}

/** The answer itself, of a success. @throws ApiError */
export async function requestRaw(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const first = await send(method, path, { ...options, token: await accessToken() });
  if (first.ok) return first;
  const error = await errorOf(first);
  if (error.status !== 401 || token === null || !(await renew())) throw error;
  const second = await send(method, path, { ...options, token });
  if (!second.ok) throw await errorOf(second);
  return second;
}

tabs.addEventListener("message", ({ data }) => {
  if (data === "out" && sessionState.peek() === "in") forget();
  if (data === "in" && sessionState.peek() !== "in") void signedInByOtherTab();
});

async function signedInByOtherTab(): Promise<void> {
  localStorage.setItem(HINT, "1");
  await startSession();
}
