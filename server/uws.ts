/** The one import of uWebSockets.js, with a line that a person understands where this Node cannot load it. */
import type * as Uws from "uWebSockets.js";

/** @throws Error that says which Node to use */
export async function loadUws(): Promise<typeof Uws> {
  try {
    return await import("uWebSockets.js");
  } catch {
    const { platform, arch, versions } = process;
    throw new Error(
      `uWebSockets.js has no binary for Node ${versions.node} on ${platform} ${arch}: use Node 20 or 22 (glibc 2.27 or later)`,
    );
  }
}
