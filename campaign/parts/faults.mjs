export async function tryFaults() {
  return 0;
}
