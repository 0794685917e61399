// Escapes client-chosen text for terminals, and for JSON that ends up on one: whatever a terminal would interpret, or show as something
// else.

/** Control (C0, C1, DEL), formatting (bidirectional overrides, zero width), line and paragraph separators, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
/** JSON.stringify escapes the first 32 characters, and lone surrogates. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu

/** One line for a terminal: `\x1b`, `\u202e`, `\n`; backslashes are doubled, so that input can't imitate an escape. */
export function printable(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll(UNPRINTABLE, escaped)
}

/** Equivalent JSON that is safe to print on a terminal. */
export function safeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNPRINTABLE_IN_JSON, (found) =>
    Array.from({ length: found.length }, (_, at) => `\\u${hex(found.charCodeAt(at), 4)}`).join(''),
  )
}

/** Terminal columns of printable text: two for wide characters, none for combining ones. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const character of text) width += COMBINING.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

/** Truncated to this width; a longer text ends with `…`. */
export function fitWidth(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  let fitted = ''
  let used = 0
  for (const character of text) {
    used += textWidth(character)
    if (used >= width) break
    fitted += character
  }
  return width < 1 ? '' : `${fitted}…`
}

const ASCII = /^[\x20-\x7e]*$/
const COMBINING = /^\p{M}$/u
const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60\uffe0-\uffe6\u3000-\u303f]$/u

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x100) return code === 0x0a ? '\\n' : code === 0x09 ? '\\t' : `\\x${hex(code, 2)}`
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${hex(code, 4)}`
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
