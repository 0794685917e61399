// HTTP/1.1 of an attacker: bytes that were made before, and a reader that only counts status lines.

import type { Target } from '../attack.ts'
import { attackConnections, type ConnectionOptionsOfAttack, type Wire } from './connections.ts'

export interface Http1Conversation {
  next?(): Buffer | undefined
  /** So many answers have come. */
  answered?(count: number): void
}

const STATUS = /HTTP\/1\.1 (\d{3})/g
/** The longest status line's beginning that may be cut by the end of a piece. */
const OVERLAP = 'HTTP/1.1 20'.length

export async function attackHttp1(
  target: Target,
  signal: AbortSignal,
  options: ConnectionOptionsOfAttack,
  talk: (wire: Wire) => Http1Conversation,
): Promise<void> {
  await attackConnections(target, signal, { alpn: 'http/1.1', ...options }, (wire) => {
    const conversation = talk(wire)
    let rest = ''
    return {
      next: () => conversation.next?.(),
      receive(bytes) {
        const text = rest + bytes.toString('latin1')
        let count = 0
        let behind = 0
        for (const match of text.matchAll(STATUS)) {
          target.answers.count(match[1] ?? '')
          behind = match.index + match[0].length
          count++
        }
        rest = text.slice(Math.max(behind, text.length - OVERLAP))
        if (count > 0) conversation.answered?.(count)
      },
    }
  })
}

/** A request head with its empty line. */
export function head1(target: Target, line: string, ...fields: readonly string[]): Buffer {
  return Buffer.from([`${line} HTTP/1.1`, `Host: ${target.host}`, ...fields, '', ''].join('\r\n'), 'latin1')
}
