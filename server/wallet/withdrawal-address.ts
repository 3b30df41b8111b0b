/**
 * The rule of WITHDRAWAL_ADDRESS: EVM addresses, or a regular expression that matches the whole address. A slow match is
 * stopped, so that an expression with catastrophic backtracking cannot block the gateway.
 */
import { type Context, createContext, Script } from "node:vm";
import { badRequest } from "../errors.ts";
import { evmAddressFault } from "./evm-address.ts";
import { MAX_ADDRESS_LENGTH } from "./limits.ts";

/** The default value. */
export const EVM = "evm";
const MAX_PATTERN_LENGTH = 1_000;
/** Limit of one match, which usually takes microseconds. Wall-clock time, so a busy machine needs several tries. */
const MATCH_MS = 20;
const MATCH_TRIES = 3;
/** Repeated to the longest address, with and without a mismatching last character, these find most slow expressions. */
const PROBES = ["a", "A", "f", "z", "0", "1", "x", "b", "ab", "a1", "0x", "-", "_", ".", ":", "/"];

export interface AddressRule {
  /** @throws ApiError 40000 for an address that does not match the rule */
  check(address: string): void;
}

/** @throws Error that says what is wrong with the variable's value */
export function readAddressRule(value: string): AddressRule {
  if (value === EVM) return EVM_RULE;
  if (value.length > MAX_PATTERN_LENGTH) throw new Error(`must have at most ${MAX_PATTERN_LENGTH} characters`);
  const rule = new PatternRule(compile(value));
  const slow = PROBES.find((probe) => {
    const text = probe.repeat(MAX_ADDRESS_LENGTH / probe.length);
    return rule.matches(text) === null || rule.matches(`${text.slice(0, -1)}!`) === null;
  });
  if (slow !== undefined) {
    throw new Error(`takes more than ${MATCH_MS} ms on ${MAX_ADDRESS_LENGTH} characters of "${slow}": simplify it`);
  }
  return rule;
}

const EVM_RULE: AddressRule = {
  check(address) {
    const fault = evmAddressFault(address);
    if (fault !== null) throw badRequest(`address: ${fault}`);
  },
};

function compile(value: string): RegExp {
  try {
    return new RegExp(`^(?:${value})$`, "u");
  } catch {
    throw new Error(`must be ${EVM} or a regular expression, not "${value}"`);
  }
}

class PatternRule implements AddressRule {
  private readonly context: Context;
  private readonly script = new Script("pattern.test(text)");

  constructor(pattern: RegExp) {
    this.context = createContext({ pattern, text: "" });
  }

  /** Null if every try takes too long. */
  matches(text: string): boolean | null {
    for (let i = 0; i < MATCH_TRIES; i++) {
      const found = this.tryMatch(text);
      if (found !== null) return found;
    }
    return null;
  }

  private tryMatch(text: string): boolean | null {
    this.context["text"] = text;
    try {
      return this.script.runInContext(this.context, { timeout: MATCH_MS }) as boolean;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return null;
      throw error;
    }
  }

  check(address: string): void {
    if (this.matches(address) !== true) throw badRequest("address: this exchange does not pay to such an address");
  }
}
