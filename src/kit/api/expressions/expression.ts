// Expressions in CEL (https://cel.dev), as in kube-apiserver's AuthenticationConfiguration. A library parses them and checks their types; evaluate.ts
// evaluates them. An expression with an unsupported function is refused when the object is written, not when a token arrives.

import type { ASTNode } from '@marcbachmann/cel-js'
import { errorMessage } from '../validation/error-message.ts'
import { ENVIRONMENTS, type ExpressionSubject, isFunction, isLibrary, isMethod } from './declarations.ts'
import { callFunction } from './functions.ts'
import { newPatternCost, PATTERN_FUNCTIONS, Pattern, type Patterns } from './patterns.ts'
import { Cost, ExpressionFault } from './values.ts'

export type { ExpressionSubject } from './declarations.ts'

export interface Expression {
  readonly subject: ExpressionSubject
  readonly root: ASTNode
  /** The literal ones. */
  readonly patterns: Patterns
}

export interface InvalidExpression {
  /** Continues its path: `is not a valid expression: ...`. */
  readonly invalid: string
}

/** Maximum characters of an expression. */
const MAX_LENGTH = 4_096

/**
 * @param type the required type; default: any
 * @param patternCost shared by the expressions of an object
 */
export function parseExpression(
  text: string,
  subject: ExpressionSubject,
  type?: 'bool',
  patternCost: Cost = newPatternCost(),
): Expression | InvalidExpression {
  if (text.length > MAX_LENGTH) return { invalid: `has more than ${MAX_LENGTH} characters` }
  try {
    const parsed = ENVIRONMENTS[subject].parse(text)
    const checked = parsed.check()
    if (!checked.valid) return { invalid: `is not a valid expression: ${firstLine(checked.error)}` }
    if (type !== undefined && checked.type !== type) return { invalid: `must evaluate to ${type}` }
    const root = parsed.ast
    const unknown = root.op === 'id' && root.args === subject ? asWhole(subject) : unsupported(root, subject)
    return unknown === '' ? { subject, root, patterns: literalPatterns(root, patternCost) } : { invalid: unknown }
  } catch (error) {
    return { invalid: `is not a valid expression: ${firstLine(error)}` }
  }
}

export function isInvalidExpression(parsed: Expression | InvalidExpression): parsed is InvalidExpression {
  return 'invalid' in parsed
}

/** Whether it has `claims.FIELD` or `claims.?FIELD` somewhere. */
export function usesField({ subject, root }: Expression, field: string): boolean {
  const uses = (node: ASTNode): boolean => {
    if ((node.op === '.' || node.op === '.?') && node.args[1] === field) {
      const [operand] = node.args
      if (operand.op === 'id' && operand.args === subject) return true
    }
    return childrenOf(node).some(uses)
  }
  return uses(root)
}

function firstLine(error: unknown): string {
  return errorMessage(error).split('\n', 1)[0] ?? ''
}

/** The unsupported part; '' = none. As in kube-apiserver, only fields of the subject have values. */
function unsupported(node: ASTNode, subject: ExpressionSubject): string {
  const own = unsupportedNode(node)
  if (own !== '') return own
  const isAccess = node.op === '.' || node.op === '.?' || node.op === '[]' || node.op === '[?]'
  for (const part of childrenOf(node)) {
    if (isAccess && part === node.args[0] && part.op === 'id') continue
    if (node.op === 'rcall' && part === node.args[1] && libraryOf(part) !== '') continue
    const found = part.op === 'id' && part.args === subject ? asWhole(subject) : unsupported(part, subject)
    if (found !== '') return found
  }
  return ''
}

function asWhole(subject: ExpressionSubject): string {
  return `uses ${subject} as a whole: use its fields, and has(${subject}.NAME) instead of in`
}

function unsupportedNode(node: ASTNode): string {
  switch (node.op) {
    case 'value': {
      const { args } = node
      const isKnown = args === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof args)
      return isKnown ? '' : 'has bytes or an unsigned number, which are not supported'
    }
    case '.':
    case '.?':
      return node.args[1].includes('__') ? `has the field ${node.args[1]}: write it as ['NAME']` : ''
    case 'id':
      return isLibrary(node.args) ? `uses ${node.args} as a value` : ''
    case 'call':
      return isFunction(node.args[0], node.args[1]) ? '' : notEvaluated(node.args[0])
    case 'rcall': {
      const [name, receiver, args] = node.args
      return isMethod(name, args, libraryOf(receiver)) ? '' : notEvaluated(name)
    }
    case 'map':
      return node.args.every(([key]) => key.op === 'value' && typeof key.args === 'string')
        ? ''
        : 'has a map with keys that are not texts, which is not supported'
    default:
      return ''
  }
}

/** '' = it is a value. */
function libraryOf(receiver: ASTNode): string {
  return receiver.op === 'id' && isLibrary(receiver.args) ? receiver.args : ''
}

function notEvaluated(name: string): string {
  const hint = /^get[A-Z]/.test(name) ? '; write the time zone as a literal offset, such as +02:00' : ''
  return `has the function ${name}, which is not supported with these arguments${hint}`
}

// What kube-apiserver computes when an expression is written: conversions of literals, and literal patterns. What fails then would fail for every
// token, so that the expression is invalid (github.com/google/cel-go: cel/validator.go, interpreter/decorators.go).

const CONVERSIONS = ['string', 'int', 'double', 'dyn', 'timestamp', 'duration']

/**
 * @param cost what compiling them may cost
 * @throws {ExpressionFault}
 */
function literalPatterns(root: ASTNode, cost: Cost): Patterns {
  const constants = new Constants(cost)
  constants.of(root)
  return constants.patterns
}

class Constants {
  readonly patterns = new Map<string, Pattern>()
  readonly #patternCost: Cost

  constructor(cost: Cost) {
    this.#patternCost = cost
  }

  /** The value of a literal, or what one is converted to; undefined = it is not constant. Also checks all of its parts. */
  of(node: ASTNode): unknown {
    if (node.op === 'value') return node.args
    const parts = childrenOf(node).map((part) => this.of(part))
    if (node.op === '-_' && typeof parts[0] === 'bigint') return -parts[0]
    if (node.op === '-_' && typeof parts[0] === 'number') return -parts[0]
    if (node.op === 'call') return this.#call(node.args[0], parts)
    if (node.op === 'rcall' && PATTERN_FUNCTIONS.includes(node.args[0])) this.#compile(parts[1])
    return undefined
  }

  #call(name: string, args: readonly unknown[]): unknown {
    // kube-apiserver takes the first argument for the pattern, too.
    if (name === 'matches') for (const arg of args) this.#compile(arg)
    const [value] = args
    if (!CONVERSIONS.includes(name) || value === undefined) return undefined
    try {
      return callFunction(name, [value], new Cost())
    } catch (error) {
      if (error instanceof ExpressionFault) throw new ExpressionFault(`${name}() of a literal: ${error.message}`)
      throw error
    }
  }

  #compile(text: unknown): void {
    if (typeof text !== 'string' || this.patterns.has(text)) return
    this.patterns.set(text, new Pattern(text, this.#patternCost))
  }
}

function childrenOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'list':
      return node.args
    case 'map':
      return node.args.flat()
    case '?:':
      return node.args
    case '!_':
    case '-_':
      return [node.args]
    default:
      return node.args
  }
}
