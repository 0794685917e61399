// Requests to the small server whose body is too large: their client may still send when the answer comes, and sees no reset.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type PlainServer, startPlainServer } from '../../src/gateway/io/listener/http-plain.ts'

const MAX_BYTES = 1000
const PIECE = Buffer.alloc(16 * 1024, 'x')
/** Less than is read behind an answer. */
const PIECES = 10
/** The server waits for half a second behind its answer, which a busy machine may take from the client. */
const TRIES = 10
let server: PlainServer

before(async () => {
  server = await startPlainServer({ host: '127.0.0.1', port: 0 }, async ({ readBody }) => ({
    code: 200,
    contentType: 'text/plain',
    body: await readBody(MAX_BYTES),
  }))
})
after(() => server.stop())

/** Sends the rest of its body when the server has closed. Rejects for a reset. */
async function post(): Promise<string> {
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
  })
  const closed = new Promise<void>((resolve, reject) => {
    socket.once('close', () => resolve()).once('error', reject)
  })
  closed.catch(() => undefined)
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${PIECE.length * PIECES}\r\n\r\n`)
  socket.write(PIECE)
  await once(socket, 'end')
  const send = promisify((piece: Buffer, done: (error?: Error | null) => void) => void socket.write(piece, done))
  for (let n = 1; n < PIECES; n++) await send(PIECE)
  socket.end()
  await closed
  return text
}

test('413 reaches a client that goes on with its body', async () => {
  const resets: unknown[] = []
  for (let n = 0; n < TRIES; n++) {
    const text = await post().catch((error: unknown) => {
      resets.push(error)
    })
    if (text === undefined) continue
    assert.match(text, /^HTTP\/1\.1 413 [\s\S]*connection: close[\s\S]*the body has more than 1000 bytes\n$/i)
    return
  }
  assert.fail(`reset in each of ${TRIES} runs: ${resets[0]}`)
})
