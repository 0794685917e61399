// Durations in Go's notation: `30s`, `1m30s`, `500ms`, `1.5h` (Go: time.ParseDuration).

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy

/** Milliseconds, or undefined if the text is not a duration. `0` needs no unit; there is no unit for days. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1
  const rest = text.startsWith('-') || text.startsWith('+') ? text.slice(1) : text
  if (rest === '0') return 0
  let total = 0
  let end = 0
  for (const part of rest.matchAll(PART)) {
    total += Number(part[1]) * (UNITS.get(part[2] ?? '') ?? Number.NaN)
    end = part.index + part[0].length
  }
  return end === 0 || end !== rest.length ? undefined : sign * total
}

/** The shortest text in hours, minutes and seconds: `1m30s`, `500ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms === 0) return '0s'
  if (ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor((ms % 3_600_000) / 60_000)
  const seconds = (ms % 60_000) / 1000
  return `${hours > 0 ? `${hours}h` : ''}${minutes > 0 ? `${minutes}m` : ''}${seconds > 0 ? `${seconds}s` : ''}`
}
