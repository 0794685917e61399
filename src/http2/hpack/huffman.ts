// The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B): decoding only. We send plain octets,
// which costs a few bytes on the wire and saves CPU time on both sides.

/** Length of the code of each octet, in bits, and of EOS (256). The code is canonical: the lengths define it. */
// biome-ignore format: sixteen in a row, as in the RFC
export const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
]
const EOS = 256
const LONGEST = 30

/**
 * The decoder is a state machine over octets: a state is an inner node of the code tree (there are 256), 0 the root. A
 * step gives the octets that the input octet completes, at most two as no code is shorter than 5 bits:
 * first | second << 8 | next state << 16 | count << 24 | failed << 26.
 */
const STEPS: Int32Array = new Int32Array(256 * 256)
const FAILED = 1 << 26
/** 1 for the states in which an input may end: the padding so far is at most 7 bits, all ones (RFC 7541 section 5.2). */
const MAY_END: Uint8Array = new Uint8Array(256)

fillTables(buildTree())

/** Two children for each inner node: another inner node, or ~octet for a leaf. Canonical codes, shortest first. */
function buildTree(): Int16Array {
  const children = new Int16Array(512)
  let nodes = 1
  let code = 0
  for (let length = 1; length <= LONGEST; length++) {
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (CODE_LENGTHS[symbol] !== length) continue
      let node = 0
      for (let bit = length - 1; bit > 0; bit--) {
        const edge = 2 * node + ((code >>> bit) & 1)
        if (children[edge] === 0) children[edge] = nodes++
        node = children[edge] as number
      }
      children[2 * node + (code & 1)] = ~symbol
      code++
    }
    code *= 2
  }
  return children
}

function fillTables(children: Int16Array): void {
  for (let state = 0; state < 256; state++) {
    for (let octet = 0; octet < 256; octet++) STEPS[(state << 8) | octet] = step(children, state, octet)
  }
  let node = 0
  for (let bits = 0; bits < 8; bits++) {
    MAY_END[node] = 1
    node = children[2 * node + 1] as number
  }
}

function step(children: Int16Array, state: number, octet: number): number {
  let node = state
  let emitted = 0
  let count = 0
  for (let bit = 7; bit >= 0; bit--) {
    const next = children[2 * node + ((octet >>> bit) & 1)] as number
    if (next >= 0) {
      node = next
      continue
    }
    if (~next === EOS) return FAILED
    emitted |= ~next << (8 * count++)
    node = 0
  }
  return emitted | (node << 16) | (count << 24)
}

/** Room that `huffmanDecode` needs for an input of this many octets: no code is shorter than 5 bits. */
export function huffmanBound(length: number): number {
  return length * 2 + 2
}

/**
 * Decodes `from` to `to` into `out`, which has `huffmanBound` octets. Returns the decoded length; -1 when the input
 * holds EOS, or its padding is longer than 7 bits or not all ones.
 */
export function huffmanDecode(input: Uint8Array, from: number, to: number, out: Uint8Array): number {
  let state = 0
  let length = 0
  let seen = 0
  for (let i = from; i < to; i++) {
    const found = STEPS[(state << 8) | (input[i] as number)] as number
    out[length] = found
    out[length + 1] = found >>> 8
    length += (found >>> 24) & 3
    state = (found >>> 16) & 0xff
    seen |= found
  }
  return (seen & FAILED) === 0 && MAY_END[state] === 1 ? length : -1
}
