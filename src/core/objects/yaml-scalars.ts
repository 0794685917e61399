// What a YAML scalar means to Kubernetes: the rules of go.yaml.in/yaml/v2 (resolve.go), which sigs.k8s.io/yaml uses. They are
// YAML 1.1 without sexagesimal numbers and with timestamps left as text.

const TAGS = 'tag:yaml.org,2002:'
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/
const TIMESTAMP = /^\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}|$)/

const WORDS: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])

const INFINITY = /^([-+]?)\.(inf|Inf|INF)$/
const NAN = /^\.(nan|NaN|NAN)$/

/** A scalar without quotes and without a tag. NaN and infinities are given back as numbers; JSON has no place for them. */
export function plainScalar(text: string): string | number | boolean | null {
  const word = WORDS.get(text)
  if (word !== undefined) return word
  if (NAN.test(text)) return Number.NaN
  const infinity = INFINITY.exec(text)
  if (infinity !== null) return infinity[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  const first = text.charAt(0)
  if (first === '.') return FLOAT.test(text) ? Number(text) : text
  if (!/^[-+0-9]/.test(first) || TIMESTAMP.test(text)) return text
  return numberOf(text.replaceAll('_', '')) ?? text
}

/** strconv.ParseInt with base 0 (0x, 0o, 0b and the leading 0 of octal), then decimal floats. */
function numberOf(text: string): number | undefined {
  const [, sign = '', digits = ''] = /^([-+]?)(.*)$/s.exec(text) ?? []
  const factor = sign === '-' ? -1 : 1
  if (/^0[xX][0-9a-fA-F]+$/.test(digits) || /^0[oO][0-7]+$/.test(digits) || /^0[bB][01]+$/.test(digits)) {
    return factor * Number(digits)
  }
  if (/^0[0-7]+$/.test(digits)) return factor * Number.parseInt(digits, 8)
  return FLOAT.test(text) ? Number(text) : undefined
}

/**
 * A scalar with an explicit tag.
 * @throws {SyntaxError} when the text is not such a value, or JSON has no such values
 */
export function taggedScalar(tag: string, text: string): string | number | boolean | null {
  const name = tag.startsWith(TAGS) ? tag.slice(TAGS.length) : tag
  if (name === 'binary') return binary(text)
  // A tag of somebody else, and `!` alone, mean: text, whatever it looks like.
  if (!RESOLVED.has(name)) return text
  const value = plainScalar(text)
  const kind = kindOf(value)
  const fits = name === kind || (name === 'float' && kind === 'int') || (name === 'timestamp' && TIMESTAMP.test(text))
  if (!fits) throw new SyntaxError(`yaml: cannot decode !!${kind} \`${text}\` as a !!${name}`)
  return value
}

const RESOLVED: ReadonlySet<string> = new Set(['bool', 'int', 'float', 'null', 'timestamp'])

function binary(text: string): string {
  const compact = text.replaceAll(/\s/g, '')
  const bytes = Buffer.from(compact, 'base64')
  if (bytes.toString('base64') === compact) return bytes.toString()
  throw new SyntaxError('yaml: !!binary value contains invalid base64 data')
}

function kindOf(value: string | number | boolean | null): string {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  return typeof value === 'boolean' ? 'bool' : 'str'
}
