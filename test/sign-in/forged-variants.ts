/** All variants of forged tokens, by what is wrong with them. */
import type { Variant } from "./forge.ts";
import { CLAIMS, HEADERS } from "./forged-contents.ts";
import { DAMAGED, ENCODINGS } from "./forged-encodings.ts";
import { ALGORITHMS, HMACS, PADDINGS, SIGNATURES } from "./forged-signatures.ts";

export const KINDS: Readonly<Record<string, readonly Variant[]>> = {
  "another algorithm": ALGORITHMS,
  "the public key as a shared secret": HMACS,
  "another signature": SIGNATURES,
  "another padding of the signature": PADDINGS,
  "another encoding": ENCODINGS,
  "one that was damaged": DAMAGED,
  "another header": HEADERS,
  "other claims": CLAIMS,
};
