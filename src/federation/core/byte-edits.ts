// Changes of some places of a text that stays as it is otherwise.

import type { ByteRange } from '../../cache/core/bytes/object-facts.ts'

/** What becomes of [start, end) of the bytes. */
export interface ByteEdit extends ByteRange {
  readonly text: string
}

/** @param edits in the order of the bytes, none inside of another */
export function edited(bytes: Buffer, edits: readonly ByteEdit[]): Buffer {
  // There may be a hundred thousand of them: no view of memory for each.
  const written = Buffer.allocUnsafe(bytes.length + growthBefore(edits, bytes.length))
  let [to, from] = [0, 0]
  for (const { start, end, text } of edits) {
    to += bytes.copy(written, to, from, start)
    to += written.write(text, to)
    from = end
  }
  bytes.copy(written, to, from)
  return written
}

/** How far what is at `at` moves. */
export function growthBefore(edits: readonly ByteEdit[], at: number): number {
  let growth = 0
  for (const { start, end, text } of edits) if (end <= at) growth += Buffer.byteLength(text) - (end - start)
  return growth
}

/**
 * Takes items out of a list or map, with their commas.
 * @param items all of them, from the beginning of a key or value to the end of a value
 * @param isCut by index
 */
export function cutItems(items: readonly ByteRange[], isCut: (index: number) => boolean): readonly ByteEdit[] {
  const edits: ByteEdit[] = []
  let kept = items.length
  while (kept > 0 && isCut(kept - 1)) kept--
  for (let index = 0; index < kept; index++) {
    const [item, next] = [items[index], items[index + 1]]
    if (item !== undefined && next !== undefined && isCut(index))
      edits.push({ start: item.start, end: next.start, text: '' })
  }
  // Those at the end, with the comma in front of them.
  const [first, last] = [items[kept], items.at(-1)]
  if (first !== undefined && last !== undefined)
    edits.push({ start: items[kept - 1]?.end ?? first.start, end: last.end, text: '' })
  return edits
}
