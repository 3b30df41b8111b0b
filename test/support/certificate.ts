/** Certificates of this machine, made by openssl. */
import { execFileSync, spawnSync } from "node:child_process";

/** For `describe.skipIf`. */
export const NO_OPENSSL = spawnSync("openssl", ["version"]).status !== 0;

/** Makes a self-signed certificate for localhost and 127.0.0.1, and its key. */
export function makeCertificate(cert: string, key: string): void {
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync("openssl", [...kind, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
}
