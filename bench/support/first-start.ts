/** A new exchange whose log goes to NATS waits for an operator who says that it begins here. */
import { sendRequest } from "../../server/control/control-socket.ts";
import { controlPath } from "../../server/util/data-folder.ts";

/** True for the log line that asks for it. */
export const asksToBegin = (msg: string): boolean => msg.includes("npm run admin -- standby promote --first");

/** Resolves once the exchange is active. @throws Error where it isn't */
export async function beginExchange(dataDir: string): Promise<void> {
  const response = await sendRequest(controlPath(dataDir), { command: "standby promote", args: ["first"] });
  if (response?.code !== 0) throw new Error(`not promoted: ${JSON.stringify(response)}`);
}
