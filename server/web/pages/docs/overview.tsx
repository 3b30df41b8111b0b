/** Where one begins: what holds everywhere, the documents to take along, a client made of them. */
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
        Everything that this page does goes through the API. <a href={href("/docs/rest")}>REST</a> asks and decides,{" "}
        <a href={href("/docs/websocket")}>the WebSocket</a> tells what happens and takes orders too.
      </p>
      <div class="two-panels">
        <section class="panel">
          <h2>Begin</h2>
          <p>
            Market data needs no token. For a bot make a <a href={href("/account/tokens")}>personal access token</a>: it
            stays until it is revoked, and its orders get the higher rebate.
          </p>
          <Code label="A first call" text={`curl '${server}/markets?limit=1'`} />
          <Code
            label="A call with a token"
            text={`curl '${server}/wallet/balance' -H "Authorization: Bearer $TOKEN"`}
          />
        </section>
        <section class="panel">
          <h2>Make a client of it</h2>
          <p>
            The documents describe every operation, with types and bounds:{" "}
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
            label="Types of the API"
            text={`npx openapi-typescript ${file} -o exchange-api.ts\nnpm install openapi-fetch`}
          />
          <Code label="A typed call" text={clientText(server)} />
        </section>
      </div>
      {document.info?.description !== undefined && (
        <section class="panel">
          <h2>What holds everywhere</h2>
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
