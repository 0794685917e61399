// The messages of a logout between the main thread and the gateway threads.

import { Question } from '../../../kit/core/topics/questions.ts'
import { Topic } from '../../../kit/core/topics/topics.ts'
import type { EndedSession, LogoutOutcome } from '../../api/token-session.ts'

export interface SessionChange {
  readonly id: string
  /** undefined = it is forgotten. */
  readonly ended: EndedSession | undefined
}

/** To all gateway threads. */
export const SESSION_ENDED = new Topic<SessionChange>('ended-session')
/** To the main thread: a provider has told of this logout, for each source of its keys. */
export const END_SESSIONS = new Question<readonly EndedSession[], LogoutOutcome>('end-sessions')
