// Order of resourceVersions (KEP-5504: they are unsigned decimal integers of any length).

const DECIMAL = /^[0-9]+$/

/**
 * Less than 0 when `a` is older than `b`, 0 when they are the same, more when it is newer.
 * @returns undefined when either is not known: empty, or no decimal number
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return undefined
  const left = a.replace(/^0+/, '')
  const right = b.replace(/^0+/, '')
  if (left.length !== right.length) return left.length - right.length
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** The newer of two; '' = not known, which it is as soon as one of them is not. */
export function newerVersion(a: string, b: string): string {
  const order = compareVersions(a, b)
  if (order === undefined) return ''
  return order >= 0 ? a : b
}
