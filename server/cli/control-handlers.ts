/**
 * What the machine's own shell may ask of a running exchange: every route for operators, as over HTTP but without a
 * token, and the commands that the API doesn't have. Whoever may open the control socket may do all of it.
 */

import { randomBytes } from "node:crypto";
import Type from "typebox";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { audit, type Change, type RequestContext } from "../accounts/audit.ts";
import { operatorOf } from "../accounts/operator.ts";
import type { Passwords } from "../accounts/passwords.ts";
import { EmailOnly } from "../accounts/schemas.ts";
import type { SecondFactorSettings } from "../accounts/second-factor-settings.ts";
import type { SecondFactors } from "../accounts/second-factors.ts";
import type { SigningKeys } from "../accounts/signing-keys.ts";
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { parseJson } from "../http/body.ts";
import { NO_ADDRESS } from "../http/client-address.ts";
import { type CompiledRoute, DIRECT, execute } from "../http/dispatch.ts";
import { MAX_BODY_BYTES } from "../http/limits.ts";
import { errorBody, newRequestId, successBody } from "../http/reply.ts";
import type { Responder, RouteRequest } from "../http/route.ts";
import { closed as closedSchema } from "../http/schemas.ts";

import { compileSchema } from "../http/validate.ts";
import { type Logger, logInternal } from "../logger.ts";
import type { OrderedReads } from "../trading/types.ts";

export interface ControlOptions {
  readonly routes: readonly CompiledRoute[];
  readonly reads: OrderedReads;
  readonly logger: Logger;
  /** Null while the exchange is open. */
  readonly closed: () => ApiError | null;
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly keys: SigningKeys;
  readonly factors: SecondFactors;
  readonly factorSettings: SecondFactorSettings;
  readonly writer: AccountWriter;
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
const checkEmail = compileSchema(EmailOnly);

/** 132 bits. */
const PASSWORD_BYTES = 16;

/** Does what the shell asks and answers what it is told. @throws ApiError for what is wrong with it */
type Command = (args: readonly string[], context: RequestContext) => Promise<object>;

/** Answers a line of the control socket with the envelope's text, as HTTP would. A line that is too long is null. */
export function createControlHandlers(options: ControlOptions): (line: Buffer | null) => Promise<string> {
  const { routes, reads, logger, closed } = options;
  const commands = createCommands(options);
  const findRoute = createFinder(routes);
  const run = (line: Buffer | null, reply: Responder): void => {
    if (line === null) throw new ApiError(ErrorKind.tooLarge, `the request is larger than ${MAX_BODY_BYTES} bytes`);
    const refusal = closed();
    if (refusal !== null) throw refusal;
    const parsed = parseRequest(line);
    if ("command" in parsed) {
      const { command: name, args } = checkCommand(parsed);
      const command = commands.get(name);
      if (command === undefined) throw notFound(`command: ${name}`);
      const context = { now: Date.now(), requestId: reply.requestId, ...NO_ADDRESS, userAgent: "" };
      command(args, context).then(
        (data) => reply.data(JSON.stringify(data)),
        (error) => reply.fail(error),
      );
      return;
    }
    const asked = checkRoute(parsed);
    const { compiled, params } = findRoute(asked);
    execute(compiled.route, requestOf(compiled, params, asked, reply), reply, reads);
  };
  return (line) =>
    new Promise((give) => {
      const reply = new ControlReply(give, logger);
      try {
        run(line, reply);
      } catch (error) {
        reply.fail(error);
      }
    });
}

/** The envelope's text goes to `give`, which heeds its first call only. */
class ControlReply implements Responder {
  readonly requestId = newRequestId();
  private readonly give: (body: string) => void;
  private readonly logger: Logger;

  constructor(give: (body: string) => void, logger: Logger) {
    this.give = give;
    this.logger = logger;
  }

  data(json: string): void {
    this.give(successBody(json));
  }

  plain(_status: number, json: string): void {
    this.give(json);
  }

  header(): void {
    // There are none here.
  }

  redirect(): void {
    this.fail(new Error("no route for operators sends a browser anywhere"));
  }

  stream(): void {
    this.fail(new Error("no route for operators answers in pieces"));
  }

