/**
 * The Node versions and platforms that can run the exchange: its native packages are binaries that not every Node and libc
 * can load. docs/platforms.md records the tested combinations. This file words the errors; sqlite.ts and uws.ts load.
 */

/** This Node can't run the exchange on this machine. The one-line message says which Node can. */
export class PlatformError extends Error {}

export interface Platform {
  /** As in `process.versions.node`. */
  readonly node: string;
  /** As in `process`. */
  readonly platform: string;
  readonly arch: string;
  /** Undefined with another C library. */
  readonly glibc: string | undefined;
}

/** The release that errors recommend, and the one for a libc that it can't use. */
const RECOMMENDED = "22.22.2";
const FOR_OLD_GLIBC = "20.20.2";

/** Each line's first release with seeded hashes of integer-like keys (CVE-2026-21717); later lines have had them from the start. */
const SEEDED: Readonly<Record<string, string>> = { 20: FOR_OLD_GLIBC, 22: RECOMMENDED, 24: "24.14.1", 25: "25.8.2" };
const FIRST_LINE_SEEDED = 26;

/** Lines with separate uWebSockets.js packages, which exist for Linux on x64 alone; older lines share one package. */
const SEPARATE_UWS: readonly number[] = [24, 26];
const SEPARATE_UWS_GLIBC = "2.38";
/** That of better-sqlite3 13, which every Node but 20 uses. */
const SQLITE_GLIBC = "2.34";
/** The least glibc of each line's binaries. uWebSockets.js is the only package whose binaries all need one. */
const GLIBC: Readonly<Record<number, string>> = {
  20: "2.27",
  22: SQLITE_GLIBC,
  24: SEPARATE_UWS_GLIBC,
  26: SEPARATE_UWS_GLIBC,
};

export const majorOf = (node: string): number => Number.parseInt(node, 10);

export function thisPlatform(): Platform {
  const { platform, arch, versions, report } = process;
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
  return { node: versions.node, platform, arch, glibc: header.glibcVersionRuntime };
}

function isOlder(version: string, than: string): boolean {
  const [theirs, ours] = [than.split("."), version.split(".")];
  for (const [i, part] of theirs.entries()) {
    const difference = Number.parseInt(ours[i] ?? "0", 10) - Number(part);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** @returns a warning if a client can stall this Node's `JSON.parse`, otherwise null */
export function hashFlaw(node: string): string | null {
  const major = majorOf(node);
  const seeded = SEEDED[major];
  if (seeded === undefined ? major >= FIRST_LINE_SEEDED : !isOlder(node, seeded)) return null;
  const fixed = seeded ?? RECOMMENDED;
  return `Node ${node} lets a client stall JSON.parse with colliding keys (CVE-2026-21717): use ${fixed} or later`;
}

/** True if the platform has binaries of all packages; if one still doesn't load, it isn't installed. */
export function isSupported({ node, platform, arch, glibc }: Platform): boolean {
  const major = majorOf(node);
  const least = GLIBC[major];
  if (least === undefined) return false;
  if (SEPARATE_UWS.includes(major) && (platform !== "linux" || arch !== "x64")) return false;
  return glibc === undefined ? platform !== "linux" : !isOlder(glibc, least);
}

/** @returns one line that says why the package can't be loaded here and what to do about it */
export function whyNot(name: string, on: Platform): string {
  const { node, platform, arch, glibc } = on;
  const libc = glibc === undefined ? "without glibc" : `with glibc ${glibc}`;
  const where = platform === "linux" ? `Linux ${arch} ${libc}` : `${platform} ${arch}`;
  const fact = `Node ${node} can't load ${name} on ${where}`;
  if (isSupported(on)) {
    return `${fact}: run "npm ci" with this Node (it may need python3, make and a C++ compiler)`;
  }
  if (platform === "linux" && glibc === undefined) {
    return `${fact}: no Node can, use a Linux with glibc (Debian, Ubuntu) and Node ${RECOMMENDED} or later of 22`;
  }
  if (glibc !== undefined && isOlder(glibc, SQLITE_GLIBC)) return `${fact}: use Node ${FOR_OLD_GLIBC} or later of 20`;
  const newer = `Node ${SEPARATE_UWS.join(" or ")} on Linux x64 with glibc ${SEPARATE_UWS_GLIBC} or later (Debian 13, Ubuntu 24.04)`;
  return `${fact}: use Node ${RECOMMENDED} or later of 22, or ${newer}`;
}
