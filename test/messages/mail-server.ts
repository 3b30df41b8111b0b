/**
 * A real mail server on a loopback port (smtp-server, of the Nodemailer project): STARTTLS with a certificate of its own,
 * sign-in before any mail, recipients that it refuses. Keeps what it accepts. May go down and come back on its port.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { freePort } from "../../bench/support/free-port.ts";

/** What makes the certificate. */
export const hasOpenssl = (): boolean => spawnSync("openssl", ["version"]).status === 0;

interface Received {
  readonly from: string;
  readonly to: readonly string[];
  readonly text: string;
  /** The connection was encrypted. */
  readonly isSecure: boolean;
  /** Who signed in. */
  readonly user: string;
}

export class MailServer {
  static readonly user = "exchange";
  /** Neither a path nor a part of one, and escaped in a URL. */
  static readonly password = "p@ss:word/100%";
  readonly port: number;
  /** Of its certificate, to be trusted. */
  readonly certFile: string;
  readonly received: Received[] = [];
  /** Sign-ins that it refused. */
  refusedSignIns = 0;
  /** How often each of these recipients is refused, by address: 550. */
  readonly rejections = new Map<string, number>();
  private readonly keyFile: string;
  private server: SMTPServer | null = null;

  private constructor(port: number, keyFile: string, certFile: string) {
    this.port = port;
    this.keyFile = keyFile;
    this.certFile = certFile;
  }

  /** @param folder for its key and certificate */
  static async start(folder: string): Promise<MailServer> {
    const [keyFile, certFile] = [join(folder, "mail-key.pem"), join(folder, "mail-cert.pem")];
    const certify = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    execFileSync("openssl", [...certify, ...subject, "-keyout", keyFile, "-out", certFile], { stdio: "ignore" });
    const mails = new MailServer(await freePort(), keyFile, certFile);
    await mails.open();
    return mails;
  }

  /** @param password another than the server's is refused */
  url(password = MailServer.password): string {
    return `smtp://${MailServer.user}:${encodeURIComponent(password)}@127.0.0.1:${this.port}`;
  }

  async open(): Promise<void> {
    const server = new SMTPServer({
      key: readFileSync(this.keyFile),
      cert: readFileSync(this.certFile),
      // A name without a password is no sign-in, and before STARTTLS the server offers none.
      authMethods: ["PLAIN", "LOGIN"],
      onAuth: ({ username = "", password }, _session, done) => {
        if (username === MailServer.user && password === MailServer.password) return done(null, { user: username });
        this.refusedSignIns++;
        done(new Error("wrong user name or password"));
      },
      onRcptTo: ({ address }, _session, done) => {
        const left = this.rejections.get(address) ?? 0;
        if (left === 0) return done();
        this.rejections.set(address, left - 1);
        done(Object.assign(new Error("no such mailbox here"), { responseCode: 550 }));
      },
      onData: (stream, session, done) => {
        let text = "";
        stream.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        stream.on("end", () => {
          const { mailFrom, rcptTo } = session.envelope;
          const from = mailFrom === false ? "" : mailFrom.address;
          const to = rcptTo.map(({ address }) => address);
          this.received.push({ from, to, text, isSecure: session.secure, user: String(session.user) });
          done();
        });
      },
    });
    // A client that goes away in the middle is the client's matter.
    server.on("error", () => {});
    const listening = server.listen(this.port, "127.0.0.1");
    await once(listening, "listening");
    this.server = server;
  }

  /** Goes down, with all of its connections. */
  async close(): Promise<void> {
    const { server } = this;
    this.server = null;
    if (server === null) return;
    for (const connection of server.connections) connection.close();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  /** Texts of what came for an address, oldest first. */
  mailsTo(address: string): string[] {
    return this.received.filter(({ to }) => to.includes(address)).map(({ text }) => text.replaceAll("\r\n", "\n"));
  }
}
