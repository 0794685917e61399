// Credentials that fail, counted by the address that they come from. An address that is blocked gets 429 instead of 401 for a wrong
// credential; valid ones are verified in this process, which is cheap, and served as ever.

import { tooManyFailuresMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { readBearerToken } from '../../gateway/core/request/websocket-token.ts'
import type { HeaderList, Peer } from '../../kit/api/stream.ts'
import { type StatusError, statusError } from '../../kube/api/status.ts'

/** Failures of addresses, as known in this process. */
export interface FailureCounts {
  /** A credential of this address was not accepted. @param credential what it is known by; one that comes again counts once */
  failed(source: string, credential: string): void
  /** For how long the address is blocked, in whole seconds, spread a little; 0 = it is not. */
  waitSeconds(source: string): number
}

/** Counts the credential, and says how it is refused. */
export function refuseCredential(
  failures: FailureCounts | undefined,
  { addressCharge, certificate, id }: Peer,
  head: HeaderList,
): StatusError {
  if (failures !== undefined) {
    const { source } = addressCharge
    const bearer = readBearerToken(head)
    // A certificate is that of its connection, and of all of its requests.
    const isToken = bearer.kind === 'token' && certificate === undefined
    failures.failed(source, isToken ? bearer.token : `of connection ${id}`)
    const retryAfterSeconds = failures.waitSeconds(source)
    if (retryAfterSeconds > 0) {
      const message = tooManyFailuresMessage(source, retryAfterSeconds, 'valid credentials are served')
      return statusError('TooManyRequests', message, { retryAfterSeconds })
    }
  }
  return statusError('Unauthorized', 'Unauthorized')
}
