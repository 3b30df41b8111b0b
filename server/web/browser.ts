/**
 * What a browser may refuse, lack or break: storage, other tabs, locks, the clipboard, names of countries. Each has a
 * replacement in memory, so that the page works without it. The linter keeps other files from using them directly.
 */

/** A key that nobody else uses. */
const PROBE = "probe";

/** Texts by key that outlive the page, where the browser lets them; else they live as long as the page. */
class Kept {
  private readonly storage: () => Storage | null;
  private readonly memory = new Map<string, string | null>();

  /** @param storage throws, or is null, where the user allows no site data */
  constructor(storage: () => Storage | null) {
    this.storage = storage;
  }

  get(key: string): string | null {
    const own = this.memory.get(key);
    if (own !== undefined) return own;
    try {
      return this.storage()?.getItem(key) ?? null;
    } catch {
      return null;
    }
  }

  /** @param value null removes it */
  set(key: string, value: string | null): void {
    this.memory.delete(key);
    try {
      const storage = this.storage();
      if (value === null) storage?.removeItem(key);
      else storage?.setItem(key, value);
      if (storage !== null && storage !== undefined) return;
    } catch {
      // No storage, or a full one.
    }
    this.memory.set(key, value);
  }

  /** Whether another page can know what this one keeps. */
  get isShared(): boolean {
    try {
      const storage = this.storage();
      storage?.setItem(PROBE, "");
      storage?.removeItem(PROBE);
      return storage !== null && storage !== undefined;
    } catch {
      return false;
    }
  }
}

/** Shared by the tabs of this site. */
export const kept = new Kept(() => window.localStorage);
/** This tab's own. */
export const keptInTab = new Kept(() => window.sessionStorage);

/** Messages between the tabs of this site. Without it, each tab goes its own way. */
export interface Tabs<T> {
  send(message: T): void;
}

export function openTabs<T>(name: string, receive: (message: T) => void): Tabs<T> {
  try {
    const channel = new BroadcastChannel(name);
    channel.addEventListener("message", ({ data }: MessageEvent<T>) => receive(data));
    return { send: (message) => channel.postMessage(message) };
  } catch {
    return { send: () => {} };
  }
}

/** Runs in one tab at a time, where the browser has locks: over HTTPS and on localhost only. */
export async function exclusively<T>(name: string, run: () => Promise<T>): Promise<T> {
  let hasBegun = false;
  const begin = (): Promise<T> => {
    hasBegun = true;
    return run();
  };
  try {
    if (navigator.locks !== undefined) return await navigator.locks.request(name, begin);
  } catch (error) {
    if (hasBegun) throw error;
  }
  return run();
}

/** Copies the text, over plain HTTP as well. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers offer the clipboard over HTTPS only; this older call works everywhere.
    const field = document.createElement("textarea");
    field.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Names of countries and territories in English; their codes where the browser has no such data. */
export const regionName: (code: string) => string = (() => {
  try {
    const names = new Intl.DisplayNames("en", { type: "region", fallback: "code" });
    return (code: string): string => names.of(code) ?? code;
  } catch {
    return (code: string): string => code;
  }
})();

/** "UTC+1": what the zone of this computer adds now. */
function utcOffset(): string {
  const minutes = -new Date().getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  if (minutes === 0) return "UTC";
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}

/** The name of this computer's time zone, "Europe/Berlin"; null where the browser doesn't tell. */
function zoneName(): string | null {
  try {
    return Intl.DateTimeFormat().resolvedOptions().timeZone ?? null;
  } catch {
    return null;
  }
}

/** "Europe/Berlin, UTC+1": the zone of all times that the page shows and reads. */
export function timeZone(): string {
  const [zone, offset] = [zoneName(), utcOffset()];
  return zone === null || zone === "UTC" ? offset : `${zone}, ${offset}`;
}
