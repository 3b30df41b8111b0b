/** Reads the environment into one checked object. A wrong value stops the start with a line that names the variable. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { Durability } from "../engine/journal/database.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string;
  readonly dataDir: string;
  readonly engineThreads: number;
  readonly durability: Durability;
  /** False only where RATE_LIMITS=off. */
  readonly rateLimits: boolean | Readonly<Record<string, unknown>>;
  readonly seedFile: string | null;
  readonly logLevel: string;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
}

/** A mistake in the environment, in words for the operator. */
export class ConfigError extends Error {}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
const MAX_ENGINE_THREADS = 64;

/** @throws ConfigError naming the variable and what it must be */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const text = (name: string, fallback: string): string => {
    const value = env[name];
    return value === undefined || value === "" ? fallback : value;
  };
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name, String(fallback));
    if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max) {
      throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
    }
    return Number(value);
  };
  const choice = <T extends string>(name: string, fallback: T, choices: readonly T[]): T => {
    const value = text(name, fallback) as T;
    if (!choices.includes(value)) throw new ConfigError(`${name} must be one of ${choices.join(", ")}, not "${value}"`);
    return value;
  };
  const file = (name: string): string | null => {
    const value = text(name, "");
    if (value === "") return null;
    try {
      readFileSync(value);
    } catch (error) {
      throw new ConfigError(`${name}: cannot read "${value}" (${(error as NodeJS.ErrnoException).code})`);
    }
    return resolve(value);
  };

  const host = text("HOST", "127.0.0.1");
  const port = integer("PORT", 8080, 0, 65_535);
  const tls = text("TLS_CERT", "") !== "" || text("TLS_KEY", "") !== "";
  const ownUrl = `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (!URL.canParse(ownUrl)) throw new ConfigError(`HOST must be a host name or an IP address, not "${host}"`);
  const publicUrl = text("PUBLIC_URL", ownUrl);
  if (!URL.canParse(publicUrl)) throw new ConfigError(`PUBLIC_URL must be a URL, not "${publicUrl}"`);
  const certFile = file("TLS_CERT");
  const keyFile = file("TLS_KEY");
  if ((certFile === null) !== (keyFile === null)) throw new ConfigError("TLS_CERT and TLS_KEY go together: set both");
  return {
    host,
    port,
    publicUrl: publicUrl.replace(/\/+$/, ""),
    dataDir: resolve(text("DATA_DIR", "data")),
    engineThreads: integer("ENGINE_THREADS", Math.max(1, availableParallelism() - 1), 1, MAX_ENGINE_THREADS),
    durability: choice("DURABILITY", "full", ["full", "normal", "off"]),
    rateLimits: readRateLimits(text("RATE_LIMITS", "on")),
    seedFile: file("SEED_FILE"),
    logLevel: choice("LOG_LEVEL", "info", LOG_LEVELS),
    tls: certFile === null || keyFile === null ? null : { certFile, keyFile },
  };
}

function readRateLimits(value: string): boolean | Record<string, unknown> {
  if (value === "on") return true;
  if (value === "off") return false;
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      return parsed as Record<string, unknown>;
    }
  } catch {
    // Falls through to the one message for all wrong values.
  }
  throw new ConfigError(`RATE_LIMITS must be on, off or a JSON object, not "${value}"`);
}
