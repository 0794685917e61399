// Which known name somebody may have meant by an unknown one. Whoever sends the names must not be able to make this long: names
// and candidates are few and short, whatever comes.

/** Kubernetes' own names have at most 63 characters; a comparison takes the product of the two lengths. */
const MAX_LENGTH = 63
/** Candidates that are compared character by character. */
const MAX_COMPARED = 100
/** Candidates that are looked at: their lengths. */
const MAX_CANDIDATES = 1000

/**
 * The candidate with the fewest edits, when that is at most a third of the name's length (and 1 at least); else ''. Of very many
 * candidates only the first are looked at.
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
    // As many edits as the lengths differ by are needed anyway.
    if (candidate.length > MAX_LENGTH || Math.abs(candidate.length - wanted.length) >= fewest) continue
    compared++
    const edits = editDistance(wanted, candidate.toLowerCase())
    if (edits < fewest) {
      fewest = edits
      best = candidate
    }
  }
  return best
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(changed, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
