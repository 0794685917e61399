// metav1.MicroTime as numbers: whole microseconds since the epoch, which a JS number holds exactly until the year 2255.

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

/**
 * Microseconds since the epoch; finer digits are truncated.
 * @returns NaN for everything that is not an RFC 3339 time, and for times too far away to be exact, such as Go's zero time
 */
export function parseMicros(text: string): number {
  const match = RFC3339.exec(text)
  if (match === null) return Number.NaN
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return Number.NaN
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return Number.NaN
  // Date.UTC maps years below 100 to the last century, and overflowing days to the next month.
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return Number.NaN
  const offsetMinutes = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1)
  const minutes = Number(hour) * 60 + Number(minute) - offsetMinutes
  const seconds = date.getTime() / 1000 + minutes * 60 + Number(second)
  const micros = seconds * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, '0'))
  return Number.isSafeInteger(micros) ? micros : Number.NaN
}

/**
 * The format of metav1.MicroTime: `2026-01-02T03:04:05.000006Z`.
 * @throws RangeError if it is not an exact whole number of microseconds
 */
export function formatMicros(micros: number): string {
  if (!Number.isSafeInteger(micros)) throw new RangeError(`not a time in microseconds: ${micros}`)
  const millis = Math.floor(micros / 1000)
  const rest = micros - millis * 1000
  return `${new Date(millis).toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`
}
