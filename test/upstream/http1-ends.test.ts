// Long answers over HTTP/1.1 whose connection the endpoint closes as soon as it has sent them, to a client that takes them slowly: they come whole.

import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createServer } from 'node:tls'
import type { ResetReason, Stream, StreamEvents } from '../../src/kit/api/stream.ts'
import { stubServing } from '../harness/upstreams/stub-upstream.ts'
import { endpointAt } from '../harness/upstreams/upstream-exchange.ts'

/** More than the gateway reads ahead, and less than what the system takes for a socket at once. */
const SIZES = [40_000, 300_000, 2_000_000]
const CHUNK = 10_000
const REQUEST = [':method', 'GET', ':path', '/', ':authority', 'a', ':scheme', 'https']

const HEADS: Readonly<Record<string, (bytes: number) => string>> = {
  'with a length': (bytes) => `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${bytes}\r\n\r\n`,
  'in chunks': () => 'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n',
  'until the end': () => 'HTTP/1.1 200 OK\r\n\r\n',
}

function answerOf(kind: string, bytes: number): string {
  const chunk = 'x'.repeat(CHUNK)
  const piece = kind === 'in chunks' ? `${CHUNK.toString(16)}\r\n${chunk}\r\n` : chunk
  const last = kind === 'in chunks' ? '0\r\n\r\n' : ''
  return `${HEADS[kind]?.(bytes)}${piece.repeat(bytes / CHUNK)}${last}`
}

/** Takes what comes some turns later. */
class SlowReader implements StreamEvents {
  stream: Stream | undefined
  bytes = 0
  readonly #done: (reset: ResetReason | undefined) => void

  constructor(done: (reset: ResetReason | undefined) => void) {
    this.#done = done
  }

  onHeaders(): void {
    // The body is what matters.
  }
  onBody(chunk: Buffer, end: boolean): void {
    this.bytes += chunk.length
    const { length } = chunk
    setTimeout(() => this.stream?.credit(length), 2)
    if (end) this.#done(undefined)
  }
  onTrailers(): void {
    this.#done('internal')
  }
  onDrained(): void {
    // Nothing is sent.
  }
  onReset(reason: ResetReason): void {
    this.#done(reason)
  }
}

for (const kind of Object.keys(HEADS)) {
  for (const bytes of SIZES) {
    test(`${bytes} bytes ${kind}`, async () => {
      const { pair } = stubServing()
      const options = { cert: pair.certPem, key: pair.keyPem, ALPNProtocols: ['http/1.1'] }
      const server = createServer(options, (socket) => {
        socket.on('error', () => undefined)
        socket.once('data', () => socket.end(answerOf(kind, bytes)))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { pool, broken } = endpointAt((server.address() as AddressInfo).port)
      try {
        for (let run = 0; run < 3; run++) {
          const { promise, resolve } = Promise.withResolvers<ResetReason | undefined>()
          const reader = new SlowReader(resolve)
          const charge = { source: 'alice', weight: 1, known: true }
          reader.stream = pool.open('unary', REQUEST, undefined, true, reader, charge)
          assert.equal(await promise, undefined)
          assert.equal(reader.bytes, bytes)
        }
        assert.deepEqual(broken, [])
      } finally {
        pool.destroy()
        server.close()
      }
    })
  }
}
