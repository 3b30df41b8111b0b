/**
 * Argon2id in a pool thread of low priority, so that trading threads on the same cores run first; also rejects common
 * passwords. Passwords are compared and hashed in Unicode's NFKC form, and leave this file only as a hash.
 */
import { randomBytes } from "node:crypto";
import { hashSync, parseOptions, verifySync } from "@node-rs/argon2";
import { dictionary } from "@zxcvbn-ts/language-common";
import { lowerPriority } from "../../engine/util/low-priority.ts";

export interface HashJob {
  password: string;
  /** An operator chose it, so it may be a common one. */
  readonly isChosen: boolean;
}

export interface VerifyJob {
  /** A PHC string; null verifies against a dummy hash. */
  readonly hash: string | null;
  password: string;
}

/** Nice value; 19 would starve sign-ins next to a busy trading thread. */
const NICE = 10;
/** OWASP's Password Storage Cheat Sheet, with `memoryCost` in KiB. Argon2id version 19 is the library's own default. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** A stored hash may cost at most this multiple of our parameters: a damaged one could demand all the memory. */
const MAX_COST_FACTOR = 4;

/** Shorter listed passwords are also syllables of good ones. */
const MIN_LISTED = 6;
/** Longest repeated unit that is rejected, unless the unit is a listed password. */
const MAX_UNIT = 5;
/** Enough for `12345qwert`: three runs or more no longer form a pattern. */
const MAX_RUNS = 2;
const ROWS = ["1234567890", "!@#$%^&*()", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm"]
  // Keyboard columns, and the first rows of other keyboards.
  .concat(["1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/", "qwertzuiop", "azertyuiop"])
  .flatMap((row) => [row, [...row].reverse().join("")]);

/** Built for the first new password: most starts never need it. */
const listed = new Set<string>();
let longestListed = 0;

lowerPriority(NICE);
/** Costs as much to verify as a real hash, and matches no password. */
const DUMMY_HASH = dummyHash();

/** A PHC string with a random hash. */
function dummyHash(): string {
  const { memoryCost, timeCost, parallelism } = PARAMETERS;
  const [salt, hash] = [16, 32].map((length) => randomBytes(length).toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${hash}`;
}

/** Returns a PHC string; null for a password that is too common. */
export function hash(job: HashJob): string | null {
  if (listed.size === 0) readList();
  const password = consumePassword(job);
  return !job.isChosen && isTooCommon(password.toLowerCase()) ? null : hashSync(password, PARAMETERS);
}

/** False without a usable hash, after the same amount of work. */
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

/** Reads the password and clears it in the job: the pool keeps a thread's last job until the next one. */
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

// No regular expressions below: V8 keeps the last text that one matched.

/**
 * True for a listed password, also with digits and punctuation around it; for runs along the keyboard, the digits or the
 * alphabet; and for a repeated short or listed unit.
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

/** Every character beyond ASCII counts as a letter. */
function isLetter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 97 && code <= 122) || code > 127;
}

/** True if a listed password starts at or before `maxStart` and ends at or after `minEnd`. */
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

/** Greedy: the longest first run leaves the least for the next one. */
function isRuns(text: string): boolean {
  let at = 0;
  for (let runs = 0; runs < MAX_RUNS && at < text.length; runs++) at = endOfRun(text, at);
  return at === text.length;
}

/** The end of the run at `start`: one repeated character, or neighbours in a row, which wraps around. */
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

/** The last repetition of a short unit may be incomplete. */
function isRepetition(text: string): boolean {
  const maxUnit = Math.min(longestListed, Math.floor(text.length / 2));
  for (let unit = 1; unit <= maxUnit; unit++) {
    const isWanted = unit <= MAX_UNIT || (text.length % unit === 0 && listed.has(text.slice(0, unit)));
    if (isWanted && text.startsWith(text.slice(0, -unit), unit)) return true;
  }
  return false;
}
