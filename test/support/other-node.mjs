/**
 * Loaded into a server under test (NODE_OPTIONS=--import): Node as on another machine. NODE_VERSION is its version, GLIBC
 * that of its libc ("none" for another libc), MISSING a part of the paths of binaries that can't be loaded.
 */
const { NODE_VERSION, GLIBC, MISSING } = process.env;

if (NODE_VERSION !== undefined) {
  Object.defineProperty(process, "versions", { value: { ...process.versions, node: NODE_VERSION } });
}
if (GLIBC !== undefined) {
  const getReport = process.report.getReport.bind(process.report);
  process.report.getReport = (...args) => {
    const report = getReport(...args);
    report.header.glibcVersionRuntime = GLIBC === "none" ? undefined : GLIBC;
    return report;
  };
}
if (MISSING !== undefined) {
  const { dlopen } = process;
  process.dlopen = (module, file, ...more) => {
    if (file.includes(MISSING)) throw Object.assign(new Error(`${file}: not found`), { code: "ERR_DLOPEN_FAILED" });
    return dlopen(module, file, ...more);
  };
}
