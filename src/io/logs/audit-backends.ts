// The backends of the audit log: the file, with events truncated or not, and the webhook.

import { truncateEvent } from '../../core/audit/truncation.ts'
import type { LineWriter } from './line-writer.ts'

/** Events that stay too large are dropped. @param maxBytes of one event */
export function truncatingWriter(writer: LineWriter, maxBytes: number): LineWriter {
  let tooLarge = 0
  return {
    write: (line) => {
      const event = truncateEvent(line, maxBytes)
      if (event === undefined) tooLarge++
      else writer.write(event)
    },
    dropped: () => writer.dropped() + tooLarge,
    flush: () => writer.flush(),
    close: () => writer.close(),
  }
}

/** Each takes every event. What the webhook loses is not among what is dropped: it has its own metric. */
export function auditBackends(file: LineWriter | undefined, webhook: LineWriter | undefined): LineWriter | undefined {
  if (webhook === undefined) return file
  const all = file === undefined ? [webhook] : [file, webhook]
  return {
    write: (line) => {
      for (const one of all) one.write(line)
    },
    dropped: () => file?.dropped() ?? 0,
    flush: async () => {
      await Promise.all(all.map((one) => one.flush()))
    },
    close: async () => {
      await Promise.all(all.map((one) => one.close()))
    },
  }
}
