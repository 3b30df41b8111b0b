/** The servers that a notifier sends to, an SMTP server and a webhook. They record what arrives, and fail on request. */
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** The recipient. The SMTP server repeats the address when it rejects a client, which must not log it. */
export const TO = "ada@mail.example";

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Dots unescaped, line ends as on the wire. */
  readonly data: string;
}

/** How the server treats a connection: serves it, cuts it before the greeting, rejects it, or never responds. */
type Welcome = "serve" | "drop" | "refuse" | "ignore";

/** The minimal subset of RFC 5321 that a client needs. */
export class SmtpServer {
  readonly received: ReceivedMail[] = [];
  /** The treatment of the next connections; once empty, the server serves all of them. */
  readonly welcomes: Welcome[] = [];
  /** Replies to the next recipients; once empty, the server accepts all of them. */
  readonly recipientAnswers: string[] = [];
  connections = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server = createServer((socket) => this.welcome(socket));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `smtp://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  get isConnected(): boolean {
    return this.sockets.size > 0;
  }

  private welcome(socket: Socket): void {
    this.connections++;
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    const welcome = this.welcomes.shift() ?? "serve";
    if (welcome === "drop") socket.destroy();
    else if (welcome === "refuse") socket.end(`554 no mail from you to ${TO}\r\n`);
    else if (welcome === "serve") this.serve(socket);
  }

  private serve(socket: Socket): void {
    let input = "";
    let isData = false;
    let mail = { from: "", to: [] as string[] };
    const answer = (line: string) => void socket.write(`${line}\r\n`);
    const command = (line: string) => {
      const verb = line.slice(0, 4).toUpperCase();
      if (verb === "EHLO") answer("250 test");
      else if (verb === "MAIL") {
        mail = { from: line.slice(10), to: [] };
        answer("250 ok");
      } else if (verb === "RCPT") {
        mail.to.push(line.slice(8));
        answer(this.recipientAnswers.shift() ?? "250 ok");
      } else if (verb === "DATA") {
        isData = true;
        answer("354 go on");
      } else if (verb === "QUIT") socket.end("221 bye\r\n");
      else answer("250 ok");
    };
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      input += chunk;
      for (;;) {
        const end = isData ? "\r\n.\r\n" : "\r\n";
        const at = input.indexOf(end);
        if (at < 0) return;
        const part = input.slice(0, at);
        input = input.slice(at + end.length);
        if (!isData) command(part);
        else {
          this.received.push({ ...mail, data: `${part}\r\n`.replace(/^\.\./gm, ".") });
          isData = false;
          answer("250 queued");
        }
      }
    });
    answer("220 test ESMTP");
  }
}

/** Responds to each request with the next status, or with 204 when none is left. Does not respond on "ignore". */
export class Webhook {
  readonly requests: { readonly method: string; readonly type: string; readonly body: string }[] = [];
  readonly answers: (number | "ignore")[] = [];
  private readonly server: HttpServer = createHttpServer((request, response) => {
    void read(request).then((body) => {
      const type = request.headers["content-type"] ?? "";
      this.requests.push({ method: request.method ?? "", type, body });
      const status = this.answers.shift() ?? 204;
      if (status === "ignore") return;
      if (status === 302) response.setHeader("location", "/elsewhere");
      response.writeHead(status).end(status === 204 ? undefined : "some words");
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/send?key=url-secret`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

async function read(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}
