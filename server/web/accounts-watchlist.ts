/** The account's watchlist: what a guest had is added at the sign-in. Loaded, and started, once somebody has signed in. */
import { computed, effect } from "@preact/signals";
import { ApiError } from "./api.ts";
import { request, sessionState } from "./session.ts";
import { streamState } from "./stream.ts";
import type { Watchlist } from "./types.ts";
import { account, forgetGuests, readGuests, type Watched, watchlist } from "./watchlist.ts";

/** The number of the latest request: older responses are out of date. */
let latest = 0;

async function ask(method: "GET" | "PATCH", options: { body?: object } = {}): Promise<void> {
  const number = ++latest;
  const { items } = await request<Watchlist>(method, "/me/watchlist", options);
  if (number === latest) watchlist.value = items;
}

/** Reads the list, with the guest's added. What fails is tried again when the connection or the user comes back. */
async function read(): Promise<void> {
  const guests = readGuests();
  try {
    await (guests.length > 0 ? ask("PATCH", { body: { add: guests } }) : ask("GET"));
    forgetGuests();
  } catch (error) {
    // Something in it doesn't exist, or there is no room.
    if (guests.length === 0 || !(error instanceof ApiError) || ![400, 404, 409].includes(error.status)) return;
    forgetGuests();
    await read();
  }
}

const change = (watched: Watched, isAdded: boolean): Promise<void> =>
  ask("PATCH", { body: { [isAdded ? "add" : "remove"]: [watched] } });

const isStale = computed(() => streamState.value === "stale");
effect(() => {
  const isIn = sessionState.value === "in";
  account.change = isIn ? change : null;
  if (isIn && !isStale.value) void read();
  if (sessionState.value === "out") {
    latest++;
    watchlist.value = readGuests();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && sessionState.peek() === "in") void read();
});
