// Kubernetes quantities (`1500m`, `2Ki`, `12e3`) as numbers. k8s.io/apimachinery/pkg/api/resource/quantity.go: ParseQuantity

/** Kubernetes caps quantities there, too. */
const MOST = 2 ** 63
/** Longer ones are nobody's measurement. */
const MAX_LENGTH = 64

const PARTS = /^([+-]?(?:\d+\.?\d*|\.\d+))(n|u|m|k|M|G|T|P|E|[KMGTPE]i|[eE][+-]?\d{1,10})?$/

const POWERS_OF_TEN: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const BINARY = 'KMGTPE'

/**
 * As a double: the nearest to a decimal one, and at most 2^63 either way.
 * @returns undefined = it is none
 */
export function parseQuantity(text: string): number | undefined {
  const [, amount, suffix = ''] = (text.length <= MAX_LENGTH && PARTS.exec(text)) || []
  if (amount === undefined) return undefined
  if (suffix.length === 2 && suffix.endsWith('i')) {
    return capped(Number(amount) * 1024 ** (1 + BINARY.indexOf(suffix.charAt(0))))
  }
  const isExponent = suffix.length > 1
  // One conversion, so that 0.1 and 100m are equal.
  return capped(Number(`${amount}e${isExponent ? suffix.slice(1) : (POWERS_OF_TEN[suffix] ?? 0)}`))
}

function capped(value: number): number {
  return Math.min(MOST, Math.max(-MOST, value))
}
