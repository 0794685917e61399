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

/** Each line has these fields, too. */
export function logWith(log: Logger, added: Readonly<Record<string, unknown>>): Logger {
  return {
    debug: (message, fields) => log.debug(message, { ...added, ...fields }),
    info: (message, fields) => log.info(message, { ...added, ...fields }),
    warn: (message, fields) => log.warn(message, { ...added, ...fields }),
    error: (message, fields) => log.error(message, { ...added, ...fields }),
  }
}

/** Time as an argument. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number
  /** Monotonic, milliseconds, with fractions. */
  monotonic(): number
}
