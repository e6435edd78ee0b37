/** Whether the work is done in time. If not, it goes on. */
export function doneWithin(seconds: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), seconds * 1000);
    work.then(() => resolve(true), reject).finally(() => clearTimeout(timer));
  });
}
