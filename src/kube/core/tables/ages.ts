// Times as Tables show them: how long ago they are.

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** RFC 3339 as parsed by Go's time.RFC3339: seconds are required, fractions and an offset allowed. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/**
 * Age of `timestamp` as `kubectl get` shows it (apimachinery/pkg/util/duration/duration.go, HumanDuration): `5m12s`; `<unknown>` if it is
 * missing, `<invalid>` if it is not a time.
 */
export function ageOf(timestamp: unknown, nowMs: number): string {
  if (timestamp === undefined || timestamp === null || timestamp === '') return '<unknown>'
  const ms = parseRfc3339(timestamp)
  return ms === undefined ? '<invalid>' : humanDuration(nowMs - ms)
}

/** Milliseconds since the epoch; undefined = not an RFC 3339 time. */
export function parseRfc3339(timestamp: unknown): number | undefined {
  if (typeof timestamp !== 'string' || !RFC3339.test(timestamp)) return undefined
  const ms = Date.parse(timestamp)
  return Number.isNaN(ms) ? undefined : ms
}

/** At most two units, the finer one only where it matters. Slightly in the future is now; further ahead is `<invalid>`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / SECOND)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(ms / MINUTE)
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(ms / HOUR)
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 24 * 8) return twoUnits(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  return years < 8 ? twoUnits(years, 'y', days % 365, 'd') : `${years}y`
}

function twoUnits(coarse: number, coarseUnit: string, fine: number, fineUnit: string): string {
  return fine === 0 ? `${coarse}${coarseUnit}` : `${coarse}${coarseUnit}${fine}${fineUnit}`
}
