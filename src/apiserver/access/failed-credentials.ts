// Counts failed credentials by source address. A blocked address gets 429 instead of 401 for a wrong
// credential; valid ones are verified in this process, which is cheap, and served as usual.

import { tooManyFailuresMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { readBearerToken } from '../../gateway/core/request/websocket-token.ts'
import type { HeaderList, Peer } from '../../kit/api/stream.ts'
import { type StatusError, statusError } from '../../kube/api/status.ts'
import type { FailureCounts } from '../../process/api/failure-counts.ts'

/** Counts the credential and returns its refusal. */
export function refuseCredential(
  failures: FailureCounts | undefined,
  { addressCharge, certificate, id }: Peer,
  head: HeaderList,
): StatusError {
  if (failures !== undefined) {
    const { source } = addressCharge
    const bearer = readBearerToken(head)
    // A certificate belongs to the connection, and so to all its requests.
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
