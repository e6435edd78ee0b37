/** The network cannot be imported; the message says why. */
export class ImportRefusal extends Error {
  override readonly name = "ImportRefusal";
}
