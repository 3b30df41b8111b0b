/**
 * Checks that every package in the lock file has a permissive licence, except those named here with a reason, and that
 * docs/licenses.md lists them all. `npx vitest run test/docs/licenses.test.ts -u` regenerates the list.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** SPDX identifiers that require no more than a notice. */
const PERMISSIVE = new Set([
  ...["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"],
  ...["Python-2.0", "Unlicense", "WTFPL", "Zlib"],
]);

/** Weak copyleft: the terms apply to the package's own files, and we serve and ship none of them. */
const EXCEPTIONS: readonly { name: RegExp; shown: string; license: string; why: string }[] = [
  {
    name: /^lightningcss(-|$)/,
    shown: "lightningcss and its binaries",
    license: "MPL-2.0",
    why: "Vite minifies the page's CSS with it; unmodified, and the page contains none of it",
  },
  {
    name: /^axe-core$/,
    shown: "axe-core",
    license: "MPL-2.0",
    why: "the tests check the page's accessibility with it; unmodified, and not part of the exchange",
  },
];

interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
}

interface Package {
  readonly name: string;
  readonly license: string;
  readonly isDev: boolean;
  readonly folder: string;
}

function packages(): Package[] {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Locked>;
  };
  return Object.entries(lock.packages)
    .filter(([folder, { link = false }]) => folder !== "" && !link)
    .map(([folder, { license = "none", dev = false }]) => {
      return { name: folder.replace(/^.*node_modules\//, ""), license, isDev: dev, folder: join(ROOT, folder) };
    });
}

/** For SPDX expressions without nested parentheses: one alternative with only permissive parts is enough. */
function isPermissive(license: string): boolean {
  const alternatives = license.replaceAll(/[()]/g, "").split(" OR ");
  return alternatives.some((each) => each.split(" AND ").every((part) => PERMISSIVE.has(part.trim())));
}

const isExcepted = ({ name, license }: Package): boolean =>
  EXCEPTIONS.some((each) => each.license === license && each.name.test(name));

test("an expression is permissive if all parts of one alternative are", () => {
  for (const good of ["MIT", "(MIT OR GPL-3.0-only)", "MIT AND Zlib", "(BSD-2-Clause OR MIT OR Apache-2.0)"]) {
    expect([good, isPermissive(good)]).toEqual([good, true]);
  }
  for (const bad of [
    "GPL-3.0-only",
    "MIT AND GPL-2.0",
    "AGPL-3.0",
    "LGPL-2.1 OR MPL-2.0",
    "none",
    "UNLICENSED",
    "SEE LICENSE IN x",
    "BUSL-1.1",
  ]) {
    expect([bad, isPermissive(bad)]).toEqual([bad, false]);
  }
});

test("all packages are permissive, except named ones that are in the lock file", () => {
  const all = packages();
  expect(all.length).toBeGreaterThan(100);
  const others = all.filter((each) => !isPermissive(each.license) && !isExcepted(each));
  expect(others.map(({ name, license, isDev }) => `${name}: ${license}${isDev ? " (development)" : ""}`)).toEqual([]);
  for (const { name } of EXCEPTIONS) expect([name, all.some((each) => name.test(each.name))]).toEqual([name, true]);
});

test("each installed package has the licence in the lock file", () => {
  const wrong = packages().flatMap(({ name, license, folder }) => {
    const path = join(folder, "package.json");
    if (!existsSync(path)) return [];
    const { license: installed } = JSON.parse(readFileSync(path, "utf8")) as { license?: unknown };
    return typeof installed === "string" && installed !== license ? [`${name}: ${installed}, not ${license}`] : [];
  });
  expect(wrong).toEqual([]);
});

test("docs/licenses.md lists every package", async () => {
  const all = packages();
  const table = (wanted: readonly Package[]): string => {
    const byLicense = new Map<string, Set<string>>();
    for (const { name, license } of wanted) {
      byLicense.set(license, (byLicense.get(license) ?? new Set()).add(name));
    }
    const rows = [...byLicense]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([license, names]) => {
        return `| ${license.replace(/^\((.*)\)$/, "$1")} | ${[...names].sort().join(", ")} |`;
      });
    return ["| Licence | Packages |", "|---|---|", ...rows].join("\n");
  };
  const text = `# Licences of the packages

The exchange itself is licensed under the Apache License 2.0 (LICENSE). All packages in package-lock.json have permissive
licences, with the exceptions below; test/docs/licenses.test.ts fails on any other. The same test generates this list:
\`npx vitest run test/docs/licenses.test.ts -u\`.

## Exceptions

${EXCEPTIONS.map(({ shown, license, why }) => `- ${shown}, ${license}: ${why}.`).join("\n")}

## Font

Geist (@fontsource-variable/geist 5.3.0), SIL Open Font License 1.1: two subsets in server/web/fonts, with the licence.

## Runtime dependencies

Including platform packages, of which npm installs one.

${table(all.filter(({ isDev }) => !isDev))}

## Development dependencies

${table(all.filter(({ isDev }) => isDev))}
`;
  await expect(text).toMatchFileSnapshot(join(ROOT, "docs/licenses.md"));
});
