/** Messages to the log stage, and its replies. The log stage owns the other end. */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { MailCount } from "../../engine/log/mail-count.ts";
import type { LogMessage, LogReply } from "../../engine/log/messages.ts";
import type { Waker } from "../../engine/ring/waker.ts";

export interface Mailbox {
  post(message: LogMessage): void;
  /** Passes each reply to `receive` from now on. */
  listen(receive: (reply: LogReply) => void): void;
  /** Removes and returns the replies that have arrived but were not passed to the listener yet. */
  drain(): LogReply[];
}

/** The mailbox of a log stage in another thread. */
export class PortMailbox implements Mailbox {
  private readonly port: MessagePort;
  private readonly mail: MailCount;
  private readonly logWaker: Waker;

  /** @param mail of posted messages, shared with the log stage */
  constructor(port: MessagePort, mail: MailCount, logWaker: Waker) {
    this.port = port;
    this.mail = mail;
    this.logWaker = logWaker;
  }

  post(message: LogMessage): void {
    this.port.postMessage(message);
    this.mail.post();
    this.logWaker.wake();
  }

  listen(receive: (reply: LogReply) => void): void {
    this.port.on("message", receive);
  }

  drain(): LogReply[] {
    const replies: LogReply[] = [];
    for (let found = receiveMessageOnPort(this.port); found !== undefined; found = receiveMessageOnPort(this.port)) {
      replies.push(found.message as LogReply);
    }
    return replies;
  }
}
