// Changes the log level at run time, for the main thread and all gateway threads; it reverts to the configured one by itself.

import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { formatDuration, parseDuration } from '../../../kit/core/text/duration.ts'
import { type LeveledLogger, LOG_LEVELS, type LogLevel } from '../../../kit/io/logs/log.ts'
import { type AdminRoute, jsonResponse, PLAIN_TEXT } from '../../io/server/route.ts'
import { askOthers, type Replicas } from '../replicas/replicas.ts'

/** The level in force. */
interface LogLevelState {
  readonly level: LogLevel
  /** RFC 3339: when it reverts to the configured one; undefined = that is in force. */
  readonly until?: string
}

interface LogLevelDeps {
  /** undefined = cannot be changed: a test's logger. */
  readonly main: LeveledLogger | undefined
  /** The configured level. */
  readonly usual: LogLevel
  /** For all gateway threads, including later ones. */
  setThreads(level: LogLevel): void
  readonly log: Logger
  /** Wall clock, milliseconds since the epoch. */
  now(): number
}

const PATH = '/debug/log-level'
const MAX_BODY_BYTES = 4096
const DEFAULT_MS = 10 * 60_000
const LONGEST_MS = 24 * 3_600_000

export class LogLevels {
  readonly #deps: LogLevelDeps
  #back: NodeJS.Timeout | undefined
  #untilMs = 0
  #level: LogLevel

  constructor(deps: LogLevelDeps) {
    this.#deps = deps
    this.#level = deps.usual
  }

  get state(): LogLevelState {
    return this.#back === undefined
      ? { level: this.#level }
      : { level: this.#level, until: new Date(this.#untilMs).toISOString() }
  }

  set(level: LogLevel, forMs: number): void {
    this.stop()
    this.#put(level)
    if (level === this.#deps.usual) return
    this.#untilMs = this.#deps.now() + forMs
    this.#back = setTimeout(() => {
      this.#back = undefined
      this.#put(this.#deps.usual)
    }, forMs).unref()
  }

  stop(): void {
    clearTimeout(this.#back)
    this.#back = undefined
  }

  #put(level: LogLevel): void {
    const { main, setThreads, log } = this.#deps
    const before = this.#level
    this.#level = level
    if (main !== undefined) main.level = level
    setThreads(level)
    // At a level that is always shown.
    if (level !== before) log.warn('the log level has changed', { from: before, to: level })
  }
}

export function logLevelRoutes(levels: LogLevels, replicas: Replicas): readonly AdminRoute[] {
  const common = { path: PATH, access: 'admin', replicas: true } as const
  const answered = async (request: PlainRequest, body?: string): Promise<PlainResponse> => {
    const own = levels.state
    const all = request.query.get('replicas') === 'all'
    if (!all) return jsonResponse(own)
    const { parts, missing } = await askOthers(replicas, request, Object, body)
    const by = [{ replica: replicas.ownName, part: own }, ...parts]
    return jsonResponse({ ...own, replicas: by.map(({ replica, part }) => ({ replica, ...part })), missing })
  }
  return [
    { ...common, method: 'GET', answer: (request) => answered(request) },
    {
      ...common,
      method: 'PUT',
      async answer(request) {
        const body = await request.readBody(MAX_BODY_BYTES)
        const wanted = readWanted(body)
        if (typeof wanted === 'string') return { code: 400, contentType: PLAIN_TEXT, body: `${wanted}\n` }
        levels.set(wanted.level, wanted.forMs)
        return answered(request, body)
      },
    },
  ]
}

/** Returns an error text if it is invalid. */
function readWanted(body: string): { readonly level: LogLevel; readonly forMs: number } | string {
  let given: unknown
  try {
    given = JSON.parse(body)
  } catch {
    return 'the body is not JSON; send {"level":"debug","for":"10m"}'
  }
  const { level: named, for: text = formatDuration(DEFAULT_MS) } = Object(given) as { level?: unknown; for?: unknown }
  const level = LOG_LEVELS.find((one) => one === named)
  if (level === undefined) return `level must be one of ${LOG_LEVELS.join(', ')}`
  const forMs = typeof text === 'string' ? parseDuration(text) : undefined
  if (forMs === undefined || forMs <= 0 || forMs > LONGEST_MS) return 'for is not a duration of up to 24h: 10m'
  return { level, forMs }
}
