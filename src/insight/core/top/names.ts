// Stored names: truncated, copied, and hashed by their last letters.

/** Longer names are cut: they are shown to people, and must not fill the memory. */
export const MAX_NAME_LENGTH = 256

/** V8 copies shorter substrings; longer ones keep their parent string alive, such as a request's target. */
const MAY_BE_SLICE = 13

/** The text, cut to MAX_NAME_LENGTH, in memory of its own. */
export function flatCopy(text: string): string {
  const cut = text.length > MAX_NAME_LENGTH ? text.slice(0, MAX_NAME_LENGTH) : text
  return cut.length < MAY_BE_SLICE ? cut : Buffer.from(cut, 'utf16le').toString('utf16le')
}

/** A cheap hash; generated names differ at their ends. */
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

/** Hash salt for a scope of names. */
export function saltOf(scope: string): number {
  return lastLetters(scope) * 7
}
