/**
 * The web site's files as `npm run build` wrote them, with their compressed forms: in memory from their first request on. Knows no sockets: returns the
 * bytes and headers of a response.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { allowsEncoding } from "./content-negotiation.ts";
import { findPage } from "./page-paths.ts";
import { commonLines } from "./security-headers.ts";

/** Browsers run our own scripts, styles and connections only, and no page may frame the site. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");
/** The names of these files change with their content. */
const ASSETS = "/assets/";
const INDEX = "/index.html";
/** No path below is a page of the site. */
const API = "/api/";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
};

type Encoding = "br" | "gzip" | "identity";
/** The smallest first. */
const ENCODINGS: readonly Encoding[] = ["br", "gzip", "identity"];

interface Variant {
  readonly body: Buffer;
  readonly etag: string;
  /** The value of Content-Type and all lines that follow it. */
  readonly lines: string;
}

/** The encodings of one file. */
type SiteFile = ReadonlyMap<Encoding, Variant>;

export interface SiteRequest {
  /** Without the query. */
  readonly path: string;
  /** Request headers, "" where they are missing. */
  readonly accept: string;
  readonly acceptEncoding: string;
  readonly ifNoneMatch: string;
}

export interface SiteResponse {
  readonly status: 200 | 304 | 404;
  readonly lines: string;
  /** Null: none. */
  readonly body: Buffer | null;
}

export class StaticSite {
  private names: ReadonlySet<string> = new Set();
  /** Those that were asked for. */
  private readonly files = new Map<string, SiteFile>();
  private readonly folder: string;
  private readonly publicUrl: () => string;

  /**
   * @param folder that Vite built; without one there is no site
   * @param publicUrl known once the server listens; the site may be below a path of it
   */
  constructor(folder: string, publicUrl: () => string) {
    this.folder = folder;
    this.publicUrl = publicUrl;
  }

  /** Finds the files. Called once PUBLIC_URL is known. */
  load(): void {
    if (!existsSync(join(this.folder, INDEX))) return;
    const names = readdirSync(this.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.folder.length).split(sep).join("/"))
      .map((name) => (name.startsWith("/") ? name : `/${name}`));
    this.names = new Set(names);
  }

  private file(name: string): SiteFile | undefined {
    const known = this.files.get(name);
    if (known !== undefined) return known;
    const type = TYPES[extname(name)];
    if (type === undefined || !this.names.has(name)) return undefined;
    const file = this.readFile(name, type, this.names);
    this.files.set(name, file);
    return file;
  }

  /** Null where the site has no such path and the client doesn't want a page. */
  respond({ path, accept, acceptEncoding, ifNoneMatch }: SiteRequest): SiteResponse | null {
    if (path.startsWith(API)) return null;
    const isPage = findPage(path) !== null;
    // A person who mistyped a path sees a page; a program gets JSON.
    const file = isPage || accept.includes("text/html") ? (this.file(path) ?? this.file(INDEX)) : this.file(path);
    if (file === undefined) return null;
    const isFound = isPage || this.file(path) !== undefined;
    const { body, etag, lines } = chooseVariant(file, acceptEncoding);
    if (isFound && (ifNoneMatch.trim() === "*" || ifNoneMatch.includes(etag)))
      return { status: 304, lines, body: null };
    return { status: isFound ? 200 : 404, lines, body };
  }

  private readFile(name: string, type: string, names: ReadonlySet<string>): SiteFile {
    const read = (suffix: string): Buffer => readFileSync(join(this.folder, name + suffix));
    const common = this.headerLines(name.startsWith(ASSETS) ? "public, max-age=31536000, immutable" : "no-cache");
    let plain = read("");
    const bodies = new Map<Encoding, Buffer>();
    if (name === INDEX) {
      const { pathname } = new URL(this.publicUrl());
      const base = `${pathname.replace(/\/+$/, "")}/`;
      plain = Buffer.from(plain.toString().replace('<base href="/"', `<base href="${base}"`));
      bodies.set("identity", plain).set("gzip", gzipSync(plain)).set("br", brotliCompressSync(plain));
    } else {
      bodies.set("identity", plain);
      if (names.has(`${name}.gz`)) bodies.set("gzip", read(".gz"));
      if (names.has(`${name}.br`)) bodies.set("br", read(".br"));
    }
    const hash = createHash("sha256").update(plain).digest("base64url").slice(0, 22);
    const variants = new Map<Encoding, Variant>();
    for (const [encoding, body] of bodies) {
      const etag = `"${hash}-${encoding}"`;
      const lines = [type, ...common, `ETag: ${etag}`];
      if (encoding !== "identity") lines.push(`Content-Encoding: ${encoding}`);
      variants.set(encoding, { body, etag, lines: lines.join("\r\n") });
    }
    return variants;
  }

  private headerLines(cache: string): string[] {
    return [
      ...commonLines(this.publicUrl(), cache, CONTENT_SECURITY_POLICY),
      "Vary: Accept-Encoding",
      "Cross-Origin-Opener-Policy: same-origin",
      "Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ];
  }
}

/** The smallest encoding that the client accepts. */
function chooseVariant(file: SiteFile, acceptEncoding: string): Variant {
  for (const encoding of ENCODINGS) {
    const variant = file.get(encoding);
    if (variant !== undefined && (encoding === "identity" || allowsEncoding(acceptEncoding, encoding))) return variant;
  }
  throw new Error("a file of the site has no plain encoding");
}
