/** Request samples in several languages, using only each language's standard library. */
import {
  type Document,
  exampleOf,
  type Json,
  mediaOf,
  type Parameter,
  type RestOperation,
  resolveRef,
} from "./api-document.ts";

export const LANGUAGES = [
  ["curl", "curl"],
  ["node", "Node"],
  ["python", "Python"],
] as const;
export type Language = (typeof LANGUAGES)[number][0];
export type Sample = Readonly<Record<Language, string>>;

const FORM = "application/x-www-form-urlencoded";

interface Parts {
  readonly method: string;
  readonly url: string;
  readonly needsToken: boolean;
  /** Null without a body. */
  readonly body: Json | null;
  readonly bodyType: string;
  readonly isJson: boolean;
}

export function parametersOf({ object }: RestOperation, document: Document): Parameter[] {
  return (object.parameters ?? []).map((parameter) => resolveRef(document, parameter));
}

/** Path and query of the example request. */
export function exampleTarget(operation: RestOperation, document: Document): string {
  const parameters = parametersOf(operation, document);
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const example = parameters.find((each) => each.in === "path" && each.name === name)?.example;
    return encodeURIComponent(String(example ?? name.toUpperCase()));
  });
  const query = parameters.filter((each) => each.in === "query" && each.example !== undefined);
  if (query.length === 0) return path;
  return `${path}?${new URLSearchParams(query.map(({ name, example }) => [name ?? "", String(example)]))}`;
}

/** True if every call requires a token. */
function needsToken({ object: { security = [] } }: RestOperation): boolean {
  return security.length > 0 && security.every((each) => Object.keys(each).length > 0);
}

export function sampleOf(operation: RestOperation, document: Document): Sample {
  const { object, server, method } = operation;
  const media = object.requestBody === undefined ? null : mediaOf(resolveRef(document, object.requestBody).content);
  const response = Object.entries(object.responses ?? {}).find(([status]) => status.startsWith("2"))?.[1];
  const parts: Parts = {
    method,
    url: server + exampleTarget(operation, document),
    needsToken: needsToken(operation),
    body: media === null ? null : (exampleOf(media.media) ?? {}),
    bodyType: media?.type ?? "",
    isJson: response === undefined || mediaOf(resolveRef(document, response).content)?.type === "application/json",
  };
  return { curl: curl(parts), node: node(parts), python: python(parts) };
}

const formText = (body: Json): string =>
  new URLSearchParams(
    Object.entries(body as Record<string, Json>).map(([name, value]) => [name, String(value)]),
  ).toString();

/** Quotes a text for the shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ method, url, needsToken: isAuthenticated, body, bodyType }: Parts): string {
  const lines = [
    `curl ${method === "GET" || (method === "POST" && body !== null) ? "" : `-X ${method} `}${quoted(url)}`,
  ];
  if (isAuthenticated) lines.push(`-H "Authorization: Bearer $TOKEN"`);
  if (body !== null && bodyType === FORM) lines.push(`-d ${quoted(formText(body))}`);
  else if (body !== null) lines.push(`-H ${quoted(`Content-Type: ${bodyType}`)}`, `-d ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

const indented = (text: string, by: number): string => text.replaceAll("\n", `\n${" ".repeat(by)}`);

function node({ method, url, needsToken: isAuthenticated, body, bodyType, isJson }: Parts): string {
  const headers: string[] = [];
  if (isAuthenticated) headers.push(`Authorization: "Bearer " + process.env.TOKEN`);
  if (body !== null && bodyType !== FORM) headers.push(`"Content-Type": ${JSON.stringify(bodyType)}`);
  const options: string[] = [];
  if (method !== "GET") options.push(`method: ${JSON.stringify(method)}`);
  if (headers.length > 0) options.push(`headers: { ${headers.join(", ")} }`);
  if (body !== null) {
    const json = indented(JSON.stringify(body, null, 2), 2);
    options.push(`body: ${bodyType === FORM ? `new URLSearchParams(${json})` : `JSON.stringify(${json})`}`);
  }
  const given = options.length === 0 ? "" : `, {\n${options.map((option) => `  ${option},\n`).join("")}}`;
  return `const response = await fetch(${JSON.stringify(url)}${given});
console.log(response.status, await response.${isJson ? "json" : "text"}());`;
}

function python({ method, url, needsToken: isAuthenticated, body, bodyType, isJson }: Parts): string {
  const headers: string[] = [];
  if (isAuthenticated) headers.push(`"Authorization": "Bearer " + os.environ["TOKEN"]`);
  if (body !== null && bodyType !== FORM) headers.push(`"Content-Type": ${JSON.stringify(bodyType)}`);
  const modules = [
    isJson || body !== null ? "json" : "",
    isAuthenticated ? "os" : "",
    bodyType === FORM ? "urllib.parse" : "",
    "urllib.request",
  ];
  const lines = [`    ${JSON.stringify(url)},`];
  if (method !== "GET") lines.push(`    method=${JSON.stringify(method)},`);
  if (headers.length > 0) lines.push(`    headers={${headers.join(", ")}},`);
  if (body !== null) {
    const literal = indented(pythonText(body, 0), 4);
    lines.push(
      `    data=${bodyType === FORM ? `urllib.parse.urlencode(${literal})` : `json.dumps(${literal})`}.encode(),`,
    );
  }
  return `import ${modules.filter((module) => module !== "").join(", ")}

request = urllib.request.Request(
${lines.join("\n")}
)
with urllib.request.urlopen(request) as response:
    print(response.status, ${isJson ? "json.load(response)" : "response.read().decode()"})`;
}

/** Formats JSON as a Python literal. */
function pythonText(value: Json, depth: number): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  if (Array.isArray(value)) {
    const items = value.map((each) => `${inner}${pythonText(each as Json, depth + 1)},\n`);
    return items.length === 0 ? "[]" : `[\n${items.join("")}${end}]`;
  }
  const fields = Object.entries(value as Record<string, Json>);
  if (fields.length === 0) return "{}";
  return `{\n${fields.map(([name, each]) => `${inner}${JSON.stringify(name)}: ${pythonText(each, depth + 1)},\n`).join("")}${end}}`;
}
