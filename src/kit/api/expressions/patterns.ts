// Patterns of expressions, in RE2's syntax and with its meaning, as Go's regexp has them: matches(), and find() and findAll() of kube-apiserver
// (k8s.io/apiserver/pkg/cel/library/regex.go). A search takes time linear in the text and in the program of the pattern, whatever they are.

import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'
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

// What compiling a pattern costs at most, known from its text: `[a-z]{1000}` is short, and its program is not. The syntax is RE2's
// (https://github.com/google/re2/wiki/Syntax), read only as far as its size needs; whether a pattern is valid, the compiler says.

/** Steps for an instruction, which takes one to three microseconds. */
const INSTRUCTION_STEPS = 50
/** For a class of Unicode, such as \pL, with its ranges and their other cases. */
const UNICODE_CLASS_STEPS = 5_000
/** For a range in which each character is looked up for its other case. */
const FOLDED_RANGE_STEPS = 100_000
const CHARACTER_STEPS = 10
/** The end of each [: is searched for: so many characters take a step. */
const NAMED_CLASS_STEP = 16

const CASELESS = /\(\?[a-zA-Z]*i/
const BEYOND_ASCII = /[^ -~]|\\x/
const REPEATED = /(\d+)(?:,(\d*))?\}/y

/** Instructions of a group besides its content, and of an operator behind an item. */
const GROUP = 3
const OPERATOR = 2

/** In steps of a Cost; linear in its length. */
export function patternCost(pattern: string): number {
  const { instructions, unicodeClasses } = new PatternSize(pattern)
  const folded = CASELESS.test(pattern) && BEYOND_ASCII.test(pattern) ? pattern.split('-').length - 1 : 0
  return (
    instructions * INSTRUCTION_STEPS +
    unicodeClasses * UNICODE_CLASS_STEPS +
    folded * FOLDED_RANGE_STEPS +
    pattern.length * CHARACTER_STEPS +
    ((pattern.split('[:').length - 1) * pattern.length) / NAMED_CLASS_STEP
  )
}

/** At most so many instructions: those of the item in front of `{3}` three times, and so on. */
class PatternSize {
  unicodeClasses = 0
  readonly instructions: number
  readonly #text: string
  #at = 0
  /** Sizes of the groups around this place. */
  readonly #outer: number[] = []
  /** Size of this group, without its last item. */
  #size = GROUP
  #last = 0
  /** Ends that the rest of the text does not have. */
  readonly #absent = new Set<string>()

  constructor(text: string) {
    this.#text = text
    while (this.#at < text.length) this.#next()
    this.instructions = this.#outer.reduce((sum, size) => sum + size, this.#size + this.#last)
  }

  #next(): void {
    const char = this.#text[this.#at++]
    if (char === '\\') this.#escape()
    else if (char === '[') this.#class()
    else if (char === '(') {
      this.#outer.push(this.#size + this.#last)
      this.#size = GROUP
      this.#last = 0
    } else if (char === ')') {
      this.#last += this.#size
      this.#size = this.#outer.pop() ?? 0
    } else if (char === '*' || char === '+' || char === '?') this.#last += OPERATOR
    else if (char === '{') this.#repeat()
    else this.#item(char === '|' ? GROUP : 1)
  }

  #item(size: number): void {
    this.#size += this.#last
    this.#last = size
  }

  #repeat(): void {
    REPEATED.lastIndex = this.#at
    const found = REPEATED.exec(this.#text)
    if (found === null) {
      this.#item(1)
      return
    }
    const [all, least = '', most = ''] = found
    this.#at += all.length
    this.#last = Math.max(Number(least), Number(most), 1) * (this.#last + 1) + OPERATOR
  }

  #escape(): void {
    const char = this.#text[this.#at++]
    if (char === 'Q') {
      const end = this.#text.indexOf('\\E', this.#at)
      const to = end < 0 ? this.#text.length : end
      this.#item(to - this.#at)
      this.#item(1)
      this.#at = to + 2
      return
    }
    if (char === 'p' || char === 'P') this.unicodeClasses++
    if ((char === 'p' || char === 'P' || char === 'x') && this.#text[this.#at] === '{') this.#skip('}')
    this.#item(1)
  }

  #class(): void {
    if (this.#text[this.#at] === '^') this.#at++
    for (let first = true; this.#at < this.#text.length; first = false) {
      const char = this.#text[this.#at++]
      if (char === ']' && !first) break
      if (char === '\\') {
        const escaped = this.#text[this.#at++]
        if (escaped === 'p' || escaped === 'P') this.unicodeClasses++
      } else if (char === '[' && this.#text[this.#at] === ':') this.#skip(':]')
    }
    this.#item(1)
  }

  /** To behind the next `end`, if there is one. */
  #skip(end: string): void {
    if (this.#absent.has(end)) return
    const at = this.#text.indexOf(end, this.#at)
    if (at >= 0) this.#at = at + end.length
    else this.#absent.add(end)
  }
}
