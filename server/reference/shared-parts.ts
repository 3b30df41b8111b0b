/**
 * What several operations of a document have in common is described once, in its components. Equal parts share the name that
 * the first of them got.
 */
import { assert } from "../../engine/util/assert.ts";
import type { Json, JsonObject } from "./components.ts";

/** The name of an operation as the beginning of a part's name. */
export const capitalized = (id: string): string => id.charAt(0).toUpperCase() + id.slice(1);

type Kind = "schemas" | "parameters";

export class SharedParts {
  private readonly parts = new Map<Kind, Map<string, Json>>();
  /** By kind and content. */
  private readonly names = new Map<string, string>();

  /** Describes the part among the components; returns the reference to it. */
  refTo(kind: Kind, name: string, part: Json): JsonObject {
    const content = `${kind} ${JSON.stringify(part)}`;
    const found = this.names.get(content);
    if (found !== undefined) return { $ref: `#/components/${kind}/${found}` };
    const parts = this.parts.get(kind) ?? new Map<string, Json>();
    this.parts.set(kind, parts);
    assert(!parts.has(name), `one part of the API documents is ${kind}/${name}`);
    parts.set(name, part);
    this.names.set(content, name);
    return { $ref: `#/components/${kind}/${name}` };
  }

  /** The parts of a kind, by name. */
  of(kind: Kind): JsonObject {
    return Object.fromEntries(this.parts.get(kind) ?? []);
  }
}
