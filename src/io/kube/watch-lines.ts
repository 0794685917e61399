// The events of a watch in JSON: one document per line (apimachinery/pkg/watch: one {"type","object"} per frame).

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'

export interface WatchEvent {
  readonly type: string
  readonly object: JsonObject
}

/** etcd holds no object of 8 MiB, so a longer line is not a watch event. */
const MAX_LINE_BYTES = 32 * 1024 * 1024
const NEWLINE = 0x0a

export class WatchLines {
  #parts: Buffer[] = []
  #size = 0

  /** The events that `chunk` completes. @throws {Error} when this is not a watch */
  push(chunk: Buffer): WatchEvent[] {
    const events: WatchEvent[] = []
    let start = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start)
      if (end === -1) break
      this.#keep(chunk.subarray(start, end))
      const line = this.#parts.length === 1 ? (this.#parts[0] ?? chunk) : Buffer.concat(this.#parts)
      this.#parts = []
      this.#size = 0
      if (line.length > 0) events.push(readEvent(line.toString('utf8')))
      start = end + 1
    }
    if (start < chunk.length) this.#keep(Buffer.from(chunk.subarray(start)))
    return events
  }

  #keep(part: Buffer): void {
    this.#size += part.length
    if (this.#size > MAX_LINE_BYTES) throw new Error('the watch sent an event that is too large')
    this.#parts.push(part)
  }
}

function readEvent(line: string): WatchEvent {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    value = undefined
  }
  if (isRecord(value) && typeof value['type'] === 'string' && isRecord(value['object'])) {
    return { type: value['type'], object: value['object'] }
  }
  throw new Error('the watch sent something that is not an event')
}
