/**
 * Types and accessors for the OpenAPI 3.1 and AsyncAPI 3.0 documents, as far as the reference shows them. Every field is
 * optional: the reference omits what is missing.
 */
import { ApiError } from "../../api.ts";
import { base } from "../../router.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly default?: Json;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

interface Reference {
  readonly $ref?: string;
}

export interface Parameter extends Reference {
  readonly name?: string;
  readonly in?: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: Json;
}

interface Media {
  readonly schema?: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value?: Json }>>;
}

type Content = Readonly<Record<string, Media>>;

interface Body extends Reference {
  readonly description?: string;
  readonly required?: boolean;
  readonly content?: Content;
}

interface OperationObject {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses?: Readonly<Record<string, Body>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly "x-access"?: string;
  readonly "x-token-kinds"?: readonly string[];
  readonly "x-scope"?: string | null;
  readonly "x-min-kyc-tier"?: number;
}

interface Info {
  readonly title?: string;
  readonly version?: string;
  readonly description?: string;
}

export interface Document {
  readonly info?: Info;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

export interface RestDocument extends Document {
  readonly servers?: readonly { readonly url?: string }[];
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths?: Readonly<Record<string, Readonly<Record<string, OperationObject>> & { servers?: never }>>;
}

export interface Message extends Reference {
  readonly name?: string;
  readonly title?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly payload?: Schema;
  readonly examples?: readonly { readonly payload?: Json }[];
}

interface SocketOperation {
  /** From the server's view: it receives what clients send. */
  readonly action?: "send" | "receive";
  readonly title?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly messages?: readonly Message[];
  readonly reply?: { readonly messages?: readonly Message[] };
}

export interface SocketDocument extends Document {
  readonly servers?: Readonly<
    Record<string, { readonly host?: string; readonly protocol?: string; readonly pathname?: string }>
  >;
  readonly operations?: Readonly<Record<string, SocketOperation>>;
}

/** An operation with its path, method, tag and server. */
export interface RestOperation {
  /** Identifies the operation in links. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly object: OperationObject;
  /** Base URL of the operation. */
  readonly server: string;
}

const METHODS = ["get", "post", "put", "patch", "delete"];

/** @param name openapi.json or asyncapi.json @throws ApiError */
export async function fetchDocument<T extends Document>(name: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(base + name, { signal }).catch((error: unknown) => {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, 0, "no response", null, null);
  });
  if (!response.ok) throw new ApiError(response.status, 0, "This exchange doesn't serve its API documents", null, null);
  return (await response.json()) as T;
}

/** Resolves a $ref; returns the object itself if it has none, and an empty object for a dangling one. */
export function resolveRef<T extends Reference>(document: Document, given: T): T {
  let found: T = given;
  // Our documents have no longer chains, and a cycle must not hang the page.
  for (let step = 0; step < 8 && found.$ref !== undefined; step++) {
    let at: unknown = document;
    for (const part of found.$ref.replace(/^#\//, "").split("/")) {
      const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      at = (at as Record<string, unknown> | undefined)?.[name];
    }
    if (at === undefined) return {} as T;
    found = at as T;
  }
  return found;
}

const SCHEMAS = "#/components/schemas/";

/** The name of the schema that a $ref points to; null without one. */
export function nameOf({ $ref }: Schema): string | null {
  return $ref?.startsWith(SCHEMAS) ? $ref.slice(SCHEMAS.length) : null;
}

export function operationsOf(document: RestDocument): RestOperation[] {
  const server = document.servers?.[0]?.url ?? "";
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const object = item[method];
      if (object === undefined) return [];
      const own = (item as { servers?: readonly { url?: string }[] }).servers?.[0]?.url;
      const operation = {
        id: object.operationId ?? `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        tag: object.tags?.[0] ?? "Other",
        object,
        server: own ?? server,
      };
      return [operation];
    }),
  );
}

/** Selects the content to show: JSON, else the first type. */
export function mediaOf(content: Content | undefined): { type: string; media: Media } | null {
  const entries = Object.entries(content ?? {});
  const [type, media] = entries.find(([each]) => each === "application/json") ?? entries[0] ?? [];
  return type === undefined || media === undefined ? null : { type, media };
}

/** The first example; undefined without one. */
export function exampleOf({ example, examples }: Media): Json | undefined {
  return example ?? Object.values(examples ?? {})[0]?.value;
}
