// Octets to strings and back, one character for each octet. A native call costs 50 to 100 ns whatever the length, so short
// strings are made without it (bench/micro/hpack.ts).

/** Methods of every Buffer that @types/node doesn't list: toString and write call them for 'latin1'. */
interface Latin1Buffer extends Uint8Array {
  latin1Slice(from: number, to: number): string
  latin1Write(text: string, at: number, length: number): number
}

/** Longest text that is written by a loop. */
const LOOP_LIMIT = 16

/** Only called with octets within bounds: this type avoids eight casts a line. */
const chars = String.fromCharCode as (...octets: (number | undefined)[]) => string

/** Copies: the string doesn't keep `octets`, which is a Buffer, alive. */
export function latin1Text(octets: Uint8Array, from: number, to: number): string {
  const o = octets
  const i = from
  switch (to - from) {
    case 0:
      return ''
    case 1:
      return chars(o[i])
    case 2:
      return chars(o[i], o[i + 1])
    case 3:
      return chars(o[i], o[i + 1], o[i + 2])
    case 4:
      return chars(o[i], o[i + 1], o[i + 2], o[i + 3])
    case 5:
      return chars(o[i], o[i + 1], o[i + 2], o[i + 3], o[i + 4])
    case 6:
      return chars(o[i], o[i + 1], o[i + 2], o[i + 3], o[i + 4], o[i + 5])
    case 7:
      return chars(o[i], o[i + 1], o[i + 2], o[i + 3], o[i + 4], o[i + 5], o[i + 6])
    case 8:
      return chars(o[i], o[i + 1], o[i + 2], o[i + 3], o[i + 4], o[i + 5], o[i + 6], o[i + 7])
    default:
      return (octets as Latin1Buffer).latin1Slice(from, to)
  }
}

/** Writes `text` into `octets`, which is a Buffer with room for it; returns the offset behind it. */
export function writeLatin1(octets: Uint8Array, at: number, text: string): number {
  const length = text.length
  if (length > LOOP_LIMIT) (octets as Latin1Buffer).latin1Write(text, at, length)
  else for (let i = 0; i < length; i++) octets[at + i] = text.charCodeAt(i)
  return at + length
}
