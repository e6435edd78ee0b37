/** Numbers as a language writes them, with a minus that is as wide as a plus. */
export function numbers(language: string) {
  const formats = (digits: number) => {
    const format = new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return (value: number) => format.format(value).replace("-", "−");
  };
  return { decimal: formats(1), whole: formats(0), fixed: formats };
}
