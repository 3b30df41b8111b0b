/** Where clients find the server. With PORT=0 the port is part of it only once the server listens. */
import { API_BASE } from "../http/route.ts";

export class PublicUrl {
  private url: string;

  /** @param url without a slash at its end */
  constructor(url: string) {
    this.url = url;
  }

  /** The site's URL. */
  readonly site = (): string => this.url;

  /** The base of the API's paths, which is also the audience of access tokens. */
  readonly api = (): string => this.url + API_BASE;

  /** Puts the port that the system chose in the place of port 0. */
  resolvePort(port: number): void {
    this.url = this.url.replace(/:0$/, `:${port}`);
  }
}
