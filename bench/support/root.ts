/** The project's folder, whether this module runs from its source, dist/bench, dist/chunks or deeper. */
const at = import.meta.url.lastIndexOf("/dist/");
export const ROOT = at < 0 ? new URL("../../", import.meta.url) : new URL(import.meta.url.slice(0, at + 1));

/** @param script of a build, as in `bench/run.js` */
export const builtScript = (script: string): URL => new URL(`dist/${script}`, ROOT);
