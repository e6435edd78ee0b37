/** A network that cannot be imported, in words that say what is missing. */
export class ImportRefusal extends Error {
  override readonly name = "ImportRefusal";
}
