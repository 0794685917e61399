// Parses YAML like Kubernetes (sigs.k8s.io/yaml): the first and only document, as a value that JSON can represent.

import {
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  type ParsedNode,
  Parser,
  Scalar,
} from 'yaml'
import { goSyntax } from './go-syntax.ts'
import { MAX_DEPTH, MAX_DUPLICATE_TEXT, MAX_DUPLICATES } from './json-text.ts'

interface YamlText {
  readonly value: unknown
  /** Paths of duplicate keys, each once. The last one wins. */
  readonly duplicates: readonly string[]
  /** The same in the words of Go's YAML library: `line 3: key "a" already set in map`. */
  readonly duplicateMessages: readonly string[]
}

/** Nodes that aliases may add to a document: enough for people, too few for a bomb. */
const MAX_ALIASED_NODES = 10_000
/** And characters: a few nodes may be long. */
const MAX_ALIASED_TEXT = 1024 * 1024

/**
 * Linear in the text; stops at the first error.
 * @throws {SyntaxError} with a message that begins with `yaml: `
 */
export function parseYaml(text: string): YamlText {
  try {
    const lines = new LineCounter()
    const reader = new Reader(lines)
    const value = reader.read(composeFirstDocument(text, lines), '', 0)
    return { value, duplicates: [...reader.duplicates], duplicateMessages: reader.duplicateMessages }
  } catch (error) {
    // Nested deeper than the library's stack allows.
    if (error instanceof RangeError) throw new SyntaxError('yaml: exceeded max depth')
    throw error
  }
}

class Reader {
  readonly duplicates = new Set<string>()
  readonly duplicateMessages: string[] = []
  readonly #lines: LineCounter
  readonly #anchors = new Map<string, Node>()
  /** Nodes whose aliases are being expanded: one nested in itself never ends. */
  readonly #open = new Set<Node>()
  #aliases = 0
  /** Total length of duplicates' paths so far, characters. */
  #told = 0
  #aliasedNodes = 0
  #aliasedText = 0

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  read(node: unknown, path: string, depth: number): unknown {
    if (depth > MAX_DEPTH) throw new SyntaxError('yaml: exceeded max depth')
    if (this.#aliases > 0 && ++this.#aliasedNodes > MAX_ALIASED_NODES) {
      throw new SyntaxError('yaml: document contains excessive aliasing')
    }
    if (isAlias(node)) return this.#alias(node.source, path, depth)
    if (isScalar(node)) return this.#scalar(node)
    if (!isMap(node) && !isSeq(node)) return null
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    this.#open.add(node)
    const value = isSeq(node)
      ? node.items.map((item, index) => this.read(item, `${path}[${index}]`, depth + 1))
      : this.#map(node.items, path, depth)
    this.#open.delete(node)
    return value
  }

  #alias(name: string, path: string, depth: number): unknown {
    const target = this.#anchors.get(name)
    if (target === undefined) throw new SyntaxError(`yaml: unknown anchor '${name}' referenced`)
    if (this.#open.has(target)) throw new SyntaxError(`yaml: anchor '${name}' value contains itself`)
    this.#aliases++
    const value = this.read(target, path, depth)
    this.#aliases--
    return value
  }

  #scalar(node: Scalar): unknown {
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    const text = String(node.value ?? '')
    if (this.#aliases > 0) this.#aliasedText += text.length
    if (this.#aliasedText > MAX_ALIASED_TEXT) throw new SyntaxError('yaml: document contains excessive aliasing')
    const plain = node.type === undefined || node.type === Scalar.PLAIN
    const value = node.tag !== undefined ? taggedScalar(node.tag, text) : plain ? plainScalar(text) : text
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new SyntaxError(`json: unsupported value: ${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'}`)
    }
    return value
  }

  #map(pairs: readonly Pair<unknown, unknown>[], path: string, depth: number): unknown {
    // Not a plain object: `__proto__` is a key like any other.
    const values = new Map<string, unknown>()
    const merges: Pair<unknown, unknown>[] = []
    for (const pair of pairs) {
      if (isMergeKey(pair.key)) {
        merges.push(pair)
        continue
      }
      const name = this.#key(pair.key, path, depth)
      const key = String(name)
      const at = path === '' ? key : `${path}.${key}`
      if (values.has(key)) this.#duplicate(at, name, pair.key)
      values.set(key, this.read(pair.value, at, depth + 1))
    }
    for (const merge of merges) this.#merge(values, this.read(merge.value, path, depth + 1))
    return Object.fromEntries(values)
  }

  #key(node: unknown, path: string, depth: number): string | number | boolean {
    const key = this.read(node, path, depth + 1)
    if (typeof key === 'string' || typeof key === 'number' || typeof key === 'boolean') return key
    const what = key === null ? '<nil>' : Array.isArray(key) ? 'a list' : 'a map'
    throw new SyntaxError(`yaml: unsupported map key of type: ${what}, in ${path === '' ? 'the document' : path}`)
  }

  #duplicate(path: string, key: string | number | boolean, node: unknown): void {
    if (this.#aliases > 0 || this.duplicates.size >= MAX_DUPLICATES || this.#told > MAX_DUPLICATE_TEXT) return
    this.#told += path.length
    if (this.duplicates.has(path)) return
    this.duplicates.add(path)
    const offset = isScalar(node) ? (node.range?.[0] ?? 0) : 0
    this.duplicateMessages.push(`line ${this.#lines.linePos(offset).line}: key ${goSyntax(key)} already set in map`)
  }

  /** `<<: *defaults`: adds what the map itself does not define. */
  #merge(values: Map<string, unknown>, from: unknown): void {
    for (const source of Array.isArray(from) ? from : [from]) {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) {
        throw new SyntaxError('yaml: map merge requires map or sequence of maps as the value')
      }
      for (const [key, value] of Object.entries(source)) if (!values.has(key)) values.set(key, value)
    }
  }
}

