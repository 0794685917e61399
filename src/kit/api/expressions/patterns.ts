// Patterns of expressions, in RE2's syntax and with its meaning, as Go's regexp has them: matches(), and find() and findAll() of kube-apiserver
// (k8s.io/apiserver/pkg/cel/library/regex.go). A search takes time linear in the text and in the program of the pattern, whatever they are.

import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'
import { patternCost } from './pattern-cost.ts'
import { Cost, ExpressionFault, noOverload } from './values.ts'

/** So many characters times instructions cost one step. */
const SEARCH_STEP = 8
/** Steps of each search besides. */
const SEARCH_START = 50

/** Maximum cost of compiling the literal patterns of an object, in steps: twenty thousand instructions, about four megabytes. */
const MAX_PATTERNS_COST = 1_000_000

export function newPatternCost(): Cost {
  return new Cost(MAX_PATTERNS_COST, 'the patterns of the object are too large: shorten them, or repeat less in {}')
}

export const PATTERN_FUNCTIONS: readonly string[] = ['matches', 'find', 'findAll']

/** Its message repeats a part of the pattern. */
class InvalidPattern extends ExpressionFault {
  /** Without the pattern. */
  readonly what: string

  constructor(error: RE2JSException) {
    super(error.message)
    this.what = error instanceof RE2JSSyntaxException ? error.getDescription() : 'it cannot be compiled'
  }
}

/** Patterns that were compiled when the expression was parsed. */
export type Patterns = ReadonlyMap<string, Pattern>

export class Pattern {
  readonly #compiled: RE2JS

  /** @throws {ExpressionFault} if it is not valid, or costs too much */
  constructor(text: string, cost: Cost) {
    cost.spend(patternCost(cost.points(text)))
    try {
      this.#compiled = RE2JS.compile(text.toWellFormed())
    } catch (error) {
      if (error instanceof RE2JSException) throw new InvalidPattern(error)
      throw error
    }
  }

  /** The first matches, up to `most`. */
  find(text: string, most: number, cost: Cost): readonly string[] {
    const wellFormed = text.toWellFormed()
    const matcher = this.#compiled.matcher(wellFormed)
    const found: string[] = []
    let at = 0
    let lastEnd = -1
    while (found.length < most && at <= text.length) {
      cost.spend(SEARCH_START + ((text.length - at + 1) * this.#compiled.programSize()) / SEARCH_STEP)
      if (!matcher.find(at)) break
      const [start, end] = [matcher.start(), matcher.end()]
      // An empty match right behind the last one does not count.
      if (end > at || start !== lastEnd) found.push(wellFormed.slice(start, end))
      at = end > at ? end : at + ((wellFormed.codePointAt(at) ?? 0) > MAX_UNIT ? 2 : 1)
      lastEnd = end
    }
    return found
  }
}

/** Above, a character has two units of UTF-16. */
const MAX_UNIT = 0xff_ff

/** @param args the text, the pattern and, of findAll, how many */
export function callPattern(name: string, args: readonly unknown[], patterns: Patterns, cost: Cost): unknown {
  const [text, by, limit] = args
  if (typeof text !== 'string' || typeof by !== 'string') return noOverload(name, ...args)
  const pattern = patterns.get(by) ?? computedPattern(by, cost)
  if (name === 'matches') return pattern.find(text, 1, cost).length > 0
  if (name === 'find') return pattern.find(text, 1, cost)[0] ?? ''
  if (limit === undefined) return pattern.find(text, Number.POSITIVE_INFINITY, cost)
  if (typeof limit !== 'bigint') return noOverload(name, ...args)
  return pattern.find(text, limit < 0n ? Number.POSITIVE_INFINITY : Number(limit), cost)
}

/** Messages are logged: nothing of a pattern is in them that a token may have. */
function computedPattern(text: string, cost: Cost): Pattern {
  try {
    return new Pattern(text, cost)
  } catch (error) {
    if (error instanceof InvalidPattern) throw new ExpressionFault(`the pattern is not valid: ${error.what}`)
    throw error
  }
}
