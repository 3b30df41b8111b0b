/** A maker that trades on a connection of its own while others attack: each order must be accepted, and soon. */
import { HttpConnection, requestBytes } from "../../../bench/support/http-connection.ts";
import { SENTINEL_ORDER, tokenOf } from "./world.ts";

const PAUSE_MS = 20;

export class Sentinel {
  /** Of each order, ms. */
  readonly times: number[] = [];
  private readonly url: URL;
  private readonly connection: HttpConnection;
  private isOver = false;
  private running: Promise<void> = Promise.resolve();

  constructor(url: string) {
    this.url = new URL(url);
    this.connection = new HttpConnection(this.url);
  }

  start(): void {
    this.running = this.trade();
  }

  /** Rejects where one of its orders was not accepted. */
  async stop(): Promise<void> {
    this.isOver = true;
    await this.running;
    this.connection.close();
  }

  /** The time that so many of a hundred orders came in below. */
  percentile(percent: number): number {
    const sorted = this.times.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0;
  }

  private async trade(): Promise<void> {
    while (!this.isOver) {
      const since = performance.now();
      const { id } = await this.ask("POST", "", JSON.stringify(SENTINEL_ORDER));
      this.times.push(performance.now() - since);
      await this.ask("DELETE", `/${id}`, null);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  private async ask(method: string, path: string, body: string | null): Promise<{ id: number }> {
    const request = requestBytes(this.url, method, `/api/v1/orders${path}`, tokenOf("sentinel"), body);
    const { status, body: answer } = await this.connection.send(request);
    if (status !== 202) throw new Error(`the sentinel's ${method} was answered ${status}: ${answer.toString()}`);
    return (JSON.parse(answer.toString()) as { data: { id: number } }).data;
  }
}
