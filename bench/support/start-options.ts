import packageJson from "../../package.json" with { type: "json" };

/** The options that `npm start` gives Node: between `node` and the script. */
export const START_OPTIONS: readonly string[] = packageJson.scripts.start.split(" ").slice(2, -1);
