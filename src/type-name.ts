/** The type of a value that a caller without a type checker gave, for error messages. */
export const typeName = (value: unknown): string => (value === null ? "null" : typeof value);
