/**
 * What helpers undo when a test file ends. The modules of a worker outlive its files, so an `afterAll` at the top of a
 * helper would run for the first of them alone.
 */

const tasks: (() => void)[] = [];

/** Runs the task whenever a test file has ended, after the file's own hooks. */
export function atFileEnd(task: () => void): void {
  tasks.push(task);
}

/** Runs all tasks: test/setup.ts calls it. */
export function endFile(): void {
  for (const task of tasks) task();
}
