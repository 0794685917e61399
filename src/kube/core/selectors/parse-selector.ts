// Parses label selectors in text form, `?labelSelector=`: the lexer and parser of apimachinery/pkg/labels/selector.go, with its messages.

import { labelValueErrors, qualifiedNameErrors } from '../../../kit/api/validation/name-errors.ts'
import { isLabelKey, isLabelValue } from '../../../kit/api/validation/name-syntax.ts'
import { isInt64 } from '../../../kit/core/text/int64.ts'
import type { LabelRequirement, LabelRequirements } from './label-requirement.ts'

const BINARY: ReadonlyMap<string, LabelRequirement['operator']> = new Map([
  ['=', 'In'],
  ['==', 'In'],
  ['!=', 'NotIn'],
  ['in', 'In'],
  ['notin', 'NotIn'],
  ['>', 'Gt'],
  ['<', 'Lt'],
])
/** In Go's order (labels.go, binaryOperators). */
const BINARY_TEXT = 'in, notin, =, ==, !=, gt, lt'

/** All that RequestInfo needs: a selector that does not parse makes kube-apiserver ignore every other list option. */
export function isLabelSelector(text: string): boolean {
  try {
    parseLabelSelector(text)
    return true
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}

/** @throws {SyntaxError} with kube-apiserver's message */
export function parseLabelSelector(text: string): LabelRequirements {
  const tokens = new Tokens(scan(text))
  const requirements: LabelRequirement[] = []
  while (tokens.peek() !== '') {
    if (!isWord(tokens.peek()) && tokens.peek() !== '!') {
      throw new SyntaxError(`found '${tokens.peek()}', expected: !, identifier, or 'end of string'`)
    }
    requirements.push(parseRequirement(tokens))
    const next = tokens.take()
    if (next === '') break
    if (next !== ',') throw new SyntaxError(`found '${next}', expected: ',' or 'end of string'`)
    if (!isWord(tokens.peek()) && tokens.peek() !== '!') {
      throw new SyntaxError(`found '${tokens.peek()}', expected: identifier after ','`)
    }
  }
  for (const requirement of requirements) checkParts(requirement)
  return requirements
}

class Tokens {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  /** '' = end of input. */
  peek(): string {
    return this.#tokens[this.#at] ?? ''
  }

  take(): string {
    return this.#tokens[this.#at++] ?? ''
  }
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  const negated = tokens.peek() === '!'
  if (negated) tokens.take()
  const key = tokens.take()
  if (!isWord(key)) throw notParsed(`found '${key}', expected: identifier`)
  if (negated || tokens.peek() === '' || tokens.peek() === ',') {
    return { key, operator: negated ? 'DoesNotExist' : 'Exists', values: new Set() }
  }
  const word = tokens.take()
  const operator = BINARY.get(word)
  if (operator === undefined) throw notParsed(`found '${word}', expected: ${BINARY_TEXT}`)
  const isSet = word === 'in' || word === 'notin'
  return { key, operator, values: new Set(isSet ? parseSet(tokens) : [exactValue(tokens)]) }
}

function exactValue(tokens: Tokens): string {
  if (tokens.peek() === '' || tokens.peek() === ',') return ''
  const value = tokens.take()
  if (!isWord(value)) throw notParsed(`found '${value}', expected: identifier`)
  return value
}

/** `(a,,b)`: values may be empty. */
function parseSet(tokens: Tokens): string[] {
  const open = tokens.take()
  if (open !== '(') throw notParsed(`found '${open}' expected: '('`)
  const values: string[] = []
  let expected = true
  for (;;) {
    const token = tokens.take()
    if (token === ')') {
      if (expected) values.push('')
      return values
    }
    if (token === ',') {
      if (expected) values.push('')
      expected = true
    } else if (isWord(token) && expected) {
      values.push(token)
      expected = false
    } else {
      throw notParsed(`found '${token}', expected: ${expectedIn(values.length, expected)}`)
    }
  }
}

function expectedIn(values: number, expected: boolean): string {
  if (!expected) return "',' or ')'"
  return values === 0 ? "',', ')' or identifier" : "',', or identifier"
}

function isWord(token: string): boolean {
  return token !== '' && !isSymbol(token.charCodeAt(0))
}

function notParsed(what: string): SyntaxError {
  return new SyntaxError(`unable to parse requirement: ${what}`)
}

/** Validates keys, values and numbers of a well-formed requirement. */
function checkParts({ key, values, operator }: LabelRequirement): void {
  if (!isLabelKey(key)) throw notParsed(`<nil>: Invalid value: ${JSON.stringify(key)}: ${qualifiedNameErrors(key)[0]}`)
  for (const value of values) {
    if ((operator === 'Gt' || operator === 'Lt') && !isInt64(value)) {
      const why = "for 'Gt', 'Lt' operators, the value must be an integer"
      throw notParsed(`values[0]: Invalid value: ${JSON.stringify(value)}: ${why}`)
    }
    if (isLabelValue(value)) continue
    throw notParsed(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${labelValueErrors(value)[0]}`)
  }
}

/** Splits into operators and words. */
function scan(text: string): string[] {
  const tokens: string[] = []
  let at = 0
  for (;;) {
    while (at < text.length && isSpace(text.charCodeAt(at))) at++
    // Go's lexer treats a NUL byte as the end.
    if (at >= text.length || text.charCodeAt(at) === 0) return tokens
    const start = at
    if (isSymbol(text.charCodeAt(at))) at += /^[=!]=/.test(text.slice(at, at + 2)) ? 2 : 1
    else while (at < text.length && isWordByte(text.charCodeAt(at))) at++
    tokens.push(text.slice(start, at))
    // ... but swallows one that ends a token.
    if (text.charCodeAt(at) === 0) at++
  }
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
