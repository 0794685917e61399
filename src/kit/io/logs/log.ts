// The process log: JSON lines with `ts` (RFC 3339), `level`, `msg` and the event's fields, without secrets.

import { pino } from 'pino'
import type { Logger } from '../../api/ports.ts'
import { redact, redactText } from '../../core/text/redact.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

interface LoggerOptions {
  readonly level: LogLevel
  /** Receives lines; `openLineWriter(2)` for stderr. */
  readonly destination: { write(line: string): void }
}

/** A logger whose level may change. */
export interface LeveledLogger extends Logger {
  level: LogLevel
}

/** Errors in fields are logged as their message; at level debug with their stack. */
export function createLogger(options: LoggerOptions): LeveledLogger {
  // pino ends each line itself.
  const lines = { write: (line: string): void => options.destination.write(line.trimEnd()) }
  let level = options.level
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    lines,
  )
  const fieldsOf = (fields: Record<string, unknown> | undefined): object => describeFields(fields, level === 'debug')
  return {
    get level() {
      return level
    },
    set level(next) {
      level = next
      log.level = next
    },
    debug: (message, fields) => {
      if (level === 'debug') log.debug(fieldsOf(fields), redactText(message))
    },
    info: (message, fields) => log.info(fieldsOf(fields), redactText(message)),
    warn: (message, fields) => log.warn(fieldsOf(fields), redactText(message)),
    error: (message, fields) => log.error(fieldsOf(fields), redactText(message)),
  }
}

function describeFields(fields: Record<string, unknown> | undefined, withStacks: boolean): object {
  if (fields === undefined) return {}
  const described: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    // `level`, `ts` and `msg` are reserved for the line itself.
    const key = name === 'level' || name === 'ts' || name === 'msg' ? `${name}_` : name
    described[key] = value
    if (withStacks && value instanceof Error) described[`${key}Stack`] = value.stack
  }
  return Object(redact(described))
}
