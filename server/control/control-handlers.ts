/**
 * Responds to requests of the control socket: every route for operators, as over HTTP but without a token, and the
 * commands that the API lacks (server-commands.ts). Everyone who may open the socket may do all of it.
 */
import Type from "typebox";
import type { Clock } from "../../engine/util/clock.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { type Admission, type Entry, SHELL } from "../http/admission.ts";
import { parseJson } from "../http/body.ts";
import { NO_ADDRESS } from "../http/client-address.ts";
import { type CompiledRoute, DIRECT, execute } from "../http/dispatch.ts";
import { MAX_BODY_BYTES } from "../http/limits.ts";
import { errorBody, newRequestId, successBody } from "../http/reply.ts";
import { pathPattern, type RequestReply, type RouteRequest } from "../http/route.ts";
import { closed as closedSchema } from "../http/schemas.ts";
import { compileSchema } from "../http/validate.ts";
import { type Logger, logInternal } from "../logger.ts";
import { JsonReply } from "../orders/json-reply.ts";
import type { OrderedReads } from "../trading/types.ts";
import { createServerCommands, type ServerCommandOptions } from "./server-commands.ts";

export interface ControlOptions extends ServerCommandOptions {
  readonly routes: readonly CompiledRoute[];
  readonly reads: OrderedReads;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: Admission;
}

const checkRoute = compileSchema(
  closedSchema({
    method: Type.String({ maxLength: 10 }),
    path: Type.String({ maxLength: 1_000 }),
    query: Type.Optional(Type.String()),
    body: Type.Optional(Type.Unknown()),
  }),
);
const checkCommand = compileSchema(
  closedSchema({ command: Type.String({ maxLength: 100 }), args: Type.Array(Type.String(), { maxItems: 10 }) }),
);

/** Returns the handler of one line, which resolves with the envelope's text, as HTTP would. A line that is too long is null. */
export function createControlHandlers(options: ControlOptions): (line: Buffer | null) => Promise<string> {
  const { routes, reads, clock, logger, admission } = options;
  const commands = createServerCommands(options);
  const findRoute = createFinder(routes);
  const run = (line: Buffer | null, reply: ControlReply): void => {
    if (line === null) throw new ApiError(ErrorKind.tooLarge, `the request is larger than ${MAX_BODY_BYTES} bytes`);
    const parsed = parseRequest(line);
    if ("command" in parsed) {
      admission.checkOpen();
      const { command: name, args } = checkCommand(parsed);
      const command = commands.get(name);
      if (command === undefined) throw notFound(`command: ${name}`);
      const context = { now: clock.now(), requestId: reply.requestId, ...NO_ADDRESS, userAgent: "" };
      command(args, context).then(
        (data) => reply.data(JSON.stringify(data)),
        (error) => reply.fail(error),
      );
      return;
    }
    const given = checkRoute(parsed);
    const { compiled, params } = findRoute(given);
    const entry = { compiled, address: NO_ADDRESS, now: clock.now(), reply };
    const principal = admission.enter(entry, SHELL);
    execute(compiled.route, { ...requestOf(entry, params, given), principal, reply }, reply, reads);
  };
  return (line) =>
    new Promise((respond) => {
      const reply = new ControlReply(respond, logger);
      try {
        run(line, reply);
      } catch (error) {
        reply.fail(error);
      }
    });
}

/** Passes the envelope's text to `respond`, which ignores every call after the first. */
class ControlReply extends JsonReply implements RequestReply {
  readonly requestId = newRequestId();
  /** Nothing limits the shell. */
  rate = null;
  private readonly respond: (body: string) => void;
  private readonly logger: Logger;

  constructor(respond: (body: string) => void, logger: Logger) {
    super();
    this.respond = respond;
    this.logger = logger;
  }

  data(json: string): void {
    this.respond(successBody(json));
  }

  plain(_status: number, json: string): void {
    this.respond(json);
  }

  header(): void {
    // The control socket has no headers.
  }

  redirect(): void {
    this.fail(new Error("no route for operators redirects"));
  }

  file(): void {
    this.fail(new Error("no route for operators responds with a file"));
  }

  stream(): void {
    this.fail(new Error("no route for operators streams its response"));
  }

  error(error: ApiError): void {
    logInternal(this.logger, error, this.requestId);
    this.respond(errorBody(error, this.requestId));
  }

  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }
}

function parseRequest(line: Buffer): object {
  let parsed: unknown;
  try {
    parsed = parseJson(line);
  } catch {
    throw badRequest("the request is not valid JSON");
  }
  if (typeof parsed !== "object" || parsed === null) throw badRequest("the request is not a JSON object");
  return parsed;
}

type RouteRequested = ReturnType<typeof checkRoute>;
type Params = readonly [string, string];

/** Returns the lookup of an operators' route by method and path. @throws ApiError 4040, 40500 */
function createFinder(
  routes: readonly CompiledRoute[],
): (given: RouteRequested) => { compiled: CompiledRoute; params: Params } {
  const known = routes
    .filter(({ route }) => route.access === "operator")
    .map((compiled) => ({ compiled, pattern: pathPattern(compiled.route.path) }));
  return ({ method, path }) => {
    const fitting = known.filter(({ pattern }) => pattern.test(path));
    const found = fitting.find(({ compiled }) => compiled.route.method === method);
    if (found !== undefined) {
      const [, first = "", second = ""] = found.pattern.exec(path) ?? [];
      return { compiled: found.compiled, params: [first, second] };
    }
    if (fitting.length === 0) throw new ApiError(ErrorKind.notFound, "no such path for operators");
    const allowed = fitting.map(({ compiled }) => compiled.route.method);
    throw new ApiError(ErrorKind.methodNotAllowed, `this path takes ${allowed.join(", ")}`);
  };
}

type ControlEntry = Pick<Entry, "compiled" | "address" | "now">;

function requestOf(
  { compiled, address, now }: ControlEntry,
  params: Params,
  given: RouteRequested,
): Omit<RouteRequest, "principal" | "reply"> {
  const { route } = compiled;
  if (compiled.body === null && given.body !== undefined) throw badRequest("body: this route takes none");
  return {
    now,
    address,
    idempotencyKey: "",
    headers: Object.fromEntries(route.headers.map((name) => [name, ""])),
    origin: DIRECT,
    params,
    query: compiled.query(given.query ?? ""),
    body: compiled.body === null ? null : compiled.body(given.body),
  };
}
