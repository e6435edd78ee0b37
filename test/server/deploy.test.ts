import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ExitCode } from "../../src/cli/exit-code.js";
import { ENVIRONMENT, loadConfig } from "../../src/server/config.js";

const path = (name: string) => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url));
const text = (name: string) => readFileSync(path(name), "utf8");

describe("the files in deploy/", () => {
  it("systemd accepts the unit", () => {
    const said = execFileSync("systemd-analyze", ["verify", path("vivavoce.service")], {
      encoding: "utf8",
      stdio: "pipe",
    });
    expect(said).toBe("");
  });

  it("systemd does not try again after a wrong setting", () => {
    expect(text("vivavoce.service")).toMatch(new RegExp(`^RestartPreventExitStatus=${ExitCode.usage}$`, "m"));
  });

  it("the box accepts the configuration file", () => {
    expect(loadConfig({ file: path("config.json"), env: {} })).toMatchObject({ host: "127.0.0.1", port: 8080 });
  });

  it("the container's health check uses the box's settings, and the unit reads the evaluation in its own folder", () => {
    expect(text("Dockerfile")).toMatch(/HEALTHCHECK[\s\S]*CMD \["vivavoce", "health"\]/);
    expect(text("vivavoce.service")).toContain("VIVAVOCE_EVALUATION=/var/lib/vivavoce/");
  });

  it("the container's user is a number, which Kubernetes can tell from root", () => {
    expect(text("Dockerfile")).toMatch(/^USER 1000:1000$/m);
  });

  it("a supervisor waits for the calls and for a job", () => {
    const seconds = loadConfig({ env: {} }).limits.stopSeconds + 30;
    const waits = [
      text("vivavoce.service").match(/^TimeoutStopSec=(\d+)$/m),
      text("Dockerfile").match(/--stop-timeout (\d+)/),
    ];
    for (const [, wait] of waits as RegExpMatchArray[]) expect(Number(wait)).toBeGreaterThan(seconds);
  });

  it("unit, Dockerfile and README name only settings that exist", () => {
    for (const name of ["vivavoce.service", "Dockerfile", "README.md"]) {
      for (const [variable] of text(name).matchAll(/VIVAVOCE_[A-Z_]+/g))
        expect([...Object.keys(ENVIRONMENT), "VIVAVOCE_CONFIG"], name).toContain(variable);
    }
  });
});
