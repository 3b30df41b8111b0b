/**
 * A client behind a trusted proxy: each request comes from the IP address that the test says. Its file closes all of them
 * with `closeCallers`.
 */
import { type Answer, Client } from "../support/client.ts";
import { freshAddress } from "../support/identity.ts";
import type { LimitsJson } from "../support/rates.ts";
import type { TestServer } from "../support/server.ts";

const clients: Client[] = [];

export function closeCallers(): void {
  for (const client of clients.splice(0)) client.close();
}

/** Requests with one token, or none, from `from`. */
export class AddressCaller {
  readonly client: Client;
  from: string;

  constructor(server: TestServer, token: string | null, from = freshAddress()) {
    this.client = new Client(server, token);
    this.from = from;
    clients.push(this.client);
  }

  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const options = { headers: { "X-Forwarded-For": this.from, ...headers } };
    return this.client.request<T>(method, path, body === undefined ? options : { ...options, body });
  }

  /** The same from an address that nobody has used. */
  elsewhere<T = unknown>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, path, body, { "X-Forwarded-For": freshAddress() });
  }

  async limits(): Promise<LimitsJson["rate_limits"]> {
    return (await this.request<LimitsJson>("GET", "/me/limits")).data.rate_limits;
  }
}
