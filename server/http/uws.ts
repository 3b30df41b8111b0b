/**
 * The only import of uWebSockets.js, whose authors don't publish it to npm. One republished package has all binaries for
 * Node 20 and 22; for Node 24 and 26 there is one package per platform, which needs a newer libc.
 */
import type * as Uws from "uWebSockets.js";
import { createRequire } from "node:module";
import { majorOf, PlatformError, thisPlatform, whyNot } from "../../engine/util/node-support.ts";
import { MAX_HEAD_BYTES } from "./limits.ts";

const FIRST_SEPARATE_MAJOR = 24;

/** uWebSockets.js reads it when it is loaded; its own default is 4096. */
const MAX_HEAD = "UWS_HTTP_MAX_HEADERS_SIZE";

/** @throws PlatformError that says which Node to use */
export async function loadUws(): Promise<typeof Uws> {
  const { platform, arch, versions } = process;
  const major = majorOf(versions.node);
  process.env[MAX_HEAD] = String(MAX_HEAD_BYTES);
  try {
    if (major < FIRST_SEPARATE_MAJOR) return await import("uWebSockets.js");
    return createRequire(import.meta.url)(`@uwsjs/${platform}-${arch}-${major}`) as typeof Uws;
  } catch {
    throw new PlatformError(whyNot("uWebSockets.js", thisPlatform()));
  }
}
