// Label selectors: the parser of apimachinery/pkg/labels/selector.go, with its messages.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { labelValueErrors, qualifiedNameErrors } from '../../core/objects/qualified-name.ts'
import { isInt64, isLabelSelector } from '../../core/text/label-selector.ts'
import { metadataOf } from '../objects/object-metadata.ts'

type Operator = 'in' | 'notin' | 'exists' | 'absent' | '>' | '<'

interface Requirement {
  readonly key: string
  readonly operator: Operator
  readonly values: readonly string[]
}

export type LabelSelector = readonly Requirement[]

/** Operators, the words `in` and `notin`, and words. */
const TOKEN = /==|!=|[=!(),<>]|[^\s=!(),<>\0]+/g
const SYMBOL = /^(?:==|!=|[=!(),<>])$/
const BINARY: readonly string[] = ['=', '==', '!=', 'in', 'notin', '>', '<']
/** As Go lists them (labels.go, binaryOperators). */
const BINARY_TEXT = 'in, notin, =, ==, !=, gt, lt'

/** @throws {SyntaxError} with kube-apiserver's message */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = new Tokens(text.match(TOKEN) ?? [])
  const requirements: Requirement[] = []
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
  // Only keys, values and numbers can still be invalid.
  if (!isLabelSelector(text)) throw new SyntaxError(`unable to parse requirement: ${badPart(requirements)}`)
  return requirements
}

/** Whether the labels of the object satisfy all requirements. */
export function labelsMatch(selector: LabelSelector, object: JsonObject): boolean {
  if (selector.length === 0) return true
  const labels = metadataOf(object)['labels']
  const held = isRecord(labels) ? labels : {}
  return selector.every((requirement) => fulfils(requirement, held))
}

function fulfils({ key, operator, values }: Requirement, labels: JsonObject): boolean {
  const label = Object.hasOwn(labels, key) ? labels[key] : undefined
  const text = typeof label === 'string' ? label : undefined
  switch (operator) {
    case 'in':
      return text !== undefined && values.includes(text)
    case 'notin':
      return text === undefined || !values.includes(text)
    case 'exists':
      return text !== undefined
    case 'absent':
      return text === undefined
    case '>':
    case '<': {
      if (text === undefined || !isInt64(text)) return false
      const bound = BigInt(unsigned(values[0] ?? '0'))
      return operator === '>' ? BigInt(unsigned(text)) > bound : BigInt(unsigned(text)) < bound
    }
  }
}

/** BigInt does not accept a plus sign. */
function unsigned(integer: string): string {
  return integer.startsWith('+') ? integer.slice(1) : integer
}

class Tokens {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  /** '' = the end. */
  peek(): string {
    return this.#tokens[this.#at] ?? ''
  }

  take(): string {
    return this.#tokens[this.#at++] ?? ''
  }
}

function parseRequirement(tokens: Tokens): Requirement {
  const negated = tokens.peek() === '!'
  if (negated) tokens.take()
  const key = tokens.take()
  if (!isWord(key)) throw notParsed(`found '${key}', expected: identifier`)
  if (tokens.peek() === '' || tokens.peek() === ',') {
    return { key, operator: negated ? 'absent' : 'exists', values: [] }
  }
  if (negated) return { key, operator: 'absent', values: [] }
  const operator = tokens.take()
  if (!BINARY.includes(operator)) throw notParsed(`found '${operator}', expected: ${BINARY_TEXT}`)
  if (operator === 'in' || operator === 'notin') return { key, operator, values: parseSet(tokens) }
  const values = [exactValue(tokens)]
  if (operator === '>' || operator === '<') return { key, operator, values }
  return { key, operator: operator === '!=' ? 'notin' : 'in', values }
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
  return token !== '' && !SYMBOL.test(token)
}

function notParsed(what: string): SyntaxError {
  return new SyntaxError(`unable to parse requirement: ${what}`)
}

/** The invalid key or value of an otherwise well-formed selector. */
function badPart(requirements: LabelSelector): string {
  for (const { key, values, operator } of requirements) {
    const [keyError] = qualifiedNameErrors(key)
    if (keyError !== undefined) return `<nil>: Invalid value: ${JSON.stringify(key)}: ${keyError}`
    for (const value of values) {
      if (operator === '>' || operator === '<') {
        if (!isInt64(value)) {
          return `values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`
        }
      } else if (value !== '' && !isLabelSelector(`a=${value}`)) {
        const [wrong] = labelValueErrors(value)
        return `values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`
      }
    }
  }
  return 'the selector is malformed'
}
