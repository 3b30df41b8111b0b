/**
 * Loaded into a build (NODE_OPTIONS=--import): simulates a machine so slow that its JavaScript is paused most of the
 * time.
 */
const cell = new Int32Array(new SharedArrayBuffer(4));
setInterval(() => Atomics.wait(cell, 0, 0, 200), 20).unref();
