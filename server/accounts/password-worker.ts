/**
 * Argon2id in a pool thread of low priority: trading threads on the same cores come first. It also knows which passwords
 * are too common. Passwords are compared and hashed in Unicode's NFKC form, and never leave this file in any other shape
 * than a hash.
 */
import { randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { hashSync, parseOptions, verifySync } from "@node-rs/argon2";
import { dictionary } from "@zxcvbn-ts/language-common";

export interface HashJob {
  password: string;
  /** By an operator: it may be a common one. */
  readonly isChosen: boolean;
}

export interface VerifyJob {
  /** A PHC string; null to verify against nobody's password. */
  readonly hash: string | null;
  password: string;
}

/** Nice value; 19 would starve sign-ins beside a busy trading thread. */
const PRIORITY = 10;
/** OWASP's Password Storage Cheat Sheet, with `memoryCost` in KiB. Argon2id version 19 is the library's own default. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** How many times our own parameters a stored hash may have: a damaged one could ask for all of the memory. */
const MAX_COST_FACTOR = 4;

/** Shorter listed passwords are syllables of good ones, too. */
const MIN_LISTED = 6;
/** Of a unit that is refused when repeated, unless it is a listed password. */
const MAX_UNIT = 5;
/** Enough for `12345qwert`: what takes three runs to write down is not a run any more. */
const MAX_RUNS = 2;
const ROWS = ["1234567890", "!@#$%^&*()", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm"]
  // Columns of the keyboard, and other keyboards' first rows.
  .concat(["1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/", "qwertzuiop", "azertyuiop"])
  .flatMap((row) => [row, [...row].reverse().join("")]);

/** Made for the first password that is chosen: a start has no use for it. */
const listed = new Set<string>();
let longestListed = 0;

lowerPriority();
/** Costs what a real hash costs to verify, and is nobody's. */
const DUMMY_HASH = dummyHash();

/** A PHC string with a hash of nothing that is known. */
function dummyHash(): string {
  const { memoryCost, timeCost, parallelism } = PARAMETERS;
  const [salt, hash] = [16, 32].map((length) => randomBytes(length).toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${hash}`;
}

/** A PHC string; null for a password that is too common. */
export function hash(job: HashJob): string | null {
  if (listed.size === 0) readList();
  const password = consumePassword(job);
  return !job.isChosen && isTooCommon(password.toLowerCase()) ? null : hashSync(password, PARAMETERS);
}

/** False for nobody's and for what is no hash, after the same work. */
export function verify(job: VerifyJob): boolean {
  const password = consumePassword(job);
  const known = job.hash !== null && isUsable(job.hash) ? job.hash : null;
  return verifySync(known ?? DUMMY_HASH, password) && known !== null;
}

function readList(): void {
  for (const password of dictionary["passwords-common"]) {
    if (password.length < MIN_LISTED) continue;
    listed.add(password);
    longestListed = Math.max(longestListed, password.length);
  }
}

/** The pool keeps a thread's last job until the next one comes, so the password is taken out of it. */
function consumePassword(job: HashJob | VerifyJob): string {
  const password = job.password.normalize("NFKC");
  job.password = "";
  return password;
}

function isUsable(phc: string): boolean {
  try {
    const { memoryCost, timeCost } = parseOptions(phc);
    return memoryCost <= MAX_COST_FACTOR * PARAMETERS.memoryCost && timeCost <= MAX_COST_FACTOR * PARAMETERS.timeCost;
  } catch {
    return false;
  }
}

/** Linux has a nice value per thread, and takes a thread's id for it; elsewhere it would slow the whole process. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    // <pid>/task/<tid> of the calling thread.
    setPriority(Number(readlinkSync("/proc/thread-self").split("/")[2]), PRIORITY);
  } catch {
    // Without /proc, or not allowed: it works as well, at the expense of others.
  }
}

// No regular expressions below: a thread keeps the last text that one matched.

/**
 * True for a listed password with or without digits and punctuation around it, for runs along the keyboard, the digits
 * or the alphabet, and for a short or listed unit repeated.
 * @param text in lower case
 */
function isTooCommon(text: string): boolean {
  let start = 0;
  while (start < text.length && !isLetter(text, start)) start++;
  let end = text.length;
  while (end > 0 && !isLetter(text, end - 1)) end--;
  const core = text.slice(start, end);
  return isPattern(text) || (core.length >= MIN_LISTED && isPattern(core)) || hasListed(text, start, end);
}

/** Anything beyond ASCII counts as a letter. */
function isLetter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 97 && code <= 122) || code > 127;
}

/** Whether a listed password starts at or before `maxStart` and ends at or after `minEnd`. */
function hasListed(text: string, maxStart: number, minEnd: number): boolean {
  for (let start = 0; start <= maxStart; start++) {
    const last = Math.min(text.length, start + longestListed);
    for (let end = Math.max(minEnd, start + MIN_LISTED); end <= last; end++) {
      if (listed.has(text.slice(start, end))) return true;
    }
  }
  return false;
}

function isPattern(text: string): boolean {
  return isRuns(text) || isRepetition(text);
}

/** The longest run first leaves the least for the next. */
function isRuns(text: string): boolean {
  let at = 0;
  for (let runs = 0; runs < MAX_RUNS && at < text.length; runs++) at = endOfRun(text, at);
  return at === text.length;
}

/** Where the run from `start` ends: one character again and again, or neighbours in a row, which is a circle. */
function endOfRun(text: string, start: number): number {
  let longest = start + 1;
  while (text[longest] === text[start]) longest++;
  for (const row of ROWS) {
    const place = row.indexOf(text.charAt(start));
    if (place === -1) continue;
    let end = start + 1;
    while (end < text.length && text[end] === row[(place + end - start) % row.length]) end++;
    longest = Math.max(longest, end);
  }
  return longest;
}

/** A short unit may break off at the end. */
function isRepetition(text: string): boolean {
  const maxUnit = Math.min(longestListed, Math.floor(text.length / 2));
  for (let unit = 1; unit <= maxUnit; unit++) {
    const isWanted = unit <= MAX_UNIT || (text.length % unit === 0 && listed.has(text.slice(0, unit)));
    if (isWanted && text.startsWith(text.slice(0, -unit), unit)) return true;
  }
  return false;
}
