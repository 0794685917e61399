// Inputs that grow: a recipe says what is repeated and what stands once, so that the same input can be written at any length, be
// changed by the fuzzer, and be copied from its report into the table of a parser.

/** Characters of a text, and the share of the length that its repetitions fill; 0 stands once. `{n}` in it counts up from 0. */
export interface Part {
  readonly text: string
  readonly share: number
}

export interface Recipe {
  readonly parts: readonly Part[]
}

/** What cannot be said by repetition (nesting with lengths, one half that depends on the other). */
export type Written = (length: number) => string

export type Shape = Recipe | Written

export const KIB = 1024
export const MIB: number = KIB * KIB

export function repeat(text: string, before = '', after = ''): Recipe {
  return recipe([before, 0], [text, 1], [after, 0])
}

/** A JSON list or map, as it stands between `before` and `after`. */
export function list(item: string, before = '[', after = ']'): Recipe {
  return repeat(`${item},`, before, `${item}${after}`)
}

/** As many as fit of the first, then as many of the second, in halves: what opens and what closes, what counts and what is long. */
export function halves(first: string, second: string, before = '', after = ''): Recipe {
  return recipe([before, 0], [first, 1], [second, 1], [after, 0])
}

export function recipe(...parts: readonly (readonly [text: string, share: number])[]): Recipe {
  return { parts: parts.filter(([text]) => text !== '').map(([text, share]) => ({ text, share })) }
}

/** Opened as often as it is closed. */
export function nested(open: string, close: string, middle = ''): Written {
  return (length) => {
    const depth = Math.max(1, Math.floor((length - middle.length) / (open.length + close.length)))
    return open.repeat(depth) + middle + close.repeat(depth)
  }
}

/** About `length` characters. */
export function write(shape: Shape, length: number): string {
  if (typeof shape === 'function') return shape(length)
  let once = 0
  let shares = 0
  for (const { text, share } of shape.parts) {
    if (share === 0) once += text.length
    else shares += share
  }
  const room = Math.max(0, length - once)
  return shape.parts
    .map(({ text, share }) =>
      share === 0 ? text.replaceAll('{n}', '0') : filled(text, Math.floor((room * share) / shares)),
    )
    .join('')
}

function filled(text: string, length: number): string {
  const pieces = text.split('{n}')
  if (pieces.length === 1) return text.repeat(Math.max(1, Math.floor(length / text.length)))
  const all: string[] = []
  for (let n = 0, written = 0; written < length; n++) {
    const piece = pieces.join(String(n))
    written += piece.length
    all.push(piece)
  }
  return all.join('')
}
