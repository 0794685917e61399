// Limits heads and trailers of HTTP/1.1 responses as they arrive. undici limits only the bytes of a head: it allocates two Buffers even for a field
// of four bytes, for any number of fields, and accepts any number of interim heads (1xx) before the response.

import type { Duplex } from 'node:stream'
import type { buildConnector } from 'undici'
import { MAX_INTERIM_ANSWERS } from '../../../http2/client.ts'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import { MAX_FIELDS } from '../../../http2/hpack/decoder.ts'
import { type Http1Parser, parserOf, STOP_PARSING } from '../../../kit/io/dial/http1-connector.ts'

/** undici's overhead per field: two Buffers, and their slots in a list. */
const FIELD_BYTES = 256

/** The response is rejected; the message says why. */
export class HeadExcessError extends Error {
  static readonly code = 'ERR_HEAD_EXCESS'
  readonly code: string = HeadExcessError.code
}

/**
 * Connections that enforce the limits on responses.
 * @param memory accounts for an incoming head; called for each connection
 */
export function withHeadLimits(connect: buildConnector.connector, memory: () => HeadMemory): buildConnector.connector {
  return (target, done) =>
    connect(target, (...outcome) => {
      // undici creates its parser in here.
      done(...outcome)
      const [, socket] = outcome
      // undici omits it if there is none, despite its types.
      if (socket?.destroyed !== false) return
      const parser = parserOf(socket)
      // A connection without limits is not acceptable; throwing here would end the thread.
      if (parser === undefined) socket.destroy(new TypeError("undici's parser of HTTP/1.1 is not as expected"))
      else limitHeads(socket, parser, memory())
    })
}

function limitHeads(socket: Duplex, parser: Http1Parser, memory: HeadMemory): void {
  const { onHeaderField, onHeadersComplete, onMessageComplete } = parser
  let interim = 0
  const stop = (why: string): number => {
    socket.destroy(new HeadExcessError(why))
    return STOP_PARSING
  }
  parser.onHeaderField = (name) => {
    const fields = parser.headers.length / 2
    if (fields >= MAX_FIELDS) return stop(`the answer has more than ${MAX_FIELDS} header fields, which is the limit`)
    const refusal = memory.hold(parser.headersSize + fields * FIELD_BYTES)
    return refusal === undefined ? onHeaderField.call(parser, name) : stop(refusal.message)
  }
  parser.onHeadersComplete = (status, upgrade, keepAlive) => {
    memory.hold(0)
    interim = status < 200 ? interim + 1 : 0
    if (interim > MAX_INTERIM_ANSWERS)
      return stop(`there are more than ${MAX_INTERIM_ANSWERS} interim heads before the answer, which is the limit`)
    return onHeadersComplete.call(parser, status, upgrade, keepAlive)
  }
  parser.onMessageComplete = () => {
    memory.hold(0)
    return onMessageComplete.call(parser)
  }
  socket.once('close', () => memory.hold(0))
}
