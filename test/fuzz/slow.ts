// `npm run fuzz -- --slow [--seconds N] [--parser TEXT] [--part I/N] [--seed S]`: looks for inputs that are slow to read. The parsers and
// their inputs are those of test/costs/. An input is changed in its parts, and kept when a character of it costs more than before, or
// more the longer it gets. Reported is what grows beyond the ratio that the tests permit: as a recipe, to be copied into the table.

import { growth, MOST, nanoseconds } from '../costs/measure.ts'
import type { Parser } from '../costs/parser.ts'
import { KIB, type Part, type Recipe, write } from '../costs/shapes.ts'
import { Random } from './random.ts'

export interface SlowOptions {
  readonly parsers: readonly Parser[]
  readonly seed: number
  /** For each parser. */
  readonly seconds: number
}

export interface SlowInput {
  readonly parser: string
  readonly recipe: Recipe
  readonly ratio: number
  readonly ns: number
  readonly length: number
}

/** At which inputs are compared with each other; a square shows between the two. */
const SHORT = 2 * KIB
const LONG = 16 * KIB
const KEPT = 12
/** Inputs of the table that a search begins with at least, however short it is. */
const FIRST = 4
/** Nanoseconds for a character that are not told apart. */
const NOISE_NS = 4
/** From this growth on an input looks suspicious; it is measured again then. */
const SUSPICIOUS = 2
const MAX_PARTS = 6
const MAX_TEXT = 64

interface Candidate {
  readonly recipe: Recipe
  /** What it costs for a character when it is long. */
  readonly ns: number
  /** How much more than when it is short. */
  readonly growth: number
}

/** The inputs that grew too much, one of each parser at most. @param onParser told before each */
export function findSlow({ parsers, seed, seconds }: SlowOptions, onParser?: (parser: Parser) => void): SlowInput[] {
  const found: SlowInput[] = []
  for (const [at, parser] of parsers.entries()) {
    onParser?.(parser)
    const slow = new Search(parser, new Random(seed, at)).run(seconds)
    if (slow !== undefined) found.push(slow)
  }
  return found
}

class Search {
  readonly #parser: Parser
  readonly #random: Random
  readonly #tokens: readonly string[]
  readonly #kept: Candidate[] = []

  constructor(parser: Parser, random: Random) {
    this.#parser = parser
    this.#random = random
    const texts = recipesOf(parser).flatMap(({ parts }) => parts.map(({ text }) => text))
    this.#tokens = [...new Set([...parser.tokens, ...texts.filter((text) => text.length <= MAX_TEXT)])]
  }

  run(seconds: number): SlowInput | undefined {
    const endMs = performance.now() + seconds * 1000
    const recipes = [...recipesOf(this.#parser)]
    while (recipes.length > 0 && (this.#kept.length < FIRST || performance.now() < endMs)) {
      const [recipe] = recipes.splice(this.#random.below(recipes.length), 1)
      if (recipe !== undefined) this.#try(recipe)
    }
    if (this.#kept.length === 0) return undefined
    while (performance.now() < endMs) {
      const candidate = this.#try(this.#changed(this.#random.pick(this.#kept).recipe))
      if (candidate === undefined || candidate.growth < SUSPICIOUS) continue
      const slow = this.#confirm(candidate.recipe)
      if (slow !== undefined) return slow
    }
    return undefined
  }

  /** Measures it, and keeps it among the dearest or those that grow most. */
  #try(recipe: Recipe): Candidate | undefined {
    const [short, long] = [SHORT, LONG].map(
      (length) => Math.min(length, this.#parser.limit) / (length === SHORT ? 4 : 1),
    )
    if (short === undefined || long === undefined) return undefined
    const few = this.#cost(recipe, short)
    const many = this.#cost(recipe, long)
    if (few === undefined || many === undefined) return undefined
    const candidate = { recipe, ns: many, growth: many / Math.max(few, NOISE_NS) }
    this.#kept.push(candidate)
    if (this.#kept.length > KEPT) {
      this.#kept.sort((a, b) => scoreOf(b) - scoreOf(a))
      this.#kept.length = KEPT
    }
    return candidate
  }

  /** Nanoseconds for a character; undefined = it cannot be prepared. @throws what is a bug, with the recipe */
  #cost(recipe: Recipe, length: number): number | undefined {
    const text = write(recipe, length)
    let read: () => unknown
    try {
      read = this.#parser.open(text)
    } catch {
      return undefined
    }
    try {
      read()
      return nanoseconds(read, 1) / text.length
    } catch (error) {
      throw new Error(`${this.#parser.name}: ${JSON.stringify(recipe)} is a bug`, { cause: error })
    }
  }

  /** As the tests measure it. */
  #confirm(recipe: Recipe): SlowInput | undefined {
    const { ratio, ns, length } = growth(this.#parser, recipe, MOST)
    return ratio > MOST ? { parser: this.#parser.name, recipe, ratio, ns, length } : undefined
  }

  #changed(recipe: Recipe): Recipe {
    const random = this.#random
    const parts = [...recipe.parts]
    for (let n = 1 + random.below(3); n > 0; n--) this.#change(parts)
    if (!parts.some(({ share }) => share > 0)) parts.push({ text: random.pick(this.#tokens), share: 1 })
    return { parts: parts.filter(({ text }) => text !== '') }
  }

  #change(parts: Part[]): void {
    const random = this.#random
    const at = random.below(parts.length)
    const { text, share } = parts[at] ?? { text: '', share: 1 }
    switch (random.below(8)) {
      case 0:
        if (parts.length < MAX_PARTS) parts.splice(at, 0, { text: random.pick(this.#tokens), share: random.below(2) })
        return
      case 1:
        if (parts.length > 1) parts.splice(at, 1)
        return
      case 2:
        parts[at] = { text, share: share === 0 ? 1 : 0 }
        return
      case 3:
        parts[at] = { text: text.slice(0, random.below(text.length + 1)), share }
        return
      case 4:
        parts[at] = { text: random.pick(this.#tokens), share }
        return
      case 5: {
        const cut = random.below(text.length + 1)
        const letter = String.fromCharCode(random.oneIn(2) ? 0x20 + random.below(0x5f) : random.below(256))
        parts[at] = { text: text.slice(0, cut) + letter + text.slice(cut), share }
        return
      }
      case 6: {
        const other = this.#random.pick(this.#kept).recipe.parts
        if (parts.length < MAX_PARTS && other.length > 0) parts.splice(at, 0, random.pick(other))
        return
      }
      default:
        if (text.length <= MAX_TEXT) parts[at] = { text: text + random.pick(this.#tokens), share }
    }
  }
}

/** What grows is worth more than what is only dear. */
function scoreOf({ ns, growth: ratio }: Candidate): number {
  return Math.log2(Math.max(ns, 1)) + 4 * Math.log2(Math.max(ratio, 0.1))
}

function recipesOf({ shapes }: Parser): readonly Recipe[] {
  return Object.values(shapes).filter((shape) => typeof shape !== 'function')
}
