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
