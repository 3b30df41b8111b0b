/** Asks the nodes' monitoring ports whether they sync each write: no request of JetStream tells. */
import { MONITOR_TIMEOUT_MS } from "./limits.ts";

interface Varz {
  readonly server_name?: string;
  readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } };
}

/**
 * `fault` says which node doesn't sync each write, null where none said so; `isKnown` is true where all of them responded.
 * @param monitors http://HOST:PORT
 */
export async function checkSync(
  monitors: readonly string[],
): Promise<{ readonly fault: string | null; readonly isKnown: boolean }> {
  const views = await Promise.all(monitors.map(view));
  const lax = views.findIndex((varz) => varz !== null && varz.jetstream?.config?.sync_always !== true);
  const fault =
    lax < 0
      ? null
      : `the node ${views[lax]?.server_name ?? ""} at ${monitors[lax]} doesn't sync each write: set "sync_interval: always" in its jetstream block`;
  return { fault, isKnown: views.every((varz) => varz !== null) };
}

/** Null where the node doesn't respond. */
async function view(monitor: string): Promise<Varz | null> {
  try {
    const response = await fetch(new URL("/varz", monitor), { signal: AbortSignal.timeout(MONITOR_TIMEOUT_MS) });
    return response.ok ? ((await response.json()) as Varz) : null;
  } catch {
    return null;
  }
}
