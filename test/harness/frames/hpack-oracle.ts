// HPACK written a second time, as plainly as possible, to check src/http2/ against: strings of bits, arrays and regular
// expressions. Only the static table and the code lengths are shared; the vectors of RFC 7541 and node:http2 check those.

import { CODE_LENGTHS } from '../../../src/http2/hpack/huffman.ts'
import { STATIC_NAMES, STATIC_VALUES } from '../../../src/http2/hpack/static.ts'

const EOS = 256
const CODES: readonly string[] = canonicalCodes()
const SYMBOLS: ReadonlyMap<string, number> = new Map(CODES.map((bits, symbol) => [bits, symbol]))

function canonicalCodes(): string[] {
  const codes: string[] = []
  let code = 0
  for (let length = 1; length <= 30; length++) {
    for (const [symbol, bits] of CODE_LENGTHS.entries()) {
      if (bits === length) codes[symbol] = (code++).toString(2).padStart(length, '0')
    }
    code *= 2
  }
  return codes
}

/** The Huffman code of latin1 `text`, padded. */
export function huffmanEncode(text: string): Buffer {
  const bits = [...Buffer.from(text, 'latin1')].map((octet) => CODES[octet]).join('')
  return fromBits(bits + '1'.repeat((8 - (bits.length % 8)) % 8))
}

export function fromBits(bits: string): Buffer {
  return Buffer.from(bits.match(/.{8}/g)?.map((octet) => Number.parseInt(octet, 2)) ?? [])
}

/** undefined when the code is wrong. */
export function plainHuffmanDecode(octets: Uint8Array): Buffer | undefined {
  const found: number[] = []
  let code = ''
  for (const bit of [...octets].map((octet) => octet.toString(2).padStart(8, '0')).join('')) {
    code += bit
    const symbol = SYMBOLS.get(code)
    if (symbol === EOS) return undefined
    if (symbol === undefined) continue
    found.push(symbol)
    code = ''
  }
  return code.length < 8 && !code.includes('0') ? Buffer.from(found) : undefined
}

export interface Plain {
  outcome: 'decoded' | 'compression' | 'too large' | 'malformed'
  fields: string[]
  contentLength: number
}

class Broken extends Error {}

/** The oracle: decode blocks in order, as HpackDecoder does. */
export class PlainDecoder {
  readonly #limit: number
  #maxBytes = 4096
  /** Newest first. */
  #table: [name: string, value: string][] = []
  #block: Uint8Array = new Uint8Array(0)
  #at = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  decode(block: Uint8Array, maxListBytes: number): Plain {
    this.#block = block
    this.#at = 0
    const pairs: [string, string][] = []
    try {
      while (this.#at < block.length) {
        const first = block[this.#at] ?? 0
        if (first >= 0x80) pairs.push(this.#entry(this.#integer(7)))
        else if (first >= 0x40) pairs.push(this.#insert(this.#literal(6)))
        else if (first >= 0x20 && pairs.length === 0) this.#resize(this.#integer(5))
        else if (first >= 0x20) throw new Broken()
        else pairs.push(this.#literal(4))
      }
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      return { outcome: 'compression', fields: [], contentLength: -1 }
    }
    const bytes = pairs.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0)
    if (malformed(pairs)) return { outcome: 'malformed', fields: [], contentLength: -1 }
    if (bytes > maxListBytes || pairs.length > 4000) return { outcome: 'too large', fields: [], contentLength: -1 }
    return { outcome: 'decoded', fields: pairs.flat(), contentLength: contentLength(pairs) }
  }

  #literal(prefix: number): [string, string] {
    const index = this.#integer(prefix)
    return [index === 0 ? this.#string() : this.#entry(index)[0], this.#string()]
  }

  #entry(index: number): [string, string] {
    const found = index < 62 ? [STATIC_NAMES[index], STATIC_VALUES[index]] : this.#table[index - 62]
    if (index === 0 || found?.[0] === undefined || found[1] === undefined) throw new Broken()
    return [found[0], found[1]]
  }

  #insert(entry: [string, string]): [string, string] {
    this.#table.unshift(entry)
    this.#evict()
    return entry
  }

  #resize(bytes: number): void {
    if (bytes > this.#limit) throw new Broken()
    this.#maxBytes = bytes
    this.#evict()
  }

  #evict(): void {
    const bytes = () => this.#table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0)
    while (bytes() > this.#maxBytes) this.#table.pop()
  }

  #string(): string {
    const huffman = (this.#block[this.#at] ?? 0) >= 0x80
    const length = this.#integer(7)
    const octets = this.#block.subarray(this.#at, this.#at + length)
    if (octets.length < length) throw new Broken()
    this.#at += length
    const decoded = huffman ? plainHuffmanDecode(octets) : Buffer.from(octets)
    if (decoded === undefined) throw new Broken()
    return decoded.toString('latin1')
  }

  #integer(prefix: number): number {
    const octet = this.#block[this.#at++]
    if (octet === undefined) throw new Broken()
    const full = 2 ** prefix - 1
    let value = octet & full
    if (value < full) return value
    for (let i = 0; i < 5; i++) {
      const next = this.#block[this.#at++]
      if (next === undefined) throw new Broken()
      value += (next & 0x7f) * 128 ** i
      if (next < 0x80 && value <= 2 ** 28) return value
    }
    throw new Broken()
  }
}

function malformed(pairs: readonly [string, string][]): boolean {
  const seen = new Set<string>()
  let regular = false
  for (const [name, value] of pairs) {
    if (name.startsWith(':')) {
      if (!/^:(method|path|authority|scheme|protocol|status)$/.test(name) || regular || seen.has(name)) return true
      seen.add(name)
    } else {
      regular = true
      if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) return true
      if (/^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade)$/.test(name)) return true
      if (name === 'te' && !/^trailers$/i.test(value)) return true
    }
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value) || /^[\t ]|[\t ]$/.test(value)) return true
  }
  return false
}

function contentLength(pairs: readonly [string, string][]): number {
  const values = pairs.filter(([name]) => name === 'content-length').map(([, value]) => value)
  if (values.length === 0) return -1
  if (!values.every((value) => /^[0-9]{1,15}$/.test(value) && Number(value) === Number(values[0]))) return -2
  return Number(values[0])
}
