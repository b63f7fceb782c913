// Lists what was built: of each file its type and hash, and one hash of the sources, by which a test without Node finds
// files that are stale. The libraries that are in the page are named with their licences, whose texts come along.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";

const ROOT = import.meta.dirname;
/** What is built from. tests/dashboard/test_built_page.py has the same list. */
const SOURCES = ["index.html", "manifest.js", "package.json", "package-lock.json", "src", "tsconfig.json", "vite.config.js"];
const LIBRARIES = ["preact", "uplot"];
const TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  txt: "text/plain; charset=utf-8",
};

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

function* files(path) {
  if (!statSync(path).isDirectory()) {
    yield path;
    return;
  }
  for (const name of readdirSync(path).sort()) yield* files(join(path, name));
}

function sources() {
  const lines = SOURCES.flatMap((name) => [...files(join(ROOT, name))])
    .map((path) => `${relative(ROOT, path).split(sep).join("/")} ${hash(readFileSync(path))}\n`)
    .sort();
  return hash(lines.join(""));
}

function libraries() {
  return LIBRARIES.map((name) => {
    const folder = join(ROOT, "node_modules", name);
    const said = JSON.parse(readFileSync(join(folder, "package.json"), "utf-8"));
    const text = readFileSync(join(folder, "LICENSE"), "utf-8").trim();
    return { name, version: said.version, licence: said.license, home: said.homepage, text };
  });
}

export function manifest() {
  let out = "";
  return {
    name: "tenure-manifest",
    configResolved(config) {
      out = resolve(ROOT, config.build.outDir);
    },
    closeBundle() {
      const known = libraries();
      const texts = known.map((one) => `${one.name} ${one.version} (${one.licence})\n\n${one.text}\n`);
      writeFileSync(join(out, "assets", "licences.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
      const listed = {};
      for (const path of files(out)) {
        const name = relative(out, path).split(sep).join("/");
        if (name === "manifest.json") continue;
        listed[name] = { type: TYPES[name.split(".").at(-1)], sha256: hash(readFileSync(path)) };
      }
      const said = {
        sources: sources(),
        files: listed,
        libraries: known.map(({ text: _, ...one }) => one),
      };
      writeFileSync(join(out, "manifest.json"), `${JSON.stringify(said, null, 2)}\n`);
    },
  };
}
