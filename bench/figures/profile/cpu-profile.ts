/**
 * Reads the files that `node --cpu-prof` writes, one per thread: self time in an interval by the function's place in
 * our sources, resolved through bundles and source maps.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { itemAt } from "../../support/item-at.ts";
import { ROOT } from "../../support/root.ts";

const FOLDER = fileURLToPath(ROOT);
const BUILDS = new URL("dist/builds/", ROOT).href;
/** The bundle of a thread or command: dist/builds/HASH/NAME.js. */
const isEntry = (url: string): boolean => url.startsWith(BUILDS) && url.slice(BUILDS.length).split("/").length === 2;

interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame; readonly children?: readonly number[] }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/**
 * A function of ours or of a package, whose time includes the Node and native code that it called; or V8's own entry
 * without a file: (idle), (program), (garbage collector).
 */
export interface Place {
  readonly name: string;
  /** Below the project's folder. */
  readonly file: string;
}

export interface ThreadProfile {
  /** The file that the thread was started with, without its ending. */
  readonly thread: string;
  /** Self time in µs. */
  readonly places: readonly (Place & { readonly micros: number })[];
}

const maps = new Map<string, SourceMap | null>();

function sourceOf({ url, lineNumber, columnNumber }: Frame): string {
  if (!url.startsWith("file:")) return "";
  const path = fileURLToPath(url);
  let map = maps.get(path);
  if (map === undefined) {
    const file = `${path}.map`;
    map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, "utf8"))) : null;
    maps.set(path, map);
  }
  const entry = map?.findEntry(lineNumber, columnNumber);
  const source = entry !== undefined && "originalSource" in entry ? entry.originalSource : null;
  return source === null ? relative(FOLDER, path) : source.replace(/^(\.\.\/)+/, "");
}

/** @param from start of the stretch, µs of the machine's monotonic clock */
function readProfile(path: string, from: number, to: number): ThreadProfile {
  const profile = JSON.parse(readFileSync(path, "utf8")) as CpuProfile;
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const callers = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const self = new Map<number, number>();
  let at = profile.startTime;
  profile.samples.forEach((id, i) => {
    const delta = itemAt(profile.timeDeltas, i);
    at += delta;
    if (at >= from && at <= to) self.set(id, (self.get(id) ?? 0) + delta);
  });
  /** Itself, or the nearest caller that has a file. */
  const ownerOf = (id: number): Frame => {
    const frame = frames.get(id)!;
    if (frame.url.startsWith("file:") || frame.functionName.startsWith("(")) return frame;
    const caller = callers.get(id);
    return caller === undefined ? frame : ownerOf(caller);
  };
  const places = [...self].map(([id, micros]) => {
    const owner = ownerOf(id);
    return { name: owner.functionName, file: sourceOf(owner), micros };
  });
  const started = profile.nodes.map(({ callFrame }) => callFrame.url).find(isEntry) ?? "";
  return { thread: basename(started, ".js"), places };
}

/** Every thread's profile in the folder. */
export function readProfiles(folder: string, from: number, to: number): ThreadProfile[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".cpuprofile"));
  return files.map((name) => readProfile(join(folder, name), from, to));
}
