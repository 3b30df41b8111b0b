/**
 * Which module may import which; `npm run lint` checks it. Rules: no circular imports, by value or by type; engine never
 * imports server; rooms import downward; each native or wire-format package has one home.
 */

/** Rooms of server/, top to bottom: a room imports rooms below it, and the `types.ts` of any room. */
const ROOMS = [
  "web",
  "cli",
  "bootstrap",
  "control",
  "reference",
  "service",
  "websocket",
  "operators",
  "replication",
  "backup",
  "oauth",
  "notifications",
  "wallet",
  "trading",
  "markets",
  "sign-in",
  "accounts",
  "queries",
  "book-history",
  "writes",
  "messages",
  "http",
  "orders",
  "util",
];

/** Folders of engine/, top to bottom. */
const ENGINE_ROOMS = ["projection", "replication", "log", "book", "ring", "util"];

/** A `types.ts` declares shapes and the constants that they derive from, so that any room may import it. */
const TYPES = "/types\\.ts$";

const alternatives = (names) => `(${names.join("|")})`;

const downward = (folder, rooms) =>
  rooms.slice(1).map((room, index) => ({
    name: `${folder}-${room}-imports-downward`,
    comment: `${folder}/${room} imports only rooms below it.`,
    severity: "error",
    from: { path: `^${folder}/${room}/` },
    to: { path: `^${folder}/${alternatives(rooms.slice(0, index + 1))}/`, pathNot: TYPES },
  }));

/** @param home a regular expression that every importer of `name` must match */
const oneHome = (name, home) => ({
  name: `${name}-has-one-home`,
  comment: `Only ${home} imports ${name}.`,
  severity: "error",
  from: { path: "^(engine|server)/", pathNot: home },
  to: { path: `node_modules/${name.replaceAll(".", "\\.")}/`, dependencyTypesNot: ["type-only"] },
});

export default {
  forbidden: [
    {
      name: "no-circular-imports",
      comment: "Move what both need into a module below them: types into the room's types.ts.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "engine-never-imports-server",
      severity: "error",
      from: { path: "^engine/" },
      to: { path: "^(server|bench|test)/" },
    },
    {
      name: "server-never-imports-bench-or-test",
      severity: "error",
      from: { path: "^server/" },
      to: { path: "^(bench|test)/" },
    },
    {
      name: "rooms-never-import-the-composition",
      severity: "error",
      from: { path: "^server/[^/]+/" },
      to: { path: "^server/main\\.ts$" },
    },
    ...downward("server", ROOMS),
    ...downward("engine", ENGINE_ROOMS),
    oneHome("uWebSockets.js", "^server/http/uws\\.ts$"),
    oneHome("better-sqlite3", "^(engine/util/sqlite\\.ts|\\.packages/better-sqlite3-12/)"),
    oneHome("cookie", "^server/http/cookies\\.ts$"),
    oneHome("msgpackr", "^(server/http/message-pack|engine/log/packed)\\.ts$"),
    oneHome("@nats-io/transport-node", "^server/replication/"),
    oneHome("@nats-io/jetstream", "^server/replication/"),
    oneHome("jose", "^server/sign-in/signing-keys\\.ts$"),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|bench/rivals|bench/plots)/" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: [".ts", ".tsx", ".mjs", ".js", ".json"] },
  },
};
