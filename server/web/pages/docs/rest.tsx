/** The REST reference: a list of operations, and one operation at a time. */
import { search } from "../../router.ts";
import { Badge } from "../../ui/badge.tsx";
import {
  type Document,
  exampleOf,
  mediaOf,
  operationsOf,
  type RestDocument,
  type RestOperation,
  resolveRef,
} from "./api-document.ts";
import { Code, SampleTabs } from "./code-block.tsx";
import { inline, Markdown } from "./markdown.tsx";
import { type Entry, EntryList, type Group, Method, ReferenceLayout, SchemaPage, Title } from "./reference-layout.tsx";
import { parametersOf, sampleOf } from "./samples.ts";
import { Line, SchemaView } from "./schema.tsx";
import { TryIt } from "./try-it.tsx";

const PAGE = "rest";

export function Rest({ document }: { document: RestDocument }) {
  const operations = operationsOf(document);
  const groups = groupsOf(document, operations);
  const schema = search.value.get("schema");
  const id = search.value.get("operation") ?? "";
  const operation = operations.find((each) => each.id === id);
  return (
    <ReferenceLayout page={PAGE} groups={groups} current={schema === null ? id : ""}>
      {schema !== null ? (
        <SchemaPage name={schema} document={document} page={PAGE} />
      ) : operation === undefined ? (
        <Index groups={groups} isUnknown={id !== ""} />
      ) : (
        <OperationView key={id} operation={operation} document={document} />
      )}
    </ReferenceLayout>
  );
}

function groupsOf({ tags = [] }: RestDocument, operations: readonly RestOperation[]): Group[] {
  const names = [...new Set([...tags.map(({ name }) => name), ...operations.map(({ tag }) => tag)])];
  return names.map((name) => ({
    name,
    description: tags.find((tag) => tag.name === name)?.description,
    entries: operations.filter(({ tag }) => tag === name).map(entryOf),
  }));
}

function entryOf({ id, method, path, object: { summary = "" } }: RestOperation): Entry {
  return { id, method, title: path, words: `${summary} ${id}` };
}

/** Lists all operations. */
function Index({ groups, isUnknown }: { groups: readonly Group[]; isUnknown: boolean }) {
  return (
    <>
      <Title>REST</Title>
      {isUnknown && <p class="notice warn">Operation not found. These are all operations.</p>}
      {groups.map(({ name, description, entries }) => (
        <section key={name} class="panel">
          <h2>{name}</h2>
          {description !== undefined && <p class="faint">{inline(description)}</p>}
          <EntryList page={PAGE} entries={entries} />
        </section>
      ))}
    </>
  );
}

function OperationView({ operation, document }: { operation: RestOperation; document: RestDocument }) {
  const { method, path, object } = operation;
  const { summary, description, deprecated, requestBody, responses = {} } = object;
  const statuses = Object.keys(responses);
  const content = requestBody === undefined ? {} : (resolveRef(document, requestBody).content ?? {});
  const body = mediaOf(content);
  return (
    <>
      <Title>{summary ?? path}</Title>
      <p class="path">
        <Method method={method} /> <code>{path}</code>
        {deprecated === true && <Badge text="deprecated" tone="warn" />}
      </p>
      <Access operation={operation} />
      {description !== undefined && <Markdown text={description} />}
      <Parameters operation={operation} document={document} />
      {body?.media.schema !== undefined && (
        <section class="panel">
          <h2>Request body</h2>
          <p class="faint">{Object.keys(content).join(", ")}</p>
          <SchemaView schema={body.media.schema} document={document} page={PAGE} />
        </section>
      )}
      <section class="panel">
        <h2>Example</h2>
        <SampleTabs sample={sampleOf(operation, document)} />
        {method === "GET" && <TryIt operation={operation} document={document} />}
      </section>
      {statuses
        .filter((status) => /^[123]/.test(status))
        .map((status) => (
          <ResponseView key={status} status={status} operation={operation} document={document} />
        ))}
      <Errors operation={operation} document={document} />
    </>
  );
}

/** Access requirements: token kinds, scope, KYC tier. */
function Access({ operation: { object } }: { operation: RestOperation }) {
  const kinds = object["x-token-kinds"] ?? [];
  const scope = object["x-scope"] ?? null;
  const tier = object["x-min-kyc-tier"] ?? 0;
  const access = object["x-access"];
  const isPublic = access === "public" || (access === undefined && (object.security ?? []).length === 0);
  return (
    <p class="row">
      {isPublic ? <Badge text="public" tone="good" /> : <Badge text="token required" />}
      {access === "operator" && <Badge text="operators only" tone="warn" />}
      {!isPublic && kinds.map((kind) => <Badge key={kind} text={TOKEN_KINDS[kind] ?? kind} />)}
      {scope !== null && <Badge text={`scope ${scope}`} />}
      {tier > 0 && <Badge text={`KYC tier ${tier} or more`} />}
    </p>
  );
}

const TOKEN_KINDS: Readonly<Record<string, string>> = {
  session: "session",
  oauth: "OAuth access token",
  pat: "personal access token",
};

function Parameters({ operation, document }: { operation: RestOperation; document: Document }) {
  const parameters = parametersOf(operation, document);
  if (parameters.length === 0) return null;
  return (
    <section class="panel">
      <h2>Parameters</h2>
      <ul class="fields">
        {parameters.map(({ name = "", in: place = "request", required = false, description, schema = {}, example }) => (
          <li key={`${place} ${name}`}>
            <Line
              name={name}
              schema={description === undefined ? schema : { ...schema, description }}
              isRequired={required}
              place={place}
              document={document}
              page={PAGE}
            />
            {example !== undefined && <p class="bound">for example {String(example)}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ResponseView({
  status,
  operation,
  document,
}: {
  status: string;
  operation: RestOperation;
  document: Document;
}) {
  const response = resolveRef(document, operation.object.responses?.[status] ?? {});
  const found = mediaOf(response.content);
  const example = found === null ? undefined : exampleOf(found.media);
  return (
    <section class="panel">
      <h2>Response {status}</h2>
      {response.description !== undefined && <p class="faint">{inline(response.description)}</p>}
      {found !== null && <p class="faint">{Object.keys(response.content ?? {}).join(", ")}</p>}
      {found?.media.schema !== undefined && <SchemaView schema={found.media.schema} document={document} page={PAGE} />}
      {example !== undefined && (
        <Code
          label={`Example response ${status}`}
          text={typeof example === "string" ? example : JSON.stringify(example, null, 2)}
        />
      )}
    </section>
  );
}

function Errors({ operation, document }: { operation: RestOperation; document: Document }) {
  const errors = Object.entries(operation.object.responses ?? {}).filter(([status]) => /^[45]/.test(status));
  if (errors.length === 0) return null;
  return (
    <section class="panel">
      <h2>Errors</h2>
      <ul class="fields">
        {errors.map(([status, given]) => {
          const { description = "", content } = resolveRef(document, given);
          const examples = Object.values(mediaOf(content)?.media.examples ?? {});
          return (
            <li key={status}>
              <p>
                <code class="name">{status}</code> {inline(description)}
              </p>
              {examples.map(({ value }) => (
                <p key={JSON.stringify(value)}>
                  <code>{JSON.stringify(value)}</code>
                </p>
              ))}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
