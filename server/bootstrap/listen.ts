/** Creates the server of uWebSockets.js, with TLS where it is configured, and opens its port. */
import type * as Uws from "uWebSockets.js";
import type { Config } from "../config.ts";
import { ConfigError } from "../errors.ts";

/** @throws ConfigError where the certificate or its key is invalid */
export function createApp({ tls }: Config, uws: typeof Uws): Uws.TemplatedApp {
  if (tls === null) return uws.App();
  try {
    return uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
  } catch {
    throw new ConfigError("TLS_CERT, TLS_KEY: not a certificate and its key in PEM");
  }
}

export interface Listening {
  /** Null with NETWORK=off: only the control socket accepts requests. */
  readonly socket: Uws.us_listen_socket | null;
  /** The open port, 0 with NETWORK=off. */
  readonly port: number;
}

/** @throws ConfigError where the address or the port is unavailable */
export async function listen(config: Config, uws: typeof Uws, app: Uws.TemplatedApp): Promise<Listening> {
  if (!config.network) return { socket: null, port: 0 };
  const socket = await openPort(config, uws, app);
  return { socket, port: uws.us_socket_local_port(socket) };
}

function openPort({ host, port }: Config, uws: typeof Uws, app: Uws.TemplatedApp): Promise<Uws.us_listen_socket> {
  return new Promise((resolve, reject) => {
    const opened = (socket: Uws.us_listen_socket | false): void => {
      if (socket) resolve(socket);
      else reject(new ConfigError(`HOST, PORT: cannot listen on ${host}:${port}`));
    };
    // Without the exclusive option two servers would share the port and each respond to some of the requests. The
    // published types lack both the option and the call that takes it with a host.
    const { LIBUS_LISTEN_EXCLUSIVE_PORT } = uws as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number };
    type Listen = (host: string, port: number, options: number, opened: (socket: Uws.us_listen_socket) => void) => void;
    (app.listen as unknown as Listen).call(app, host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, opened);
  });
}
