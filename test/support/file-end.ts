/**
 * Clean-up by helpers at the end of a test file. The modules of a worker outlive its files, so an `afterAll` at the top of
 * a helper would run for the first file only.
 */

const tasks: (() => void)[] = [];

/** Runs the task at the end of every test file, after the file's own hooks. */
export function atFileEnd(task: () => void): void {
  tasks.push(task);
}

/** Runs all tasks: test/setup.ts calls it. */
export function endFile(): void {
  for (const task of tasks) task();
}
