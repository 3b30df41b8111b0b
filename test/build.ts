/** Builds dist/ once before the tests: servers and worker threads under test run from it. */
import { execFileSync } from "node:child_process";

export default function build(): void {
  execFileSync("npm", ["run", "-s", "build"], { stdio: "inherit", cwd: new URL("..", import.meta.url) });
}
