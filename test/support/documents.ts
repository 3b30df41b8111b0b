/** The API documents as a client reads them: operations with their examples, and checks of values through `$ref`s. */

import { Compile } from "typebox/schema";
import packageJson from "../../package.json" with { type: "json" };
import { asyncApi } from "../../server/reference/asyncapi.ts";
import { openApi } from "../../server/reference/openapi.ts";
import { ROUTES } from "./client.ts";

// biome-ignore lint/suspicious/noExplicitAny: like their readers, tests read the documents without our types.
export type Node = any;

/** Both documents as the server must serve them. */
export const openApiOf = (publicUrl: string, routes = ROUTES): Node =>
  made(openApi(routes, publicUrl, packageJson.version));
export const asyncApiOf = (publicUrl: string): Node => made(asyncApi(ROUTES, publicUrl, packageJson.version));

/** All steps at once. */
function made(steps: Generator<undefined, object>): Node {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return JSON.parse(JSON.stringify(step.value));
}

/** Resolves a reference; returns anything else unchanged. */
export function resolved(document: Node, value: Node): Node {
  if (typeof value?.$ref !== "string") return value;
  const steps = value.$ref.slice(2).split("/");
  return steps.reduce((at: Node, step: string) => at[step.replaceAll("~1", "/").replaceAll("~0", "~")], document);
}

/** A schema with its references resolved. */
export function spelledOut(document: Node, schema: Node): Node {
  const found = resolved(document, schema);
  if (Array.isArray(found)) return found.map((item) => spelledOut(document, item));
  if (typeof found !== "object" || found === null) return found;
  return Object.fromEntries(Object.entries(found).map(([key, field]) => [key, spelledOut(document, field)]));
}

/** Throws, with the first differences, if a value doesn't match a schema of the document. */
export function expectOf(document: Node, schema: Node, value: unknown, what: string): void {
  const validator = Compile({ components: document.components, ...schema });
  if (validator.Check(value)) return;
  const [, errors] = validator.Errors(value);
  throw new Error(`${what}: ${JSON.stringify(errors.slice(0, 3))} in ${JSON.stringify(value)}`);
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  /** The document's path, with braces. */
  readonly path: string;
  /** At the root, not below /api/v1. */
  readonly isRoot: boolean;
  readonly node: Node;
  /** The status of its success. */
  readonly status: number;
}

const METHODS = ["get", "post", "put", "patch", "delete"];

export function operationsOf(document: Node): Operation[] {
  return Object.entries<Node>(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => {
      const node = item[method];
      const isRoot = item.servers !== undefined && item.servers.length === 1;
      const status = Number(Object.keys(node.responses).find((key) => /^2/.test(key)) ?? 302);
      return { id: node.operationId, method: method.toUpperCase(), path, isRoot, node, status };
    }),
  );
}

/** The parameters' examples, in one place of a request: path, query or header. */
export function examplesIn(document: Node, { node }: Operation, place: string): Record<string, unknown> {
  const parameters = (node.parameters ?? []).map((parameter: Node) => resolved(document, parameter));
  const shown = parameters.filter((parameter: Node) => parameter.in === place && parameter.example !== undefined);
  return Object.fromEntries(shown.map(({ name, example }: Node) => [name, example]));
}
