// Orders resourceVersions: KEP-5504, unsigned decimal integers of any length.

const DECIMAL = /^[0-9]+$/

/** Negative if `a` is older than `b`, 0 if equal, positive if newer. @returns undefined if one of them is not a decimal number */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (!isResourceVersion(a) || !isResourceVersion(b)) return undefined
  const left = withoutZeros(a)
  const right = withoutZeros(b)
  if (left.length !== right.length) return left.length - right.length
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** '' is none: it means that no version is known. */
export function isResourceVersion(text: string): boolean {
  return DECIMAL.test(text)
}

function withoutZeros(decimal: string): string {
  return decimal.startsWith('0') ? decimal.replace(/^0+/, '') : decimal
}
