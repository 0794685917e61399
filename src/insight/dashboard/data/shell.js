// Words for a POSIX shell: what a command line is made of when it is to be copied. Names come from clusters, so nothing is trusted.
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/
/** One word, quoted where a shell would read it otherwise. Control characters cannot be typed, and are left out. */
export function shellWord(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const printable = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '')
  // A name that begins with a dash would be a flag.
  if (PLAIN.test(printable) && !printable.startsWith('-')) return printable
  return `'${printable.replaceAll("'", "'\\''")}'`
}
export function shellLine(...words) {
  return words.map((word) => (/^--?[a-z][a-z-]*$/.test(word) ? word : shellWord(word))).join(' ')
}
