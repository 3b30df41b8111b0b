/** The API reference, rendered from the exchange's own OpenAPI and AsyncAPI documents. */
import { useEffect } from "preact/hooks";
import { href } from "../router.ts";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { useFetch } from "../ui/use-data.ts";
import { type Document, fetchDocument, type RestDocument, type SocketDocument } from "./docs/api-document.ts";
import { Overview } from "./docs/overview.tsx";
import { Rest } from "./docs/rest.tsx";
import { WebSocketReference } from "./docs/websocket.tsx";
import "./docs.css";

const PAGES = [
  ["", "Overview"],
  ["rest", "REST"],
  ["websocket", "WebSocket"],
] as const;
const addressOf = (name: string): string => href(name === "" ? "/docs" : `/docs/${name}`);

export default function Page({ param }: { param: string }) {
  const found = PAGES.find(([name]) => name === param);
  const file = param === "websocket" ? "asyncapi.json" : "openapi.json";
  const { data, error, reload } = useFetch<Document>(
    found === undefined ? null : (signal) => fetchDocument(file, signal),
    file,
  );
  const title = found === undefined ? "Page not found" : param === "" ? "Overview" : null;
  // The other pages set their own titles.
  useEffect(() => {
    if (title !== null) document.title = `${title} · API reference · Prediction Exchange`;
  }, [title]);
  return (
    <div class="docs">
      <Tabs
        label="API reference sections"
        tabs={PAGES.map(([name, title]): [string, string] => [addressOf(name), title])}
        current={addressOf(found?.[0] ?? "none")}
      />
      {found === undefined && (
        <>
          <h1>Page not found</h1>
          <Empty>The API reference has no section at this address.</Empty>
        </>
      )}
      <ErrorNotice error={error} retry={reload} />
      {found !== undefined && data === null && error === null && <Loading what="Loading the API reference" />}
      {data !== null && param === "" && <Overview document={data as RestDocument} />}
      {data !== null && param === "rest" && <Rest document={data as RestDocument} />}
      {data !== null && param === "websocket" && <WebSocketReference document={data as SocketDocument} />}
    </div>
  );
}
