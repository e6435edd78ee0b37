// Reads vitest's JSON report and prints "N passed, M failed" as its last line; fails when anything failed or nothing ran.
import { readFileSync } from "node:fs";

let report;
try {
  report = JSON.parse(readFileSync(process.argv[2], "utf8"));
} catch {
  // The build or vitest itself failed before it wrote a report.
  console.log("0 passed, 1 failed");
  process.exit(1);
}
// A file that does not load has no tests that could fail.
const brokenFiles = report.testResults.filter(
  ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
).length;
const failed = report.numFailedTests + brokenFiles;
console.log(`${report.numPassedTests} passed, ${failed} failed`);
process.exit(failed === 0 && report.numPassedTests > 0 ? 0 : 1);
