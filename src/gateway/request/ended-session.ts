// Tokens whose session has been ended at their OpenID provider.

import type { Refusal } from '../../kit/core/refusal/refusal.ts'
import { refuseEnded } from '../core/admission/steps.ts'
import type { Gateway } from './exchange/gateway.ts'
import type { Authenticated } from './exchange/identity.ts'

/** Checked where revocations are: after cached results and waits. */
export function refuseEndedSession(
  { endedSessions }: Pick<Gateway, 'endedSessions'>,
  { origin }: Pick<Authenticated, 'origin'>,
): Refusal | undefined {
  const session = origin?.session
  return session !== undefined && endedSessions.hasEnded(session) ? refuseEnded() : undefined
}
