// What a recording may do to the terminal on which it is played: draw. Whatever makes a terminal answer, write to the clipboard, name its window, print,
// load something or change what keys and the mouse send is left out. What is permitted is listed: a sequence that is not known is left out, too.
// (ECMA-48; xterm's ctlseqs.)

export interface TerminalFilter {
  /** What is left of the next piece of a terminal's output. */
  filter(text: string): string
}

/** Characters of a sequence; a longer one is none. */
const MAX_SEQUENCE = 64
/** Characters of a string (OSC, DCS, ...) that are left out. What follows is shown, so that nothing hides behind a string without end. */
const MAX_STRING = 4096

/** Bell, backspace, tab, line feeds, carriage return, and the two character sets. */
const CONTROLS: ReadonlySet<number> = new Set([0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f])
/** Save and restore the cursor, index, next line, tab stop, reverse index. */
const ESCAPES: ReadonlySet<string> = new Set(['7', '8', 'D', 'E', 'H', 'M'])
/** Cursor, erasing, scrolling, inserting, tabs, repetition, colours, scroll region. Without intermediates. */
const PLAIN_CSI = /^(?:\d{0,5}(?:;\d{0,5}){0,1}[A-HJKLMPSTXZ@`abdefrsu]|[03]?g|4[hl]|[\d;:]{0,60}m)$/
/** Wrapping, blinking and visible cursor, alternate screen, synchronized output. */
const PRIVATE_CSI = /^\?(?:7|12|25|47|1047|1048|1049|2026)(?:;(?:7|12|25|47|1047|1048|1049|2026)){0,4}[hl]$/
/** ASCII and line drawing. */
const CHARSET = /^[()][0B]$/
/** Invisible characters that reorder text. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Undoes what a recording that ends anywhere may have left behind. */
export const TERMINAL_RESET = '\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[0m\x1b[?25h\x1b[?7h\x1b[4l\x1b(B\x1b)B\x0f'

/** @param isPlain leaves out every sequence and every control character but tab and line feed: `--text` */
export function terminalFilter(isPlain: boolean): TerminalFilter {
  return new Filter(isPlain)
}

type State = 'text' | 'escape' | 'csi' | 'charset' | 'string' | 'stringEscape'

class Filter implements TerminalFilter {
  readonly #isPlain: boolean
  #state: State = 'text'
  /** The sequence so far, behind its introducer. */
  #sequence = ''
  #stringLength = 0
  #out = ''
  #wasReturn = false

  constructor(isPlain: boolean) {
    this.#isPlain = isPlain
  }

  filter(text: string): string {
    this.#out = ''
    let start = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#state === 'text' && code >= 0x20 && code < 0x7f) continue
      if (this.#state === 'text') this.#emit(text.slice(start, at))
      this.#next(code, text[at] ?? '')
      start = at + 1
    }
    if (this.#state === 'text') this.#emit(text.slice(start))
    return this.#out.replaceAll(REORDERING, '')
  }

  #next(code: number, character: string): void {
    if (this.#state === 'text') {
      if (code === 0x1b) this.#state = 'escape'
      else this.#text(code, character)
    } else if (code === 0x1b) this.#state = this.#state === 'string' ? 'stringEscape' : 'escape'
    else this.#within(code, character)
    if (this.#state === 'escape' && code === 0x1b) this.#sequence = ''
  }

  /** Within a sequence. */
  #within(code: number, character: string): void {
    // CAN and SUB end any of them; no sequence contains another control character, nor a line.
    if (code < 0x20 && !(this.#state === 'string' && code === 0x07)) {
      this.#state = 'text'
      if (code !== 0x18 && code !== 0x1a) this.#text(code, character)
      return
    }
    switch (this.#state) {
      case 'escape':
        this.#escape(character)
        break
      case 'charset':
        this.#end(CHARSET.test(this.#sequence + character) ? `\x1b${this.#sequence}${character}` : '')
        break
      case 'csi':
        this.#sequence += character
        if (code >= 0x40 && code <= 0x7e) {
          const isKnown = PLAIN_CSI.test(this.#sequence) || PRIVATE_CSI.test(this.#sequence)
          this.#end(isKnown ? `\x1b[${this.#sequence}` : '')
        } else if (code > 0x7e || this.#sequence.length > MAX_SEQUENCE) this.#state = 'text'
        break
      case 'stringEscape':
        // ESC \ ends it; any other one begins a sequence of its own.
        if (character === '\\') this.#state = 'text'
        else {
          this.#state = 'escape'
          this.#sequence = ''
          this.#escape(character)
        }
        break
      default:
        if (code === 0x07 || code === 0x9c || ++this.#stringLength > MAX_STRING) this.#state = 'text'
    }
  }

  #escape(character: string): void {
    this.#sequence = ''
    this.#stringLength = 0
    if (character === '[') this.#state = 'csi'
    else if ('(' === character || ')' === character) {
      this.#state = 'charset'
      this.#sequence = character
    } else if (']PX^_k'.includes(character)) this.#state = 'string'
    else if (character >= ' ' && character <= '/') {
      this.#state = 'charset'
      this.#sequence = character
    } else this.#end(ESCAPES.has(character) ? `\x1b${character}` : '')
  }

  /** A sequence is whole. @param kept '' = it is left out */
  #end(kept: string): void {
    this.#state = 'text'
    if (!this.#isPlain) this.#out += kept
  }

  /** Neither printable ASCII nor ESC. */
  #text(code: number, character: string): void {
    if (code >= 0xa0) this.#emit(character)
    else if (!this.#isPlain) this.#out += CONTROLS.has(code) ? character : ''
    else if (code === 0x0d) {
      if (this.#wasReturn) this.#out += '\n'
      this.#wasReturn = true
    } else if (code === 0x0a || code === 0x09) this.#emit(character)
  }

  /** A carriage return is a new line, unless one follows. */
  #emit(text: string): void {
    if (text === '') return
    if (this.#wasReturn && text !== '\n') this.#out += '\n'
    this.#wasReturn = false
    this.#out += text
  }
}
