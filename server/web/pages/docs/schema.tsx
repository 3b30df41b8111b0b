/** Renders a schema as a list of fields with types and bounds; nested schemas open on demand. */
import { useState } from "preact/hooks";
import { href } from "../../router.ts";
import type { Children } from "../../ui/use-data.ts";
import { type Document, type Json, nameOf, resolveRef, type Schema } from "./api-document.ts";
import { inline } from "./markdown.tsx";

/** The field of the response envelope that opens by default. */
const DATA = "data";

/** @param page path below /docs */
export function SchemaView({ schema, document, page }: { schema: Schema; document: Document; page: string }) {
  const whole = resolveRef(document, schema);
  const name = nameOf(schema);
  return (
    <div class="schema">
      {name !== null && (
        <p class="faint">
          <TypeText schema={schema} page={page} />
          {whole.description !== undefined && <> – {inline(whole.description)}</>}
        </p>
      )}
      <Fields schema={whole} document={document} page={page} />
    </div>
  );
}

function Fields({ schema, document, page }: { schema: Schema; document: Document; page: string }) {
  const { properties, required = [] } = schema;
  if (properties !== undefined && Object.keys(properties).length > 0) {
    return (
      <ul class="fields">
        {Object.entries(properties).map(([name, each]) => (
          <li key={name}>
            <Line name={name} schema={each} isRequired={required.includes(name)} document={document} page={page} />
          </li>
        ))}
      </ul>
    );
  }
  const choices = partsOf(schema);
  if (choices.length > 1) {
    return (
      <ul class="fields">
        {choices.map((each, i) => (
          <li key={i}>
            <Line name={`either ${i + 1}`} schema={each} isRequired={null} document={document} page={page} />
          </li>
        ))}
      </ul>
    );
  }
  if (schema.items !== undefined) {
    return <Line name="each" schema={schema.items} isRequired={null} document={document} page={page} />;
  }
  return <Line name="" schema={schema} isRequired={null} document={document} page={page} />;
}

/** A field or parameter. */
export function Line({
  name,
  schema,
  isRequired,
  place,
  document,
  page,
}: {
  name: string;
  schema: Schema;
  /** Null if not applicable. */
  isRequired: boolean | null;
  /** Location of a parameter, such as query. */
  place?: string;
  document: Document;
  page: string;
}) {
  const bounds = boundsOf(schema);
  const nested = nestedOf(schema, document);
  const description = schema.description ?? coreOf(schema).description;
  return (
    <>
      <div class="line">
        {name !== "" && <code class="name">{name}</code>}
        <span class="type">
          <TypeText schema={schema} page={page} />
        </span>
        {place !== undefined && <span class="bound">in the {place}</span>}
        {isRequired !== null && (
          <span class={isRequired ? "need" : "faint"}>{isRequired ? "required" : "optional"}</span>
        )}
        {bounds.map((bound) => (
          <span key={bound} class="bound">
            {bound}
          </span>
        ))}
      </div>
      <Values schema={coreOf(schema)} />
      {description !== undefined && <p class="faint">{inline(description)}</p>}
      {nested !== null && (
        <Nested label={name === "" || isRequired === null ? "Fields" : `Fields of ${name}`} isOpenFirst={name === DATA}>
          {() => <Fields schema={nested} document={document} page={page} />}
        </Nested>
      )}
    </>
  );
}

/** Rendered when opened: schemas can be recursive. */
function Nested({ label, isOpenFirst, children }: { label: string; isOpenFirst: boolean; children: () => Children }) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && children()}
    </details>
  );
}

function Values({ schema }: { schema: Schema }) {
  if (schema.enum === undefined || schema.enum.length === 0) return null;
  return (
    <p class="values">
      {schema.enum.map((value) => (
        <code key={String(value)}>{JSON.stringify(value)}</code>
      ))}
    </p>
  );
}

/** The non-null members of a union. */
function partsOf({ anyOf, oneOf }: Schema): readonly Schema[] {
  return (anyOf ?? oneOf ?? []).filter(({ type }) => type !== "null");
}

function isNullable({ anyOf, oneOf, type }: Schema): boolean {
  return (
    [...(anyOf ?? oneOf ?? [])].some((each) => each.type === "null") || (Array.isArray(type) && type.includes("null"))
  );
}

/** The schema of a field without null. */
function coreOf(schema: Schema): Schema {
  const [part, ...others] = partsOf(schema);
  return part !== undefined && others.length === 0 ? part : schema;
}

/** The schema to open below the field; null if there is no further detail. */
function nestedOf(schema: Schema, document: Document): Schema | null {
  const core = resolveRef(document, coreOf(schema));
  if (core.properties !== undefined || partsOf(core).length > 1) return core;
  if (core.items === undefined) return null;
  const item = resolveRef(document, core.items);
  return item.properties !== undefined || partsOf(item).length > 1 || item.items !== undefined ? item : null;
}

function TypeText({ schema, page }: { schema: Schema; page: string }) {
  const nullable = isNullable(schema) ? " or null" : "";
  const parts = partsOf(schema);
  if (parts.length > 0) {
    return (
      <>
        {parts.map((part, i) => (
          <span key={i}>
            {i > 0 && " or "}
            <TypeText schema={part} page={page} />
          </span>
        ))}
        {nullable}
      </>
    );
  }
  const name = nameOf(schema);
  if (name !== null) return <a href={href(`/docs/${page}?schema=${encodeURIComponent(name)}`)}>{name}</a>;
  if (schema.items !== undefined) {
    return (
      <>
        list of <TypeText schema={schema.items} page={page} />
      </>
    );
  }
  if (schema.const !== undefined) return <code>{JSON.stringify(schema.const)}</code>;
  const { type } = schema;
  if (Array.isArray(type)) return <>{type.join(" or ")}</>;
  return (
    <>{(type as string | undefined) ?? (schema.enum === undefined ? "any" : typeOfValues(schema.enum)) + nullable}</>
  );
}

const typeOfValues = (values: readonly Json[]): string =>
  values.every((value) => typeof value === "number") ? "integer" : "string";

/** The bounds of a schema as text. */
function boundsOf(schema: Schema): string[] {
  const core = coreOf(schema);
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = core;
  const preset = schema.default ?? core.default;
  return [
    between(minimum, maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum, ""),
    between(minLength, maxLength, " characters"),
    between(minItems, maxItems, " items"),
    pattern === undefined ? null : `matches ${pattern}`,
    preset === undefined ? null : `default ${JSON.stringify(preset)}`,
  ].filter((bound) => bound !== null);
}

function between(from: number | undefined, to: number | undefined, unit: string): string | null {
  if (from === undefined && to === undefined) return null;
  if (to === undefined) return `at least ${from}${unit}`;
  if (from === undefined) return `at most ${to}${unit}`;
  return from === to ? `${from}${unit}` : `${from} to ${to}${unit}`;
}
