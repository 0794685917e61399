// Formats numbers, times and shares for people, with equal width in columns (tabular figures).

const THOUSAND = 1000
const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Three significant figures: `0.42`, `17.3`, `1.24k`. */
export function count(value: number): string {
  if (value === 0) return '0'
  if (value < 0.01) return '<0.01'
  if (value < 10) return value.toFixed(value < 1 ? 2 : 1)
  if (value < THOUSAND) return value.toFixed(0)
  if (value < THOUSAND * THOUSAND) return `${figures(value / THOUSAND)}k`
  return `${figures(value / THOUSAND / THOUSAND)}M`
}

/** `512 B`, `17.3 KiB`, `1.24k MiB`. */
export function byteCount(value: number): string {
  if (value < 1024) return `${value} B`
  return value < 1024 ** 2 ? `${count(value / 1024)} KiB` : `${count(value / 1024 ** 2)} MiB`
}

/** A whole number. */
export function whole(value: number): string {
  return value.toLocaleString('en')
}

function figures(value: number): string {
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)
}

/** From 0 to 1: `0 %`, `<0.1 %`, `2.4 %`. */
export function share(ratio: number): string {
  const percent = ratio * 100
  if (percent === 0) return '0 %'
  if (percent < 0.1) return '<0.1 %'
  return `${percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`
}

/** @param ms null = no measurement */
export function latency(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < THOUSAND) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
  return `${figures(ms / THOUSAND)} s`
}

/** A length of time in two units: `4m 20s`. */
export function roundedDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / THOUSAND))
  if (seconds < MINUTE) return `${seconds}s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m ${pad(seconds % MINUTE)}s`
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)}h ${pad(Math.floor((seconds % HOUR) / MINUTE))}m`
  return `${Math.floor(seconds / DAY)}d ${Math.floor((seconds % DAY) / HOUR)}h`
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}

/** Local time of day. */
export function clock(ms: number): string {
  const at = new Date(ms)
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`
}

/** Unambiguous, for titles. */
export function instant(ms: number): string {
  return new Date(ms).toISOString()
}

export function plural(number: number, one: string, many: string = `${one}s`): string {
  return `${whole(number)} ${number === 1 ? one : many}`
}