  error(error: ApiError): void {
    logInternal(this.logger, error, this.requestId);
    this.give(errorBody(error, this.requestId));
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
  if (typeof parsed !== "object" || parsed === null) throw badRequest("the request is no JSON object");
  return parsed;
}

type RouteAsked = ReturnType<typeof checkRoute>;
type Params = readonly [string, string];

/** Finds the operators' route of a method and a path. @throws ApiError 4040, 40500 */
function createFinder(
  routes: readonly CompiledRoute[],
): (asked: RouteAsked) => { compiled: CompiledRoute; params: Params } {
  const known = routes
    .filter(({ route }) => route.access === "operator")
    .map((compiled) => ({ compiled, pattern: new RegExp(`^${compiled.route.path.replaceAll(/:\w+/g, "([^/]+)")}$`) }));
  return ({ method, path }) => {
    const fitting = known.filter(({ pattern }) => pattern.test(path));
    const found = fitting.find(({ compiled }) => compiled.route.method === method);
    if (found !== undefined) {
      const [, first = "", second = ""] = found.pattern.exec(path)!;
      return { compiled: found.compiled, params: [first, second] };
    }
    if (fitting.length === 0) throw new ApiError(ErrorKind.notFound, "no such path for operators");
    const allowed = fitting.map(({ compiled }) => compiled.route.method);
    throw new ApiError(ErrorKind.methodNotAllowed, `this path takes ${allowed.join(", ")}`);
  };
}

function requestOf(compiled: CompiledRoute, params: Params, asked: RouteAsked, reply: Responder): RouteRequest {
  const { route } = compiled;
  if (compiled.body === null && asked.body !== undefined) throw badRequest("body: this route takes none");
  return {
    now: Date.now(),
    principal: null,
    address: NO_ADDRESS,
    headers: Object.fromEntries(route.headers.map((name) => [name, ""])),
    origin: DIRECT,
    params,
    query: compiled.query(asked.query ?? ""),
    body: compiled.body === null ? null : compiled.body(asked.body),
    reply,
  };
}

/** What the API doesn't have, by name. */
function createCommands(options: ControlOptions): ReadonlyMap<string, Command> {
  const { accounts, passwords, keys, factors, factorSettings, writer } = options;
  const line = (context: RequestContext, change: Change): AuditEntry =>
    audit(context, operatorOf({ principal: null }).actor, change);
  const setRole = async (email: string, role: "user" | "operator", context: RequestContext): Promise<object> => {
    const user = accounts.userByEmail(email);
    if (user === undefined) throw notFound(`user: ${email}`);
    if (user.role === role) {
      throw new ApiError(ErrorKind.conflict, `the account is ${role === "operator" ? "an" : "no"} operator's already`);
    }
    const action = role === "operator" ? "user.make_operator" : "user.remove_operator";
    const change = { action, userId: user.id, subject: user.id };
    await writer.write([changeUser(user, { role })], [line(context, change)]);
    return shown(user);
  };
  return new Map<string, Command>([
    [
      "keys rotate",
      async (_args, context) => {
        const kid = await keys.rotate(context.now);
        await writer.write([], [line(context, { action: "keys.rotate", userId: null, details: { kid } })]);
        return { kid };
      },
    ],
    [
      "keys rotate-second-factors",
      async (_args, context) => {
        const rotated = await factors.rotateKey(context.now);
        const change = { action: "keys.rotate_second_factors", userId: null, details: rotated };
        await writer.write([], [line(context, change)]);
        return rotated;
      },
    ],
    [
      "second-factor reset",
      async (args, context) => {
        const email = emailIn(args);
        const user = accounts.userByEmail(email);
        if (user === undefined) throw notFound(`user: ${email}`);
        await factorSettings.reset(user, {}, operatorOf({ principal: null }), context);
        return shown(user);
      },
    ],
    [
      "operator create",
      async (args, context) => {
        const email = emailIn(args);
        const password = randomBytes(PASSWORD_BYTES).toString("base64url");
        const passwordHash = await passwords.hashChosen(password);
        const { now: at } = context;
        const rest = { kycTier: 0, passwordHash, emailVerifiedAt: at, phoneVerifiedAt: null, at };
        const made = ["user.create", "user.make_operator"].map((action) =>
          line(context, { action, userId: "subject" }),
        );
        const [result] = await writer.write([{ kind: "createUser", email, role: "operator", ...rest }], made);
        if (!result!.created) throw new ApiError(ErrorKind.conflict, "email: already registered");
        return { ...shown(accounts.user(result!.id)!), password };
      },
    ],
    ["operator grant", async (args, context) => setRole(emailIn(args), "operator", context)],
    ["operator remove", async (args, context) => setRole(emailIn(args), "user", context)],
  ]);
}

function emailIn([email]: readonly string[]): string {
  return checkEmail({ email }).email.toLowerCase();
}

function shown({ id, email, role }: User): object {
  return { id, email, role };
}
