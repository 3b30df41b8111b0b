/** Requests from box to box over core NATS, signed with STANDBY_SECRET: so far for the files of `keys/`. */
import { randomBytes } from "node:crypto";
import type { Msg } from "@nats-io/transport-node";
import Type from "typebox";
import { systemClock } from "../../engine/util/clock.ts";
import type { NatsLink } from "./connection.ts";
import { contentOf } from "./core-message.ts";
import type { KeyFiles } from "./key-files.ts";
import { ASK_TIMEOUT_MS, ASK_VALID_MS } from "./limits.ts";
import type { Seal } from "./seal.ts";
import { namesOf } from "./settings.ts";
import type { ReplicationSettings } from "./types.ts";

const Ask = Type.Object({
  what: Type.Literal("keys"),
  /** Of whom. */
  box: Type.String({ maxLength: 32 }),
  /** ms since the epoch */
  at: Type.Integer(),
  /** Random: a response belongs to one request. */
  nonce: Type.String({ maxLength: 64 }),
  signature: Type.String({ maxLength: 64 }),
});
type Ask = Type.Static<typeof Ask>;

/** The first byte of a response. */
const OK = 1;
const REFUSED = 0;

const signedText = ({ what, box, at, nonce }: Omit<Ask, "signature">): string => `${what} ${box} ${at} ${nonce}`;

interface AskOptions {
  readonly link: NatsLink;
  readonly settings: Pick<ReplicationSettings, "name" | "box">;
  readonly seal: Seal;
  readonly keys: KeyFiles;
}

/** Responds to what other boxes ask this one. */
export function answerAsks({ link, settings, seal, keys }: AskOptions): void {
  const { name, box } = settings;
  const respond = (message: Msg): void => {
    const ask = contentOf(Ask, message);
    const why = ask === null ? "the request is none" : whyNot(ask, box, seal);
    if (ask === null || why !== null) {
      message.respond(Buffer.concat([Buffer.of(REFUSED), Buffer.from(why ?? "")]));
    } else message.respond(sealedKeys(ask));
  };
  const sealedKeys = (ask: Ask): Buffer => {
    try {
      return Buffer.concat([Buffer.of(OK), keys.sealed(signedText(ask))]);
    } catch (error) {
      return Buffer.concat([Buffer.of(REFUSED), Buffer.from(`its keys/ can't be read: ${(error as Error).message}`)]);
    }
  };
  link.nc.subscribe(`${namesOf(name).ask}.${box}`, {
    callback: (error, message) => {
      if (error === null) respond(message);
    },
  });
}

/** Null where the request is to be granted. */
function whyNot(ask: Ask, box: string, seal: Seal): string | null {
  if (ask.box !== box) return "the request is for another box";
  if (!seal.isSigned(signedText(ask), ask.signature)) return "the boxes have different STANDBY_SECRETs";
  const off = Math.abs(systemClock.now() - ask.at);
  return off > ASK_VALID_MS ? `the boxes' clocks differ by ${Math.round(off / 1_000)} s` : null;
}

/** Replaces this box's keys with those of another. @param from its name @throws Error with the reason, for an operator */
export async function fetchKeys({ link, settings, seal, keys }: AskOptions, from: string): Promise<void> {
  const unsigned = {
    what: "keys" as const,
    box: from,
    at: systemClock.now(),
    nonce: randomBytes(16).toString("base64url"),
  };
  const ask: Ask = { ...unsigned, signature: seal.sign(signedText(unsigned)) };
  const subject = `${namesOf(settings.name).ask}.${from}`;
  const { data } = await link.nc.request(subject, JSON.stringify(ask), { timeout: ASK_TIMEOUT_MS });
  if (data[0] !== OK) throw new Error(Buffer.from(data.subarray(1)).toString());
  keys.replace(data.subarray(1), signedText(unsigned));
}
