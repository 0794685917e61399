// Which known name somebody may have meant by an unknown one.

/** Longer ones are no slips of the pen, and take the square of their length to compare. */
const MAX_LENGTH = 256

/** The candidate with the fewest edits, when that is at most a third of the name's length (and 1 at least); else ''. */
export function nearestName(name: string, candidates: Iterable<string>): string {
  if (name.length > MAX_LENGTH) return ''
  const wanted = name.toLowerCase()
  let best = ''
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    // As many edits as the lengths differ by are needed anyway.
    if (Math.abs(candidate.length - wanted.length) >= fewest) continue
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
