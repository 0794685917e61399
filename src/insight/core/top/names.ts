// Names as they are kept: cut, in memory of their own, and found by a few of their letters.

/** Longer names are cut: they are shown to people, and must not fill the memory. */
export const MAX_NAME_LENGTH = 256

/** V8 copies shorter parts of strings; longer ones keep the string alive that they were cut from, such as a request's target. */
const MAY_BE_SLICE = 13

/** The same text, at most MAX_NAME_LENGTH of it, in memory of its own. */
export function flatCopy(text: string): string {
  const cut = text.length > MAX_NAME_LENGTH ? text.slice(0, MAX_NAME_LENGTH) : text
  return cut.length < MAY_BE_SLICE ? cut : Buffer.from(cut, 'utf16le').toString('utf16le')
}

/** A number that seldom is another name's: names that are made by counting differ at their ends. */
export function lastLetters(text: string): number {
  const { length } = text
  if (length < 4) return length === 0 ? 0 : (text.charCodeAt(0) << 5) ^ (text.charCodeAt(length - 1) << 2) ^ length
  return (
    text.charCodeAt(length - 1) ^
    (text.charCodeAt(length - 2) << 3) ^
    (text.charCodeAt(length - 3) << 6) ^
    (text.charCodeAt(length - 4) << 9) ^
    (length << 4)
  )
}

export function lastLetter(text: string): number {
  return text === '' ? 0 : text.charCodeAt(text.length - 1)
}

/** Of a scope of names. */
export function saltOf(scope: string): number {
  return lastLetters(scope) * 7
}
