/** The start page of the reference: first calls, the documents to download, generated clients, conventions. */
import { base, href } from "../../router.ts";
import type { RestDocument } from "./api-document.ts";
import { Code } from "./code-block.tsx";
import { Markdown } from "./markdown.tsx";

export function Overview({ document }: { document: RestDocument }) {
  const server = document.servers?.[0]?.url ?? `${window.location.origin}${base}api/v1`;
  const file = new URL(`${base}openapi.json`, window.location.origin).href;
  return (
    <>
      <h1>API reference</h1>
      <p>
        This site uses the same API. Use <a href={href("/docs/rest")}>REST</a> for requests, and the{" "}
        <a href={href("/docs/websocket")}>WebSocket</a> for live events and order entry.
      </p>
      <div class="two-panels">
        <section class="panel">
          <h2>Get started</h2>
          <p>
            Market data needs no token. For a bot, create a <a href={href("/account/tokens")}>personal access token</a>:
            it works until you revoke it, and its orders earn the higher rebate.
          </p>
          <Code label="First call" text={`curl '${server}/markets?limit=1'`} />
          <Code label="Call with a token" text={`curl '${server}/wallet/balance' -H "Authorization: Bearer $TOKEN"`} />
        </section>
        <section class="panel">
          <h2>Generate a client</h2>
          <p>
            These documents describe every operation, with types and bounds:{" "}
            <a href={`${base}openapi.json`} download="openapi.json">
              openapi.json
            </a>{" "}
            (OpenAPI 3.1) and{" "}
            <a href={`${base}asyncapi.json`} download="asyncapi.json">
              asyncapi.json
            </a>{" "}
            (AsyncAPI 3.0). For TypeScript:
          </p>
          <Code
            label="API types"
            text={`npx openapi-typescript ${file} -o exchange-api.ts\nnpm install openapi-fetch`}
          />
          <Code label="Typed call" text={clientText(server)} />
        </section>
      </div>
      {document.info?.description !== undefined && (
        <section class="panel">
          <h2>Conventions</h2>
          <Markdown text={document.info.description} />
        </section>
      )}
    </>
  );
}

function clientText(server: string): string {
  return `import createClient from "openapi-fetch";
import type { paths } from "./exchange-api.ts";

const client = createClient<paths>({
  baseUrl: "${server}",
  headers: { Authorization: \`Bearer \${process.env.TOKEN}\` },
});
const { data, error } = await client.GET("/markets", { params: { query: { limit: 1 } } });`;
}
