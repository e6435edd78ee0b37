// Adds the optional packages of other platforms to package-lock.json: node scripts/complete-lock.mjs
// `npm ci` refuses a lock without them, and `npm install` leaves out those that the registry in use does not have. They have no
// integrity hash until an `npm install` against a complete registry adds it.
import { readFileSync, writeFileSync } from "node:fs";

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "openbsd", "openharmony", "win32"];
const PROCESSORS = ["arm", "arm64", "ia32", "loong64", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = { ...lock.packages };
for (const [path, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (packages[`${path}/node_modules/${name}`] || packages[`node_modules/${name}`]) continue;
    const words = name.split(/[/-]/);
    const cpu = words.filter((word) => PROCESSORS.includes(word));
    const os = words.filter((word) => SYSTEMS.includes(word));
    if (!cpu.length) throw new Error(`${name}: the name does not give the processor; add it by hand`);
    const libc = os[0] === "linux" ? [words.some((word) => word.startsWith("musl")) ? "musl" : "glibc"] : null;
    packages[`node_modules/${name}`] = {
      version,
      cpu,
      ...(dev && { dev }),
      ...(libc && { libc }),
      optional: true,
      ...(os.length && { os }),
    };
  }
}
const sorted = Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync("package-lock.json", `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
