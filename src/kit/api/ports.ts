// What rules need from the world, as interfaces: time, and a log.

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

const quiet = (): void => undefined
/** For commands: what goes wrong is an error of the command, and said once. */
export const SILENT: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** Time as an argument. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number
  /** Monotonic, milliseconds, with fractions. */
  monotonic(): number
}
