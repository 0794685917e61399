// Interim heads (1xx) before the answer to a call of the gateway's own. Clients of HTTP/1.1 take any number of them: a server that sends nothing else
// would keep the thread busy until the call's deadline.

import type { ClientRequest } from 'node:http'
import { MAX_INTERIM_ANSWERS } from '../../../http2/client.ts'
import { KubeCallError } from '../../core/answers/call-errors.ts'

/** `onInfo` of a request by undici. @throws {KubeCallError} when there are too many, which ends the request */
export function countInterimHeads(): () => void {
  let heads = 0
  return () => {
    if (++heads > MAX_INTERIM_ANSWERS) throw tooMany()
  }
}

/** Of a request by node:http, which fails when there are too many. */
export function limitInterimHeads(request: ClientRequest): void {
  let heads = 0
  const count = (): void => {
    if (++heads > MAX_INTERIM_ANSWERS) request.destroy(tooMany())
  }
  request.on('information', count).on('continue', count)
}

function tooMany(): KubeCallError {
  return new KubeCallError(
    `there are more than ${MAX_INTERIM_ANSWERS} interim heads before the answer, which is the limit`,
  )
}
