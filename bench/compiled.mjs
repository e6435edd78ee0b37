import asc from "assemblyscript/asc";

/** A module of AssemblyScript that is not part of the kernels, compiled in the process that measures. */
export async function compiled(source) {
  let binary = null;
  const { error, stderr } = await asc.main(
    ["module.ts", "--outFile", "module.wasm", "-O3", "--noAssert", "--runtime", "stub", "--enable", "simd"],
    {
      readFile: (name) => (name === "module.ts" ? source : null),
      writeFile: (name, contents) => {
        if (name === "module.wasm") binary = contents;
      },
      listFiles: () => [],
    },
  );
  if (error) throw new Error(`${error.message}\n${stderr.toString()}`);
  return binary;
}
