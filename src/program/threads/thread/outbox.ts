// Unsolicited reports of a gateway thread to the main thread: log lines, and endpoints to be checked soon. One message per turn of the event
// loop. If the main thread does not keep up, lines are dropped, with those of the access and audit log counted; memory does not grow.

import type { Logger } from '../../../kit/api/ports.ts'
import { LOG_LEVELS, type LogLevel } from '../../../kit/io/logs/log.ts'
import type { BrokenEndpoint, LogCall, ThreadLines } from '../messages.ts'

/** Approximate characters that may be in transit. */
const MAX_UNDERWAY = 8 * 1024 * 1024
/** Size of a log call in characters, besides its texts. */
const LOG_CALL_SIZE = 200

export class ThreadOutbox {
  readonly log: Logger
  readonly #post: (lines: ThreadLines) => void
  readonly #taken: Int32Array<SharedArrayBuffer>
  /** Modulo 2^32, like `#taken`. */
  #sent = 0
  #log: LogCall[] = []
  #access: string[] = []
  #audit: string[] = []
  #broken: BrokenEndpoint[] = []
  readonly #refusing = new Set<string>()
  readonly #awaited = new Set<string>()
  #size = 0
  /** Index of the lowest logged level. */
  #least: number
  #scheduled = false
  #accessDropped = 0
  #auditDropped = 0

  constructor(post: (lines: ThreadLines) => void, taken: Int32Array<SharedArrayBuffer>, level: LogLevel) {
    this.#post = post
    this.#taken = taken
    this.#least = LOG_LEVELS.indexOf(level)
    const logAs =
      (as: LogLevel) =>
      (message: string, fields?: Record<string, unknown>): void => {
        if (LOG_LEVELS.indexOf(as) >= this.#least) this.#addLog({ level: as, message, fields })
      }
    this.log = { debug: logAs('debug'), info: logAs('info'), warn: logAs('warn'), error: logAs('error') }
  }

  /** The lowest logged level. */
  get level(): LogLevel {
    return LOG_LEVELS[this.#least] ?? 'info'
  }

  set level(level: LogLevel) {
    this.#least = LOG_LEVELS.indexOf(level)
  }

  /** Lines dropped so far. */
  get accessDropped(): number {
    return this.#accessDropped
  }

  get auditDropped(): number {
    return this.#auditDropped
  }

  access(line: string): void {
    if (this.#takes(line.length)) this.#access.push(line)
    else this.#accessDropped++
  }

  audit(line: string): void {
    if (this.#takes(line.length)) this.#audit.push(line)
    else this.#auditDropped++
  }

  broke(cluster: string, endpoint: string): void {
    if (this.#broken.some((one) => one.cluster === cluster && one.endpoint === endpoint)) return
    this.#broken.push({ cluster, endpoint })
    this.#schedule()
  }

  refused(cluster: string): void {
    this.#refusing.add(cluster)
    this.#schedule()
  }

  awaitsCheck(cluster: string): void {
    this.#awaited.add(cluster)
    this.#schedule()
  }

  #addLog(call: LogCall): void {
    if (this.#takes(sizeOf(call))) this.#log.push(call)
  }

  #takes(size: number): boolean {
    const underway = (this.#sent - Atomics.load(this.#taken, 0)) | 0
    if (underway + this.#size + size > MAX_UNDERWAY) return false
    this.#size += size
    this.#schedule()
    return true
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.flush())
  }

  flush(): void {
    this.#scheduled = false
    if (this.#size === 0 && this.#broken.length + this.#refusing.size + this.#awaited.size === 0) return
    const [refusing, awaited] = [[...this.#refusing], [...this.#awaited]]
    this.#refusing.clear()
    this.#awaited.clear()
    const lines = {
      access: this.#access,
      audit: this.#audit,
      broken: this.#broken,
      refusing,
      awaited,
      size: this.#size,
    }
    const log = this.#log
    this.#log = []
    this.#access = []
    this.#audit = []
    this.#broken = []
    this.#sent = (this.#sent + this.#size) | 0
    this.#size = 0
    try {
      this.#post({ ...lines, log })
    } catch {
      // A field that cannot be cloned.
      this.#post({ ...lines, log: log.map(plain) })
    }
  }
}

/** Approximate characters: an error may quote everything a peer sent. */
function sizeOf({ message, fields = {} }: LogCall): number {
  let size = LOG_CALL_SIZE + message.length
  for (const value of Object.values(fields)) {
    if (typeof value === 'string') size += value.length
    else if (value instanceof Error) size += value.message.length + (value.stack?.length ?? 0)
  }
  return size
}

function plain({ level, message, fields }: LogCall): LogCall {
  const texts = Object.entries(fields ?? {}).map(([name, value]) => [
    name,
    value instanceof Error ? value : String(value),
  ])
  return { level, message, fields: Object.fromEntries(texts) }
}
