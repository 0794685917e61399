// What looks on at a session beside the splice of its two connections: a recording. One that need not be whole never delays the session.

import type { HeaderList } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { RecordingReport, SessionEnd } from '../../api/session-record.ts'

/** How it acts on the session. */
export interface TappedSession {
  /** It is no longer full. */
  onReady(): void
  /** The session must end. */
  onBroken(): void
}

export interface SessionTap {
  /**
   * Upstream has switched protocols, and nothing has passed yet.
   * @param head of its 101, names in lower case
   * @returns why the session must not begin; undefined = it may
   */
  begin(head: HeaderList, session: TappedSession): Refusal | undefined
  /** Called before the bytes are passed on; must not retain or change them. @returns false = they must not be passed on */
  fromClient(chunk: Buffer): boolean
  toClient(chunk: Buffer): boolean
  /** Nothing more may pass until `onReady`. */
  readonly isFull: boolean
  /** Both connections are closed, or are being closed. */
  end(endedBy: SessionEnd | ''): RecordingReport
}
