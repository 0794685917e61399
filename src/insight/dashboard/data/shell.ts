// Quotes words for a POSIX shell, for command lines that can be copied. Names come from clusters and are not trusted.

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/

/** One word, quoted if a shell would interpret it. Control characters cannot be typed and are dropped. */
function shellWord(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  const printable = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '')
  // A leading dash would make it a flag.
  if (PLAIN.test(printable) && !printable.startsWith('-')) return printable
  return `'${printable.replaceAll("'", "'\\''")}'`
}

export function shellLine(...words: readonly string[]): string {
  return words.map((word) => (/^--?[a-z][a-z-]*$/.test(word) ? word : shellWord(word))).join(' ')
}
