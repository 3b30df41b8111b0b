/** Requests from box to box over core NATS, signed with STANDBY_SECRET: for the files of `keys/`, to resign, for a copy. */
import { randomBytes } from "node:crypto";
import type { Msg } from "@nats-io/transport-node";
import Type from "typebox";
import { systemClock } from "../../engine/util/clock.ts";
import type { NatsLink } from "./connection.ts";
import { contentOf } from "./core-message.ts";
import { ASK_TIMEOUT_MS, ASK_VALID_MS } from "./limits.ts";
import type { Seal } from "./seal.ts";
import { namesOf } from "./settings.ts";
import type { ReplicationSettings } from "./types.ts";

/** `copy`: make one; `manifest`, `piece` and `done`: of the copy that is there. */
const WHAT = ["keys", "resign", "copy", "manifest", "piece", "done"] as const;
const Ask = Type.Object({
  what: Type.Enum(WHAT),
  /** Of which file, and where it begins: only for a piece. */
  detail: Type.Optional(Type.String({ maxLength: 200 })),
  /** Of whom, and who asks. */
  box: Type.String({ maxLength: 32 }),
  from: Type.String({ pattern: "^[a-z0-9-]{1,32}$" }),
  /** That the box is in: a request that somebody repeats later asks nothing any more. */
  epoch: Type.Integer({ minimum: 0 }),
  /** ms since the epoch */
  at: Type.Integer(),
  /** Random: a response belongs to one request. */
  nonce: Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
  signature: Type.String({ maxLength: 64 }),
});
type Ask = Type.Static<typeof Ask>;

/** What the box's copy is asked for, and not the box. */
const OF_COPY: ReadonlySet<Ask["what"]> = new Set(["manifest", "piece", "done"]);

/** The other box says why it doesn't do it. */
export class AskRefused extends Error {}
/** The other box took the request, and doesn't respond. */
export class AskTimeout extends Error {}

/** The first byte of a response. */
const OK = 1;
const REFUSED = 0;

const signedText = ({ what, detail, box, from, epoch, at, nonce }: Omit<Ask, "signature">): string =>
  [what, box, from, epoch, at, nonce, ...(detail === undefined ? [] : [detail])].join(" ");

/** Responds to a request, whose text the response belongs to. @throws Error with why not */
export type Granter = (ask: Pick<Ask, "from" | "epoch" | "detail">, context: string) => Buffer | Promise<Buffer>;

interface AskOptions {
  readonly link: Pick<NatsLink, "nc">;
  readonly settings: Pick<ReplicationSettings, "name" | "box">;
  readonly seal: Seal;
}

/** Responds to what other boxes ask this one, over the subjects of its asks or of its copy. */
export function answerAsks(
  options: AskOptions,
  kind: "ask" | "copy",
  granters: Readonly<Partial<Record<Ask["what"], Granter>>>,
): void {
  const { link, settings, seal } = options;
  const { name, box } = settings;
  const grant = async (ask: Ask | null): Promise<Buffer> => {
    if (ask === null) throw new Error("the request is none");
    const why = whyNot(ask, box, seal);
    if (why !== null) throw new Error(why);
    const granter = granters[ask.what];
    if (granter === undefined) throw new Error(`it takes no request for ${ask.what} there`);
    return granter(ask, signedText(ask));
  };
  const respond = async (message: Msg): Promise<void> => {
    try {
      message.respond(Buffer.concat([Buffer.of(OK), await grant(contentOf(Ask, message))]));
    } catch (error) {
      message.respond(Buffer.concat([Buffer.of(REFUSED), Buffer.from((error as Error).message)]));
    }
  };
  link.nc.subscribe(`${namesOf(name)[kind]}.${box}`, {
    callback: (error, message) => {
      // A connection that ended meanwhile takes no response.
      if (error === null) respond(message).catch(() => {});
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

/** Asks another box, in the epoch that it is in; resolves with its response and the text that it belongs to.
 * @throws AskRefused with why not, AskTimeout, Error where nobody takes the request */
export async function ask(
  { link, settings, seal }: AskOptions,
  { what, box, epoch, detail }: Pick<Ask, "what" | "box" | "epoch" | "detail">,
  timeout = ASK_TIMEOUT_MS,
): Promise<{ readonly response: Uint8Array; readonly context: string }> {
  const { name, box: from } = settings;
  const nonce = randomBytes(16).toString("base64url");
  const unsigned = {
    what,
    box,
    from,
    epoch,
    at: systemClock.now(),
    nonce,
    ...(detail === undefined ? {} : { detail }),
  };
  const kind = OF_COPY.has(what) ? "copy" : "ask";
  const context = signedText(unsigned);
  const request = JSON.stringify({ ...unsigned, signature: seal.sign(context) });
  const sent = link.nc.request(`${namesOf(name)[kind]}.${box}`, request, { timeout });
  const { data } = await sent.catch((error: Error) => {
    throw error.name === "TimeoutError" ? new AskTimeout(`the box ${box} doesn't respond`) : error;
  });
  if (data[0] !== OK) throw new AskRefused(Buffer.from(data.subarray(1)).toString());
  return { response: data.subarray(1), context };
}
