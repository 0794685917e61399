// Reads an access log as requests in order of arrival. A file is read twice: first for the requests that ran longer than the reordering
// window, then for all.

import { type LogEntry, parseLogEntry } from '../../gateway/core/replay/log-entry.ts'
import { isLong, type Ordered, StartOrder } from '../../gateway/core/replay/start-order.ts'
import { type LogLine, linesOfFile, numbered } from '../../kit/io/logs/log-lines.ts'

export interface LogReading {
  /** Damaged lines: their count, and the numbers and errors of the first ones. */
  damaged: number
  readonly damagedLines: { readonly line: number; readonly error: string }[]
  /** Lines of the gateway's own log, which may go to the same file. */
  otherLines: number
}

/** Damaged lines that are listed. */
const MAX_NAMED = 20
/** Long requests known in advance; further ones come late. */
const MAX_LONG = 50_000
const LATENCY = /"latencyMs":(\d+)/

/** `-` = standard input, which can be read only once: long requests then come late. `reading` is filled along the way. */
export async function* readLog(
  path: string,
  input: AsyncIterable<string>,
  reading: LogReading,
): AsyncGenerator<Ordered> {
  const isFile = path !== '-'
  const order = new StartOrder(isFile ? await longEntries(path) : undefined)
  for await (const line of isFile ? linesOfFile(path) : numbered(input)) {
    const entry = entryOf(line, reading)
    if (entry !== undefined) yield* order.add(entry)
  }
  yield* order.end()
}

export function emptyReading(): LogReading {
  return { damaged: 0, damagedLines: [], otherLines: 0 }
}

async function longEntries(path: string): Promise<LogEntry[] | undefined> {
  const long: LogEntry[] = []
  for await (const { text } of linesOfFile(path)) {
    // A regular expression costs a tenth of parsing.
    if (text === undefined || !isLong({ latencyMs: Number(LATENCY.exec(text)?.[1] ?? 0) })) continue
    const entry = parseLogEntry(text)
    if ('error' in entry || !isLong(entry)) continue
    if (long.length >= MAX_LONG) return undefined
    long.push(entry)
  }
  return long
}

function entryOf({ number, text }: LogLine, reading: LogReading): LogEntry | undefined {
  if (text?.trim() === '') return undefined
  const entry = text === undefined ? { error: 'too long' } : parseLogEntry(text)
  if (!('error' in entry)) return entry
  if (text !== undefined && isOwnLog(text)) reading.otherLines++
  else {
    reading.damaged++
    if (reading.damagedLines.length < MAX_NAMED) reading.damagedLines.push({ line: number, error: entry.error })
  }
  return undefined
}

/** As written by src/kit/io/logs/log.ts: a level and a message, and no request. */
function isOwnLog(text: string): boolean {
  return text.startsWith('{') && text.endsWith('}') && text.includes('"level":') && !text.includes('"auditID":')
}
