/** Responds to requests of the control socket while this box isn't active: its status, and its promotion. */
import { ApiError, asApiError, ErrorKind } from "../errors.ts";
import { parseJson } from "../http/body.ts";
import { errorBody, newRequestId, successBody } from "../http/reply.ts";
import { type Logger, logInternal } from "../logger.ts";
import type { Replication } from "../replication/replication.ts";
import { standingByStatus } from "../replication/standby-status.ts";
import type { Promotion } from "../replication/types.ts";

interface StandbyCommandOptions {
  readonly replication: Replication;
  /** The error of everything that only an active box does. */
  readonly rejection: () => ApiError;
  /** Resolves once this box is active. */
  readonly promote: (how: Promotion) => Promise<object>;
  readonly logger: Logger;
}

/** Returns the handler of one line, which resolves with the envelope's text. A line that is too long is null. */
export function createStandbyCommands(options: StandbyCommandOptions): (line: Buffer | null) => Promise<string> {
  const { replication, rejection, promote, logger } = options;
  return async (line) => {
    const { command, how } = line === null ? NOTHING : read(line);
    try {
      if (command === "standby status") return successBody(JSON.stringify(await standingByStatus(replication)));
      if (command === "standby promote" && replication.role === "standby") {
        return successBody(JSON.stringify(await promote(how)));
      }
      if (command === "standby demote" && replication.role === "standby") {
        throw new ApiError(ErrorKind.conflict, "this box is a standby: standby promote makes it the active one");
      }
      throw rejection();
    } catch (thrown) {
      const error = asApiError(thrown);
      const id = newRequestId();
      logInternal(logger, error, id);
      return errorBody(error, id);
    }
  };
}

const NOTHING = { command: null, how: "" } as const;
const HOW: readonly Promotion[] = ["first", "stream-is-lost"];

/** `command` is null where the line is something else. */
function read(line: Buffer): { readonly command: unknown; readonly how: Promotion } {
  try {
    const { command, args } = parseJson(line) as { command?: unknown; args?: readonly unknown[] };
    return { command, how: HOW.find((each) => args?.includes(each)) ?? "" };
  } catch {
    return NOTHING;
  }
}