function isMergeKey(node: unknown): boolean {
  return isScalar(node) && node.value === '<<' && node.type === Scalar.PLAIN && node.tag === undefined
}

// Resolves YAML scalars like Kubernetes: the rules of go.yaml.in/yaml/v2 (resolve.go), used by sigs.k8s.io/yaml. They are YAML 1.1 without
// sexagesimal numbers and with timestamps left as text.
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

/** A scalar without quotes or tag. NaN and infinities are returned as numbers; JSON can't represent them. */
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
 * @throws {SyntaxError} if the text is not such a value, or JSON has no such values
 */
function taggedScalar(tag: string, text: string): string | number | boolean | null {
  const name = tag.startsWith(TAGS) ? tag.slice(TAGS.length) : tag
  if (name === 'binary') return binary(text)
  // A foreign tag, and `!` alone, mean text, whatever it looks like.
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

// YAML text -> the nodes of its first document, stopping at the first error. The library's own parseDocument continues after an error and
// keeps one more per token, with a stack: a request of 3 MB of `}` cost a minute and a half.

/**
 * undefined or null if it is empty. What follows the first document is not read, as in kube-apiserver.
 * @param lines records where lines begin
 * @throws {SyntaxError} with a message that begins with `yaml: `
 */
export function composeFirstDocument(text: string, lines: LineCounter): ParsedNode | null | undefined {
  const errors = new FirstError(lines)
  const composer = createComposer(errors)
  let begun = false
  for (const token of tokensOf(text, lines)) {
    refuseBadToken(token, begun, errors)
    begun ||= token.type === 'document'
    for (const document of composer.next(token)) return document.contents
  }
  for (const document of composer.end(true, text.length)) return document.contents
  return undefined
}

/** Collections that may be open at a time, plus their document and a scalar. */
const MAX_OPEN = MAX_DEPTH + 2

/**
 * Like the library's own Parser.parse, but limited to the depth that is later read: a token is emitted only once all of its content has
 * been read, so a text of nothing but brackets would be read to its end.
 */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lines.addNewLine)
  // The library's types hide it; strict-decode.test.ts fails if it disappears.
  const open: unknown = Reflect.get(parser, 'stack')
  if (!Array.isArray(open)) throw new Error('the YAML library does not tell how deep it is')
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    if (open.length > MAX_OPEN) throw new SyntaxError('yaml: exceeded max depth')
  }
  yield* parser.end()
}

/** Aborts the parse: every catcher rethrows the same error. */
class FirstError {
  readonly #lines: LineCounter
  #first: SyntaxError | undefined

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  /** @returns never: always throws */
  raise(offset: number, message: string): never {
    this.#first ??= new SyntaxError(`yaml: line ${this.#lines.linePos(offset).line}: ${message}`)
    throw this.#first
  }
}

/** A composer that throws where the library would record an error and continue. */
function createComposer(errors: FirstError): Composer<ParsedNode, false> {
  const composer = new Composer<ParsedNode, false>({
    version: '1.1',
    // Every scalar stays text; yaml-text.ts resolves it.
    schema: 'failsafe',
    resolveKnownTags: false,
    merge: false,
    // Quadratic in the library; the reader of the nodes finds duplicate keys itself.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  })
  // The library has no option for it; strict-decode.test.ts fails if it no longer calls this.
  const replaced = Reflect.set(
    composer,
    'onError',
    (at: Position, _code: string, message: string, warning?: boolean) => {
      if (warning !== true) errors.raise(offsetOf(at), message)
    },
  )
  if (!replaced) throw new Error('the YAML library cannot be stopped at an error')
  return composer
}

/** Position of an error as reported by the library. */
type Position = number | readonly [number, number] | { readonly offset: number }

function offsetOf(at: Position): number {
  if (typeof at === 'number') return at
  return 'offset' in at ? at.offset : at[0]
}

/** The composer silently records errors of tokens outside a document. */
function refuseBadToken(token: CST.Token, begun: boolean, errors: FirstError): void {
  if (token.type === 'error') {
    const shown = token.source === '' ? '' : `: ${JSON.stringify(token.source.slice(0, MAX_SHOWN))}`
    errors.raise(token.offset, `${token.message}${shown}`)
  }
  if (token.type === 'doc-end' && !begun) errors.raise(token.offset, 'Unexpected doc-end without preceding document')
}

/** Characters of a misplaced token that a message repeats. */
const MAX_SHOWN = 64
