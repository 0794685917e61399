// CRC-32C (Castagnoli, RFC 3309 appendix): byte by byte, so that a long header need not be kept.

/** Reflected. */
const POLYNOMIAL = 0x82f63b78
const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1
  return rest
})

/** What `crc32cAdd` begins with. */
export const CRC32C_BEGIN = 0xffffffff

export function crc32cAdd(state: number, byte: number): number {
  return (state >>> 8) ^ (TABLE[(state ^ byte) & 0xff] ?? 0)
}

/** As an unsigned number. */
export function crc32cEnd(state: number): number {
  return (state ^ 0xffffffff) >>> 0
}
