// What kube-apiserver computes when an expression is written: conversions of literals, and literal patterns. What fails then would fail for every
// token, so that the expression is invalid (github.com/google/cel-go: cel/validator.go, interpreter/decorators.go).

import type { ASTNode } from '@marcbachmann/cel-js'
import { childrenOf } from './children.ts'
import { callFunction } from './functions.ts'
import { PATTERN_FUNCTIONS, Pattern, type Patterns } from './patterns.ts'
import { Cost, ExpressionFault } from './values.ts'

const CONVERSIONS = ['string', 'int', 'double', 'dyn', 'timestamp', 'duration']

/**
 * @param cost what compiling them may cost
 * @throws {ExpressionFault}
 */
export function literalPatterns(root: ASTNode, cost: Cost): Patterns {
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
