/**
 * The result of `read`; if it throws, ends the process with exit code 2 and one line of usage. With --help or -h, prints the
 * usage and ends with 0.
 */
export function orUsage<T>(usage: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (process.argv.slice(2).some((text) => text === "--help" || text === "-h")) {
      process.stdout.write(`Usage: npm run ${usage.replace(" ", " -- ")}\n`);
      process.exit(0);
    }
    process.stderr.write(`${(error as Error).message.replaceAll("\n", " ")}; ${usage}\n`);
    process.exit(2);
  }
}

/** @param min,max inclusive @throws Error naming the option */
export function wholeNumber(option: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new Error(`--${option} ${text}: a whole number from ${min} to ${max}`);
}
