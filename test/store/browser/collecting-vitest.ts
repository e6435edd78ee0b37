/** Replaces vitest when the store's suite is bundled for a page: collects the tests, so that the page can run them. */
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";

type Body = () => unknown;

interface Collected {
  readonly name: string;
  readonly body: Body;
}

const path: string[] = [];
const tests: Collected[] = [];
const before: Body[] = [];
const after: Body[] = [];

export function describe(name: string, body: Body): void {
  path.push(name);
  body();
  path.pop();
}

export function test(name: string, body: Body): void {
  tests.push({ name: [...path, name].join(" > "), body });
}

export const beforeAll = (body: Body) => void before.push(body);
export const afterAll = (body: Body) => void after.push(body);

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export const expect = Object.assign(chai.expect, {
  poll: (read: () => Promise<unknown>, { timeout }: { timeout: number }) => ({
    async toEqual(expected: unknown) {
      for (const startedAt = Date.now(); ; ) {
        try {
          return (chai.expect(await read()) as unknown as { toEqual(value: unknown): void }).toEqual(expected);
        } catch (error) {
          if (Date.now() - startedAt > timeout) throw error;
          await new Promise((wake) => setTimeout(wake, 50));
        }
      }
    },
  }),
});

/** Runs the collected tests one after the other. */
export async function run(): Promise<{ name: string; error: string | null }[]> {
  const results: { name: string; error: string | null }[] = [];
  for (const body of before) await body();
  for (const { name, body } of tests) {
    const error = await Promise.resolve()
      .then(body)
      .then(
        () => null,
        (reason) => String(reason?.stack ?? reason),
      );
    results.push({ name, error });
  }
  for (const body of after) await body();
  return results;
}
