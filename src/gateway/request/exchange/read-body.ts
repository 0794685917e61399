// Reads the body for a filter whose answer depends on it. Only small bodies, and with the same timeout
// as the gateway's own calls.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import type { Exchange } from './exchange.ts'
import { WholeBody } from './whole-body.ts'

/** Time limit for the client to send it. */
const BODY_TIMEOUT_MS = 30_000

const EMPTY = Buffer.alloc(0)

/**
 * Reads it to the end and leaves it to go upstream unmodified. A later reader gets the same bytes at once, or the same
 * refusal: what was read of a body before it became too large or too late is gone, and shadow mode does not lift that.
 * @param tooLarge the refusal of a body of more than `maxBytes`
 * @returns whatever was read, if the client is gone (`exchange.gone`)
 */
export async function readBody(
  exchange: Exchange,
  maxBytes: number,
  tooLarge: () => Refusal,
): Promise<Buffer | Refusal> {
  const known = exchange.body?.original
  if (known !== undefined) return known.length > maxBytes ? tooLarge() : known
  const { list, client, body } = exchange
  if (body?.unread !== undefined) return body.unread
  if (exchange.gone) return EMPTY
  if (Number(headerValue(list, 'content-length') ?? '0') > maxBytes) return tooLarge()
  const whole = new WholeBody(maxBytes, BODY_TIMEOUT_MS)
  exchange.readInto(whole)
  // We have to send the 100 ourselves: upstream has not seen the request yet.
  if (headerValue(list, 'expect')?.toLowerCase() === '100-continue' && !exchange.requestEnded)
    client.headers([':status', '100'], false)
  switch (await whole.ended) {
    case 'too-large':
      return exchange.refuseBody(tooLarge())
    case 'too-late':
      return exchange.refuseBody(refuse('body-timeout', `the body did not come within ${BODY_TIMEOUT_MS / 1000} s`))
    case 'complete':
      return exchange.setRead(whole.take())
    case 'overfull':
    case 'gone':
      return exchange.body?.unread ?? whole.take()
  }
}
