/**
 * Which Node runs the exchange where: its native packages come as binaries that not every Node and libc can load.
 * docs/platforms.md records what was tried. Loads nothing itself: sqlite.ts and uws.ts do, and ask here what to say.
 */

/** This Node can't run the exchange on this machine. The message is one line, and says which Node can. */
export class PlatformError extends Error {}

export interface Platform {
  /** As in `process.versions.node`. */
  readonly node: string;
  /** As in `process`. */
  readonly platform: string;
  readonly arch: string;
  /** Undefined where the C library is another one. */
  readonly glibc: string | undefined;
}

/** The first release of each line with seeded hashes of integer-like keys (CVE-2026-21717); lines after 25 began with them. */
const SEEDED: Readonly<Record<string, string>> = { 20: "20.20.2", 22: "22.22.2", 24: "24.14.1", 25: "25.8.2" };
const FIRST_LINE_SEEDED = 26;

/** Lines with a uWebSockets.js in packages of their own, which want a newer libc; older ones share one package. */
const SEPARATE_UWS = [24, 26] as const;
const SHARED_UWS = [20, 22] as const;
const SEPARATE_UWS_GLIBC = "2.38";
/** uWebSockets.js is the only package with binaries for glibc alone. */
const SHARED_UWS_GLIBC = "2.27";

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

/** @returns the line that warns of a Node whose `JSON.parse` a client can stall, null for any other */
export function hashFlaw(node: string): string | null {
  const major = majorOf(node);
  const seeded = SEEDED[major];
  if (seeded === undefined ? major >= FIRST_LINE_SEEDED : !isOlder(node, seeded)) return null;
  const fixed = seeded ?? SEEDED[22]!;
  return `Node ${node} lets a client stall JSON.parse with colliding keys (CVE-2026-21717): use ${fixed} or later`;
}

/** Whether there is a uWebSockets.js for it: what doesn't load nevertheless isn't installed. */
export function isSupported({ node, platform, arch, glibc }: Platform): boolean {
  const major = majorOf(node);
  if (platform === "linux" && glibc === undefined) return false;
  if ((SHARED_UWS as readonly number[]).includes(major))
    return glibc === undefined || !isOlder(glibc, SHARED_UWS_GLIBC);
  if (!(SEPARATE_UWS as readonly number[]).includes(major)) return false;
  return platform === "linux" && arch === "x64" && !isOlder(glibc!, SEPARATE_UWS_GLIBC);
}

/** @returns the line that says why the package can't be loaded here and what to do about it */
export function whyNot(name: string, on: Platform): string {
  const { node, platform, arch, glibc } = on;
  const libc = glibc === undefined ? "without glibc" : `with glibc ${glibc}`;
  const where = platform === "linux" ? `Linux ${arch} ${libc}` : `${platform} ${arch}`;
  const fact = `Node ${node} can't load ${name} on ${where}`;
  if (isSupported(on)) {
    return `${fact}: run "npm ci" with this Node (it may need python3, make and a C++ compiler)`;
  }
  if (platform === "linux" && glibc === undefined) {
    return `${fact}: no Node can, use a Linux with glibc (Debian, Ubuntu) and Node ${SEEDED[22]} or later of 22`;
  }
  const newer = `Node ${SEPARATE_UWS.join(" or ")} on Linux x64 with glibc ${SEPARATE_UWS_GLIBC} or later (Debian 13, Ubuntu 24.04)`;
  return `${fact}: use Node ${SEEDED[22]} or later of 22, or ${newer}`;
}
