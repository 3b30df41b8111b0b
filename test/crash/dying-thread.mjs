/**
 * Loaded into every thread of a server under test (NODE_OPTIONS=--import): one of them dies when the file DEATH says so, as
 * `thread moment how`. Patches nothing of the server's, only what JavaScript itself lends to a thread that waits or works:
 * Atomics.wait, and in pool threads what each job calls.
 */
import { readFileSync, rmSync } from "node:fs";
import { isMainThread, workerData } from "node:worker_threads";

/** @returns {string} */
function nameOf() {
  if (workerData?.commands !== undefined) return workerData.log === null ? "engine" : "engine-with-log";
  if (workerData?.log !== undefined) return "log";
  if (workerData?.tablesPath !== undefined) return "projector";
  // Of piscina's threads, the one that reads has the paths of the files.
  return JSON.stringify(workerData ?? null).includes('"tables"') ? "history" : "password";
}

const NAME = nameOf();
let isLooking = false;

/** @param {string} moment when a thread may die: with nothing to do ("waiting"), as a job comes ("woken"), or at "working" */
function dieIfAsked(moment) {
  // To look for the file may itself call what is watched.
  if (isLooking) return;
  isLooking = true;
  let text = "";
  try {
    text = readFileSync(process.env.DEATH, "utf8");
  } catch {
    // No thread has to die.
    return;
  } finally {
    isLooking = false;
  }
  const [name, when, how] = text.split(" ");
  if (name !== NAME || when !== moment) return;
  // Only one thread dies, not its replacement.
  rmSync(process.env.DEATH);
  if (how === "throw") throw new Error("told to die");
  if (how === "exit") process.exit(7);
  if (how === "loop") for (;;);
}

if (isMainThread) {
  // What takes a minute of the server's ticks takes seconds of the test's.
  const { setInterval } = globalThis;
  const fast = Number(process.env.FAST ?? 1);
  globalThis.setInterval = (callback, ms, ...more) => setInterval(callback, ms / fast, ...more);
} else {
  const { wait } = Atomics;
  Atomics.wait = (...args) => {
    dieIfAsked("waiting");
    const result = wait(...args);
    dieIfAsked("woken");
    return result;
  };
  if (NAME === "history") {
    const { slice } = Array.prototype;
    Array.prototype.slice = function (...args) {
      dieIfAsked("working");
      return slice.apply(this, args);
    };
  }
  if (NAME === "password") {
    const { normalize } = String.prototype;
    String.prototype.normalize = function (...args) {
      dieIfAsked("working");
      return normalize.apply(this, args);
    };
  }
}
