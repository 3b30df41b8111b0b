/**
 * One user's calls of the exchange's routes within its process. Each passes the checks of the route's scope, KYC tier and
 * schemas, as over HTTP; only what carries it is missing: sockets, rate limits, tokens. Nothing is executed before its owner lets
 * the exchange go on (exchange.ts).
 */
import { assert } from "../../../engine/util/assert.ts";
import type { Principal } from "../../../server/accounts/types.ts";
import { type ApiError, asApiError } from "../../../server/errors.ts";
import { authorize } from "../../../server/http/admission.ts";
import { NO_ADDRESS } from "../../../server/http/client-address.ts";
import { type CompiledRoute, DIRECT, execute } from "../../../server/http/dispatch.ts";
import { pathPattern, type RequestReply } from "../../../server/http/route.ts";
import { JsonReply } from "../../../server/orders/json-reply.ts";
import type { OrderedReads } from "../../../server/trading/types.ts";
import type { Caller, Reply } from "../types.ts";

interface Found {
  readonly compiled: CompiledRoute;
  readonly params: readonly [string, string];
}

/** The routes by method and path, as their callers spell them. */
export class RouteFinder {
  private readonly routes: readonly { readonly compiled: CompiledRoute; readonly pattern: RegExp }[];
  private readonly found = new Map<string, Found>();

  constructor(routes: readonly CompiledRoute[]) {
    this.routes = routes.map((compiled) => ({ compiled, pattern: pathPattern(compiled.route.path) }));
  }

  find(method: string, path: string): Found {
    const name = `${method} ${path}`;
    const known = this.found.get(name);
    if (known !== undefined) return known;
    const route = this.routes.find(({ compiled, pattern }) => compiled.route.method === method && pattern.test(path));
    assert(route !== undefined, `the exchange has ${name}`);
    const [, first = "", second = ""] = route.pattern.exec(path) ?? [];
    const found: Found = { compiled: route.compiled, params: [first, second] };
    this.found.set(name, found);
    return found;
  }
}

export interface CallerOptions {
  readonly name: string;
  readonly principal: Principal;
  readonly finder: RouteFinder;
  readonly reads: OrderedReads;
  /** ms since the epoch. */
  readonly now: () => number;
}

export class LocalCaller implements Caller {
  readonly name: string;
  private readonly options: CallerOptions;

  constructor(options: CallerOptions) {
    this.name = options.name;
    this.options = options;
  }

  call<T>(method: string, path: string, body?: object): Promise<Reply<T>> {
    const { principal, finder, reads, now } = this.options;
    const [plain = "", query = ""] = path.split("?");
    const { compiled, params } = finder.find(method, plain);
    const { route } = compiled;
    return new Promise((resolve) => {
      const reply = new LocalReply(resolve as (reply: Reply<unknown>) => void);
      try {
        authorize(route, principal);
        const headers = Object.fromEntries(route.headers.map((name) => [name, ""]));
        const checked = compiled.body === null ? null : compiled.body(body);
        const rest = { address: NO_ADDRESS, idempotencyKey: "", headers, origin: DIRECT, params, body: checked, reply };
        execute(route, { now: now(), principal, query: compiled.query(query), ...rest }, reply, reads);
      } catch (error) {
        reply.fail(error);
      }
    });
  }
}

class LocalReply extends JsonReply implements RequestReply {
  readonly requestId = "";
  private readonly resolve: (reply: Reply<unknown>) => void;

  constructor(resolve: (reply: Reply<unknown>) => void) {
    super();
    this.resolve = resolve;
  }

  data(json: string): void {
    this.resolve(new Success(json));
  }

  error({ kind, message }: ApiError): void {
    this.resolve({ code: kind.code, msg: message, data: null });
  }

  fail(thrown: unknown): void {
    const error = asApiError(thrown);
    if (error.kind.status >= 500) throw thrown;
    this.error(error);
  }

  plain(): void {
    assert(false, "every route has an envelope");
  }

  file(): void {
    assert(false, "no route responds with a file");
  }

  stream(): void {
    assert(false, "no route streams its response");
  }

  redirect(): void {
    assert(false, "no route redirects");
  }

  header(): void {}
}

/** Most callers look at the code alone. */
class Success implements Reply<unknown> {
  readonly code = 0;
  readonly msg = "ok";
  private readonly json: string;

  constructor(json: string) {
    this.json = json;
  }

  get data(): unknown {
    return JSON.parse(this.json);
  }
}
