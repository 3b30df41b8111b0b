/** Makes the demo's past, in a process of its own that ends with this one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ROOT } from "../support/root.ts";

/**
 * Resolves once the folder has a past that ends at `end`, ms. The progress is on stderr.
 * @param stop ends it: the folder is useless then
 * @throws Error where it ended without one
 */
export async function makePast(
  { path, seedFile }: { readonly path: string; readonly seedFile: string },
  { seed, end, stop }: { readonly seed: number; readonly end: number; readonly stop: Promise<unknown> },
): Promise<void> {
  const program = fileURLToPath(new URL("dist/past.js", ROOT));
  const child = spawn(process.execPath, [program, path, seedFile, String(seed), String(end)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    // Ctrl-C in the terminal reaches this process, which ends the other.
    detached: true,
  });
  void stop.then(() => child.kill("SIGKILL"));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  if (code !== 0) throw new Error(`the past was not made (${signal ?? `exit code ${code}`}): --fresh starts over`);
}
