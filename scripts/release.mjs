// Makes a release in a folder: both packages, a bill of materials (CycloneDX), the licenses of the dependencies, and a
// provenance statement (in-toto, SLSA 1.0) that names the commit, the build and the SHA-256 of every file.
//   npm run build && node scripts/release.mjs FOLDER
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundledPackages, pack } from "./pack.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const run = (command, ...args) =>
  execFileSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 }).trim();

const folder = resolve(process.argv[2] ?? "release");
const changed = run("git", "status", "--porcelain");
if (changed !== "") {
  console.error(`a release needs a clean checkout; these files have uncommitted changes:\n${changed}`);
  process.exit(1);
}
const known = knownVulnerabilities();
if (known === null) console.warn("npm audit got no reply: known vulnerabilities were not checked");
else if (known > 0) {
  console.error(
    `npm audit reports ${known} vulnerabilities in the packages that users install: see npm audit --omit dev`,
  );
  process.exit(1);
}
mkdirSync(folder, { recursive: true });
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const commit = run("git", "rev-parse", "HEAD");
const packages = pack(folder);

const sbomOf = (...options) => JSON.parse(run("npm", "sbom", "--sbom-format", "cyclonedx", ...options));
const sbom = sbomOf("--omit", "dev");
const fullName = ({ group, name }) => (group ? `${group}/${name}` : name);
// What is only inside a bundle is a dependency of the development alone.
const missing = new Set(bundledPackages());
for (const component of sbom.components) missing.delete(fullName(component));
sbom.components.push(...sbomOf().components.filter((component) => missing.has(fullName(component))));
// In a checkout, npm names packages by their folders.
const box = JSON.parse(readFileSync(join(root, "src/box/package.json"), "utf8"));
const named = (component, { name, version }) => Object.assign(component, { name, purl: `pkg:npm/${name}@${version}` });
named(sbom.metadata.component, manifest);
for (const component of sbom.components) if (component.name === "box") named(component, box);
writeFileSync(join(folder, "sbom.cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);

/** Grouped by license, because readers look for that first. */
const byLicense = new Map();
for (const component of sbom.components) {
  const { version, licenses = [] } = component;
  const id =
    licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name).join(", ") || "none declared";
  byLicense.set(id, [...(byLicense.get(id) ?? []), `${fullName(component)}@${version}`]);
}
const listed = [...byLicense].sort().map(
  ([id, names]) =>
    `${id}\n${names
      .sort()
      .map((name) => `  ${name}`)
      .join("\n")}`,
);
writeFileSync(
  join(folder, "LICENSES.txt"),
  `${manifest.name} ${manifest.version}: ${manifest.license}\n\n${listed.join("\n\n")}\n`,
);
if (byLicense.has("none declared"))
  console.warn(`without a declared license: ${byLicense.get("none declared").join(", ")}`);

const digestOf = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
const subjects = [...packages, join(folder, "sbom.cdx.json"), join(folder, "LICENSES.txt")].map((path) => ({
  name: basename(path),
  digest: { sha256: digestOf(path) },
}));
const provenance = {
  _type: "https://in-toto.io/Statement/v1",
  subject: subjects,
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: "https://slsa.dev/npm-cli-build-type/v1",
      externalParameters: { commands: ["npm ci", "npm run build", "node scripts/release.mjs"] },
      resolvedDependencies: [
        { name: manifest.name, digest: { gitCommit: commit } },
        { name: "package-lock.json", digest: { sha256: digestOf(join(root, "package-lock.json")) } },
      ],
    },
    runDetails: {
      builder: { id: `node ${process.version} on ${process.platform} ${process.arch}` },
      metadata: { finishedOn: new Date().toISOString() },
    },
  },
};
writeFileSync(join(folder, "provenance.intoto.json"), `${JSON.stringify(provenance, null, 2)}\n`);
for (const name of readdirSync(folder).sort()) console.log(`${digestOf(join(folder, name))}  ${name}`);

/** Vulnerabilities in the packages that users install; `null` if the registry cannot say. */
function knownVulnerabilities() {
  // npm audit exits with 1 both when it finds something and when it could not reach the registry.
  const { stdout } = spawnSync("npm", ["audit", "--omit", "dev", "--json"], { cwd: root, encoding: "utf8" });
  try {
    return JSON.parse(stdout).metadata?.vulnerabilities.total ?? null;
  } catch {
    return null;
  }
}
