// Limits interim heads (1xx) before the response to one of the gateway's own calls. HTTP/1.1 clients accept any number: a server that sends
// nothing else would keep the thread busy until the call's deadline.

import type { ClientRequest } from 'node:http'
import { MAX_INTERIM_ANSWERS } from '../../../http2/client.ts'
import { KubeCallError } from '../../core/answers/call-errors.ts'

/** `onInfo` of an undici request. @throws {KubeCallError} if there are too many, which ends the request */
export function countInterimHeads(): () => void {
  let heads = 0
  return () => {
    if (++heads > MAX_INTERIM_ANSWERS) throw tooMany()
  }
}

/** For a node:http request, which fails if there are too many. */
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
