// Go's int64 as text.

const INT64 = /^[+-]?[0-9]+$/
const INT64_DIGITS = 19

/** Whether Go's strconv.ParseInt(text, 10, 64) accepts it. Linear in the text: BigInt is quadratic, and only sees 19 digits. */
export function isInt64(text: string): boolean {
  if (!INT64.test(text)) return false
  // 15 digits fit into a double.
  if (text.length <= 15) return true
  const negative = text.startsWith('-')
  let start = negative || text.startsWith('+') ? 1 : 0
  while (text.charCodeAt(start) === 0x30) start++
  if (text.length - start > INT64_DIGITS) return false
  const value = BigInt(text.slice(start) || '0')
  return negative ? value <= 2n ** 63n : value < 2n ** 63n
}

/** The part of an invalid value that a message repeats. */
const MAX_SHOWN = 64

/** Go's error for invalid text (strconv.NumError). */
export function int64Problem(text: string): string {
  const what = INT64.test(text) ? 'value out of range' : 'invalid syntax'
  return `strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, MAX_SHOWN))}: ${what}`
}
