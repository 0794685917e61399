// Parses JSON text like Kubernetes: the grammar of RFC 8259 with the error messages of Go's encoding/json, and the paths of duplicate
// fields (sigs.k8s.io/json). JSON.parse reports neither.

import { goQuote } from './go-values.ts'

/**
 * Maximum nesting depth. Go allows 10,000; no kind has more than a few dozen, and this makes recursion over an object safe.
 */
export const MAX_DEPTH = 500
/** As many as kube-apiserver reports. */
export const MAX_DUPLICATES = 100
/** Total length of their paths, characters: one key of a megabyte may contain a hundred thousand. */
export const MAX_DUPLICATE_TEXT: number = 64 * 1024
/**
 * Maximum number of values (texts, numbers, lists, maps ...) in a body: processing an object takes time for each, all in one turn of the
 * event loop. An UpstreamCluster with 200 servers and 500 policies has some 15,000.
 */
export const MAX_VALUES = 40_000

/** The body has more than MAX_VALUES; the rest was not even checked for syntax. */
export class TooManyValues extends SyntaxError {
  constructor() {
    super(
      `the body has more than ${MAX_VALUES} values (texts, numbers, lists, maps), which is the limit of this server`,
    )
  }
}

interface JsonText {
  readonly value: unknown
  /** Paths such as `spec.servers[0].endpoint`, each once. */
  readonly duplicates: readonly string[]
}

/**
 * @throws {TooManyValues} above MAX_VALUES
 * @throws {SyntaxError} with the message of Go's encoding/json
 */
export function parseJson(text: string): JsonText {
  const scanner = new Scanner(text)
  scanner.document()
  return { value: JSON.parse(text), duplicates: [...scanner.duplicates] }
}

const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' }

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c

class Scanner {
  readonly duplicates = new Set<string>()
  readonly #text: string
  #at = 0
  #depth = 0
  #values = 0
  /** Total length of duplicates' paths so far, characters. */
  #told = 0
  /** Current position: `.spec`, `.servers`, `[0]`. */
  readonly #path: string[] = []

  constructor(text: string) {
    this.#text = text
  }

  document(): void {
    this.#value()
    this.#space()
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value')
  }

  #value(): void {
    if (++this.#values > MAX_VALUES) throw new TooManyValues()
    this.#space()
    const c = this.#text.charAt(this.#at)
    if (c === '{') this.#nested(() => this.#object())
    else if (c === '[') this.#nested(() => this.#array())
    else if (c === '"') this.#string()
    else if (c === '-' || (c >= '0' && c <= '9')) this.#number()
    else this.#literal(LITERALS[c])
  }

  #nested(read: () => void): void {
    if (++this.#depth > MAX_DEPTH) throw new SyntaxError('exceeded max depth')
    this.#at++
    read()
    this.#depth--
  }

  #object(): void {
    this.#space()
    if (this.#take('}')) return
    // Most objects in a long text have one member, and need no set.
    let first: string | undefined
    let seen: Set<string> | undefined
    for (;;) {
      this.#space()
      if (this.#text.charAt(this.#at) !== '"') throw this.#unexpected('looking for beginning of object key string')
      const key = this.#key()
      if (first === undefined) first = key
      else {
        seen ??= new Set([first])
        if (seen.has(key)) this.#duplicate(key)
        seen.add(key)
      }
      this.#space()
      if (!this.#take(':')) throw this.#unexpected('after object key')
      this.#path.push(`.${key}`)
      this.#value()
      this.#path.pop()
      this.#space()
      if (this.#take('}')) return
      if (!this.#take(',')) throw this.#unexpected('after object key:value pair')
    }
  }

  #array(): void {
    this.#space()
    if (this.#take(']')) return
    for (let index = 0; ; index++) {
      this.#path.push(`[${index}]`)
      this.#value()
      this.#path.pop()
      this.#space()
      if (this.#take(']')) return
      if (!this.#take(',')) throw this.#unexpected('after array element')
    }
  }

  #duplicate(key: string): void {
    if (this.duplicates.size >= MAX_DUPLICATES || this.#told > MAX_DUPLICATE_TEXT) return
    const path = `${this.#path.join('')}.${key}`.slice(1)
    this.#told += path.length
    this.duplicates.add(path)
  }

  #key(): string {
    const start = this.#at
    this.#string()
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  #string(): void {
    this.#at++
    for (;;) {
      const c = this.#text.charCodeAt(this.#at)
      // NaN means end of text.
      if (!(c >= SPACE)) throw this.#unexpected('in string literal')
      this.#at++
      if (c === QUOTE) return
      if (c === BACKSLASH) this.#escape()
    }
  }

  #escape(): void {
    const c = this.#text.charAt(this.#at)
    if (c === '' || !'"\\/bfnrtu'.includes(c)) throw this.#unexpected('in string escape code')
    this.#at++
    if (c !== 'u') return
    for (let digits = 0; digits < 4; digits++) {
      if (!/^[0-9a-fA-F]$/.test(this.#text.charAt(this.#at))) {
        throw this.#unexpected('in \\u hexadecimal character escape')
      }
      this.#at++
    }
  }

  #number(): void {
    const start = this.#at
    this.#take('-')
    if (!this.#take('0') && this.#digits() === 0) throw this.#unexpected('in numeric literal')
    if (this.#take('.') && this.#digits() === 0) throw this.#unexpected('after decimal point in numeric literal')
    if (this.#take('e') || this.#take('E')) {
      if (!this.#take('+')) this.#take('-')
      if (this.#digits() === 0) throw this.#unexpected('in exponent of numeric literal')
    }
    const number = this.#text.slice(start, this.#at)
    if (Number.isFinite(Number(number))) return
    throw new SyntaxError(`json: cannot unmarshal number ${number.slice(0, 40)} into Go value of type float64`)
  }

  #digits(): number {
    const start = this.#at
    for (let c = this.#text.charAt(this.#at); c >= '0' && c <= '9'; c = this.#text.charAt(this.#at)) this.#at++
    return this.#at - start
  }

  #literal(word: string | undefined): void {
    if (word === undefined) throw this.#unexpected('looking for beginning of value')
    for (const c of word) {
      if (!this.#take(c)) throw this.#unexpected(`in literal ${word} (expecting '${c}')`)
    }
  }

  #take(c: string): boolean {
    if (this.#text.charAt(this.#at) !== c) return false
    this.#at++
    return true
  }

  #space(): void {
    for (let c = this.#text.charAt(this.#at); c === ' ' || c === '\n' || c === '\t' || c === '\r'; ) {
      c = this.#text.charAt(++this.#at)
    }
  }

  #unexpected(where: string): SyntaxError {
    const c = this.#text.charAt(this.#at)
    if (c === '') return new SyntaxError('unexpected end of JSON input')
    const shown = c === "'" ? `'\\''` : c === '"' ? `'"'` : `'${goQuote(c).slice(1, -1)}'`
    return new SyntaxError(`invalid character ${shown} ${where}`)
  }
}
