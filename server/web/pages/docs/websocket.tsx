/** The WebSocket reference: operations that clients send with their replies, and events they receive. */
import { search } from "../../router.ts";
import { type Message, resolveRef, type SocketDocument } from "./api-document.ts";
import { Code } from "./code-block.tsx";
import { Markdown } from "./markdown.tsx";
import { type Entry, EntryList, type Group, ReferenceLayout, SchemaPage, Title } from "./reference-layout.tsx";
import { SchemaView } from "./schema.tsx";

const PAGE = "websocket";

interface Operation {
  readonly id: string;
  readonly name: string;
  readonly isSent: boolean;
  readonly summary: string;
  readonly description: string | undefined;
  readonly messages: readonly Message[];
  readonly replies: readonly Message[];
}

export function WebSocketReference({ document }: { document: SocketDocument }) {
  const operations = operationsOf(document);
  const groups: Group[] = [
    { name: "Operations", entries: operations.filter(({ isSent }) => isSent).map(entryOf) },
    { name: "Events", entries: operations.filter(({ isSent }) => !isSent).map(entryOf) },
  ];
  const schema = search.value.get("schema");
  const id = search.value.get("operation") ?? "";
  const operation = operations.find((each) => each.id === id);
  return (
    <ReferenceLayout page={PAGE} groups={groups} current={schema === null ? id : ""}>
      {schema !== null ? (
        <SchemaPage name={schema} document={document} page={PAGE} />
      ) : operation === undefined ? (
        <Introduction document={document} groups={groups} isUnknown={id !== ""} />
      ) : (
        <OperationView key={id} operation={operation} document={document} />
      )}
    </ReferenceLayout>
  );
}

function operationsOf(document: SocketDocument): Operation[] {
  return Object.entries(document.operations ?? {}).map(([id, operation]) => {
    const messages = (operation.messages ?? []).map((message) => resolveRef(document, message));
    return {
      id,
      name: messages[0]?.name ?? operation.title ?? id,
      isSent: operation.action === "receive",
      summary: operation.summary ?? messages[0]?.summary ?? id,
      description: operation.description,
      messages,
      replies: (operation.reply?.messages ?? []).map((message) => resolveRef(document, message)),
    };
  });
}

const entryOf = ({ id, name, summary }: Operation): Entry => ({
  id,
  method: null,
  title: name,
  words: `${summary} ${id}`,
});

function Introduction({
  document,
  groups,
  isUnknown,
}: {
  document: SocketDocument;
  groups: readonly Group[];
  isUnknown: boolean;
}) {
  const {
    host = window.location.host,
    protocol = "ws",
    pathname = "",
  } = Object.values(document.servers ?? {})[0] ?? {};
  return (
    <>
      <Title>WebSocket</Title>
      {isUnknown && <p class="notice warn">Operation not found. These are all operations.</p>}
      <Code label="URL" text={`${protocol}://${host}${pathname}/ws?token=TOKEN`} />
      {document.info?.description !== undefined && (
        <section class="panel">
          <h2>Conventions</h2>
          <Markdown text={document.info.description} />
        </section>
      )}
      {groups.map(({ name, entries }) => (
        <section key={name} class="panel">
          <h2>{name}</h2>
          <EntryList page={PAGE} entries={entries} />
        </section>
      ))}
    </>
  );
}

function OperationView({ operation, document }: { operation: Operation; document: SocketDocument }) {
  const { name, summary, description, isSent, messages, replies } = operation;
  return (
    <>
      <Title>{name}</Title>
      <p>{summary}</p>
      {description !== undefined && <Markdown text={description} />}
      {messages.map((message, i) => (
        <MessageView
          key={message.name ?? i}
          title={isSent ? "Request" : "Event"}
          message={message}
          document={document}
        />
      ))}
      {replies.map((message, i) => (
        <MessageView key={message.name ?? i} title="Reply" message={message} document={document} />
      ))}
    </>
  );
}

function MessageView({ title, message, document }: { title: string; message: Message; document: SocketDocument }) {
  const { description, payload, examples = [] } = message;
  return (
    <section class="panel">
      <h2>{title}</h2>
      {description !== undefined && <Markdown text={description} />}
      {payload !== undefined && <SchemaView schema={payload} document={document} page={PAGE} />}
      {examples.map((example, i) => (
        <Code
          key={JSON.stringify(example)}
          label={`${title}, example ${i + 1}`}
          text={JSON.stringify(example.payload ?? null, null, 2)}
        />
      ))}
    </section>
  );
}
