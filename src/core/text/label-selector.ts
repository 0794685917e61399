// Whether a label selector parses: the lexer and parser of apimachinery/pkg/labels/selector.go, without their result.
// RequestInfo needs no more: a selector that does not parse makes kube-apiserver ignore every other list option.

const KEY_NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const INT64 = /^[+-]?[0-9]+$/
const INT64_DIGITS = 19
const MAX_NAME_LENGTH = 63
const MAX_SUBDOMAIN_LENGTH = 253

/** Operators and the words `in` and `notin` as themselves; `id` is any other word. */
type Kind = 'id' | 'end' | '(' | ')' | ',' | '!' | '=' | '==' | '!=' | '>' | '<' | 'in' | 'notin'

interface Token {
  readonly kind: Kind
  readonly text: string
}

const SYMBOLS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['(', '('],
  [')', ')'],
  [',', ','],
  ['!', '!'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', '>'],
  ['<', '<'],
])

const END: Token = { kind: 'end', text: '' }

export function isLabelSelector(text: string): boolean {
  const tokens = scan(text)
  let at = 0
  const kind = (): Kind => tokens[at]?.kind ?? 'end'
  if (kind() === 'end') return true
  for (;;) {
    at = requirementEnd(tokens, at)
    if (at < 0) return false
    if (kind() === 'end') return true
    if (kind() !== ',') return false
    at++
    // A comma must be followed by another requirement.
    if (!isWord(kind()) && kind() !== '!') return false
  }
}

/** Index behind the requirement that begins at `start`, or -1. */
function requirementEnd(tokens: readonly Token[], start: number): number {
  let at = start
  const negated = tokens[at]?.kind === '!'
  if (negated) at++
  const key = tokens[at] ?? END
  if (!isWord(key.kind) || !isLabelKey(key.text)) return -1
  at++
  const operator = (tokens[at] ?? END).kind
  if (negated || operator === 'end' || operator === ',') return at
  at++
  switch (operator) {
    case 'in':
    case 'notin':
      return valueSetEnd(tokens, at)
    case '=':
    case '==':
    case '!=':
      return exactValueEnd(tokens, at, false)
    case '>':
    case '<':
      return exactValueEnd(tokens, at, true)
    default:
      return -1
  }
}

function exactValueEnd(tokens: readonly Token[], at: number, integer: boolean): number {
  const value = tokens[at] ?? END
  // `x=` has the empty value; it is no integer.
  if (value.kind === 'end' || value.kind === ',') return integer ? -1 : at
  if (!isWord(value.kind) || !isLabelValue(value.text)) return -1
  return integer && !isInt64(value.text) ? -1 : at + 1
}

/** `(a,,b)`: values may be empty. */
function valueSetEnd(tokens: readonly Token[], start: number): number {
  let at = start
  if (tokens[at++]?.kind !== '(') return -1
  for (;;) {
    const token = tokens[at++] ?? END
    if (token.kind === ')') return at
    if (token.kind === ',') continue
    if (!isWord(token.kind) || !isLabelValue(token.text)) return -1
    const next = (tokens[at] ?? END).kind
    if (next !== ',' && next !== ')') return -1
  }
}

/** `in` and `notin` are words wherever no operator is expected. */
function isWord(kind: Kind): boolean {
  return kind === 'id' || kind === 'in' || kind === 'notin'
}

function scan(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    while (at < text.length && isSpace(text.charCodeAt(at))) at++
    // Go's lexer reads a NUL byte as the end.
    if (at >= text.length || text.charCodeAt(at) === 0) return tokens
    const start = at
    if (isSymbol(text.charCodeAt(at))) {
      const symbol: Kind = symbolAt(text, at)
      at += symbol.length
      tokens.push({ kind: symbol, text: symbol })
    } else {
      while (at < text.length && isWordByte(text.charCodeAt(at))) at++
      tokens.push(word(text.slice(start, at)))
    }
    // ... but swallows one that ends a token.
    if (text.charCodeAt(at) === 0) at++
  }
}

function symbolAt(text: string, at: number): Kind {
  return SYMBOLS.get(text.slice(at, at + 2)) ?? SYMBOLS.get(text.charAt(at)) ?? 'end'
}

function word(text: string): Token {
  return { kind: text === 'in' || text === 'notin' ? text : 'id', text }
}

function isSpace(c: number): boolean {
  return c === 0x20 || c === 0x09 || c === 0x0d || c === 0x0a
}

/** `= ! ( ) , > <` */
function isSymbol(c: number): boolean {
  return c === 0x3d || c === 0x21 || c === 0x28 || c === 0x29 || c === 0x2c || c === 0x3e || c === 0x3c
}

function isWordByte(c: number): boolean {
  return c !== 0 && !isSymbol(c) && !isSpace(c)
}

/** `name` or `sub.domain/name` (apimachinery/pkg/api/validate/content/kube.go). */
function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  if (name.length > MAX_NAME_LENGTH || !KEY_NAME.test(name)) return false
  return slash < 0 || (slash <= MAX_SUBDOMAIN_LENGTH && SUBDOMAIN.test(key.slice(0, slash)))
}

function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= MAX_NAME_LENGTH && KEY_NAME.test(value))
}

/** What Go's strconv.ParseInt(text, 10, 64) accepts. In time linear to the text: BigInt is quadratic, and sees 19 digits. */
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

/** Of a value that is no integer, as much as an answer repeats. */
const MAX_SHOWN = 64

/** What Go says of a text that is none (strconv.NumError). */
export function int64Problem(text: string): string {
  const what = INT64.test(text) ? 'value out of range' : 'invalid syntax'
  return `strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, MAX_SHOWN))}: ${what}`
}
