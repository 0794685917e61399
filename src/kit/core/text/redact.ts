// Removes credentials from logs and from the admin listener's output: by the name of the field that holds them, and by their form inside a
// text.

export const REDACTED = '[redacted]'

const NAMES = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'key',
  'secret',
  'credential',
  'credentials',
])
const ENDINGS = ['token', 'password', 'passphrase', 'secret', 'keydata', 'privatekey', 'keypem']
const MAX_DEPTH = 12

/** Whether a field of this name holds a secret: `bearerToken`, `keyData`, `serving.key`, `Authorization`. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[-_]/g, '')
  return NAMES.has(plain) || ENDINGS.some((ending) => plain.endsWith(ending))
}

/** The text without bearer tokens, JSON web tokens, private keys, and passwords in URLs. */
export function redactText(text: string): string {
  return (
    text
      .replace(/-----BEGIN ([A-Z ]*)PRIVATE KEY-----[\s\S]*?(?:-----END \1PRIVATE KEY-----|$)/g, REDACTED)
      .replace(/\b(Bearer|Basic)(\s+|%20)[\w.~+/=-]{8,}/gi, `$1 ${REDACTED}`)
      // Passwords in URLs, including in their queries.
      .replace(/(:\/\/)[^\s/?#@"']{1,1024}@/g, `$1${REDACTED}@`)
      .replace(/([?&][\w-]{0,64}(?:token|password|secret)=)[^\s&#"']+/gi, `$1${REDACTED}`)
      // A single expression for the three parts would search for the first dot from every eyJ in a client's text: quadratic time.
      .replace(/(?<![\w-])[\w-]+(?:\.[\w-]*)+/g, redactDotted)
  )
}

/** A dotted text, three parts of which may be a JSON web token. */
function redactDotted(text: string): string {
  const parts = text.split('.')
  const shown: string[] = []
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? ''
    const at = i + 2 < parts.length && parts[i + 1] !== '' ? part.search(/\beyJ[\w-]{8}/) : -1
    shown.push(at < 0 ? part : `${part.slice(0, at)}${REDACTED}`)
    if (at >= 0) i += 2
  }
  return shown.join('.')
}

/**
 * A plain copy for JSON: secrets replaced (an empty one stays, to show that it is not set), sets as arrays, maps as objects, bytes as their
 * length. Functions and values nested too deeply are left out.
 * @param text maps each text, and each field name if it is not the default
 */
export function redact(value: unknown, text: (shown: string) => string = redactText): unknown {
  return redacted(value, text, 0)
}

function redacted(value: unknown, text: (shown: string) => string, depth: number): unknown {
  if (typeof value === 'string') return text(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return '[too deep]'
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Error) return text(value.message)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map((item) => redacted(item, text, depth + 1))
  if (value instanceof Set) return [...value].map((item) => redacted(item, text, depth + 1))
  const entries = value instanceof Map ? value.entries() : Object.entries(value)
  const copy: Record<string, unknown> = {}
  for (const [key, item] of entries) {
    const name = String(key)
    copy[text === redactText ? name : text(name)] = hasSecret(name, item) ? REDACTED : redacted(item, text, depth + 1)
  }
  return copy
}

function hasSecret(name: string, value: unknown): boolean {
  const empty = value === '' || value === null || value === undefined || typeof value === 'boolean'
  return !empty && typeof value !== 'number' && isSecretName(name)
}
