// Joins what is sent into pieces of a size that streams like.

/** One write's worth. */
const PIECE_BYTES = 32 * 1024

/** @param next the next part; undefined = there is none @returns undefined = there was none */
export function pieceOf(next: () => Buffer | undefined): Buffer | undefined {
  const first = next()
  if (first === undefined || first.length >= PIECE_BYTES) return first
  const parts = [first]
  let bytes = first.length
  while (bytes < PIECE_BYTES) {
    const part = next()
    if (part === undefined) break
    parts.push(part)
    bytes += part.length
  }
  return parts.length === 1 ? first : Buffer.concat(parts, bytes)
}
