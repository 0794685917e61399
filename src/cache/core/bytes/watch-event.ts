// The parts of one line of a watch.

import type { EventType } from './answers.ts'
import { malformed } from './malformed.ts'
import { CLOSE_MAP } from './skip-json.ts'

export interface EventBytes {
  readonly type: EventType
  /** A view of the line. Checked where the object is read. */
  readonly object: Buffer
}

const HEADS: readonly (readonly [EventType, Buffer])[] = (
  ['MODIFIED', 'ADDED', 'DELETED', 'BOOKMARK', 'ERROR'] as const
).map((type) => [type, Buffer.from(`{"type":"${type}","object":`)])
const NEWLINE = 0x0a

/**
 * @param line as kube-apiserver writes it, with its line feed or without
 * @throws {MalformedError}
 */
export function readEvent(line: Buffer): EventBytes {
  const end = line.at(-1) === NEWLINE ? line.length - 2 : line.length - 1
  for (const [type, head] of HEADS) {
    if (end < head.length || !line.subarray(0, head.length).equals(head)) continue
    if (line[end] !== CLOSE_MAP) break
    return { type, object: line.subarray(head.length, end) }
  }
  throw malformed('it is not an event of a watch')
}
