// undici's parser of HTTP/1.1 responses (lib/dispatcher/client-h1.js). It goes on through the bytes that it has after it has destroyed the connection
// because of them, and makes an Error, with its stack, for each further field name and value: a head of 256 KiB cost a turn 40 ms in this way.

import type { Duplex } from 'node:stream'
import { type ConnectionOptions, createSecureContext, type SecureContextOptions } from 'node:tls'
import { buildConnector } from 'undici'

/** The part used here; undici has no public way to it. */
interface Http1Parser {
  onHeaderField(name: Buffer): number
}

/** Return value of an llhttp callback that ends the connection. */
const STOP_PARSING = -1

/** undefined: this version of undici has a different parser. */
export function parserOf(socket: Duplex): Http1Parser | undefined {
  for (const symbol of Object.getOwnPropertySymbols(socket)) {
    const value: unknown = Object(socket)[symbol]
    if (symbol.description === 'parser' && isParser(value)) return value
  }
  return undefined
}

function isParser(value: unknown): value is Http1Parser {
  return typeof (Object(value) as Partial<Http1Parser>).onHeaderField === 'function'
}

/**
 * undici's `buildConnector` for HTTP/1.1. Its connections share one TLS context, the given one or one of these options, which costs a turn 1 to
 * 3 ms to make, and a response is not parsed any further once its connection is destroyed.
 */
export function http1Connector(options: buildConnector.BuildOptions): buildConnector.connector {
  let secure: buildConnector.connector | undefined
  const plain = buildConnector(options)
  return (target, done) => {
    let connect = plain
    if (target.protocol === 'https:') {
      try {
        secure ??= buildConnector(withContext(options))
      } catch (error) {
        // undici accepts a result only after this has returned.
        queueMicrotask(() => done(error as Error, null))
        return
      }
      connect = secure
    }
    connect(target, (...outcome) => {
      // undici creates its parser in here.
      done(...outcome)
      const [, socket] = outcome
      // undici omits it if there is none, despite its types.
      const parser = socket?.destroyed === false ? parserOf(socket) : undefined
      if (socket === null || parser === undefined) return
      const { onHeaderField } = parser
      parser.onHeaderField = (name) => (socket.destroyed ? STOP_PARSING : onHeaderField.call(parser, name))
    })
  }
}

function withContext(options: buildConnector.BuildOptions): buildConnector.BuildOptions {
  // undici passes it on, and omits it from its types.
  const { secureContext = createSecureContext(options as SecureContextOptions) } = options as ConnectionOptions
  return { ...options, secureContext } as buildConnector.BuildOptions
}
