// Suggests the known name that an unknown one probably meant. The sender controls the names, so the work is bounded: names and candidates are limited
// in length and number.

/** Kubernetes' own names have at most 63 characters; a comparison costs the product of the two lengths. */
const MAX_LENGTH = 63
/** Candidates compared character by character. */
const MAX_COMPARED = 100
/** Candidates considered at all, by length. */
const MAX_CANDIDATES = 1000

/**
 * The candidate with the fewest edits, if at most a third of the name's length (and at least 1); else ''. If there are very many candidates, only the
 * first are considered.
 */
export function nearestName(name: string, candidates: Iterable<string>): string {
  if (name.length > MAX_LENGTH) return ''
  const wanted = name.toLowerCase()
  let best = ''
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1
  let seen = 0
  let compared = 0
  for (const candidate of candidates) {
    if (seen++ === MAX_CANDIDATES || compared === MAX_COMPARED) break
    // The difference in length is a lower bound of the edits.
    if (candidate.length > MAX_LENGTH || Math.abs(candidate.length - wanted.length) >= fewest) continue
    compared++
    const edits = editDistance(wanted, candidate.toLowerCase(), fewest)
    if (edits < fewest) {
      fewest = edits
      best = candidate
    }
  }
  return best
}

/** Lower-casing can turn one letter into two. */
const ROW_LENGTH = 2 * MAX_LENGTH + 1
/** Rows of the distance table: one comparison ends before the next begins. */
const ROWS = [new Uint8Array(ROW_LENGTH), new Uint8Array(ROW_LENGTH)] as const

/** Levenshtein distance of two names of at most MAX_LENGTH, capped at `enough`. */
function editDistance(a: string, b: string, enough: number): number {
  let [previous, row] = ROWS
  for (let j = 0; j <= b.length; j++) previous[j] = j
  for (let i = 1; i <= a.length; i++) {
    const code = a.charCodeAt(i - 1)
    let least = i
    row[0] = i
    for (let j = 1; j <= b.length; j++) {
      const changed = (previous[j - 1] ?? 0) + (code === b.charCodeAt(j - 1) ? 0 : 1)
      const moved = Math.min(previous[j] ?? 0, row[j - 1] ?? 0) + 1
      const edits = changed < moved ? changed : moved
      row[j] = edits
      if (edits < least) least = edits
    }
    // Row minima never decrease.
    if (least >= enough) return enough
    const done = row
    row = previous
    previous = done
  }
  return previous[b.length] ?? enough
}
