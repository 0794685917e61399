// All sockets of a thread read into one memory, which the next read overwrites. Between any two pieces of what one client sends, another one fills this
// memory; and upstream gets what each has sent, and nothing of the other.

import assert from 'node:assert/strict'
import { constants } from 'node:http2'
import { after, beforeEach, describe, test } from 'node:test'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw, type RawConnection } from '../harness/clients/raw-clients.ts'
import {
  CONTINUATION,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  headerBlock,
  openFrames,
} from '../harness/frames/h2-frames.ts'
import { alice, attackedGateway, EXEC, EXEC_HOST, HOST } from '../harness/gateways/attacked-gateway.ts'
import { SWITCH } from '../harness/upstreams/stub-http1.ts'
import { reply, replyReview, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const { stub, other, http1, gateway, asAlice } = await attackedGateway()

/** A record of TLS: one read. */
const FOREIGN = Buffer.alloc(16 * 1024, '!')
const OTHER_HOST = 'other.example.com'
/** Longer than any piece in which it is sent. */
const BODY = Array.from({ length: 400 }, (_, i) => `<${i}>`).join('')

let foreign: RawConnection | undefined
let foreignBytes = 0

/** Fills the memory with bytes of another client. They have come to its own upstream, so they have been read. */
async function fill(): Promise<void> {
  const before = foreignBytes
  if (foreign === undefined) {
    foreign = await openRaw({ port: gateway.port, serverName: OTHER_HOST, cert: alice, alpn: ['http/1.1'] })
    foreign.send(requestHead('POST /api/v1/pods', [`Host: ${OTHER_HOST}`, 'Content-Length: 1000000000']))
  }
  foreign.send(FOREIGN)
  await waitFor('the bytes of the other client', () => foreignBytes >= before + FOREIGN.length, { intervalMs: 1 })
}

/** Sends `bytes` cut everywhere in their first and last part, and at some places in between. */
async function sendInPieces(client: Pick<RawConnection, 'send'>, bytes: string | Buffer): Promise<void> {
  const all = Buffer.from(bytes as string, 'latin1')
  for (let at = 0, size = 1; at < all.length; at += size, size = (size * 3 + 1) % 101) {
    client.send(all.subarray(at, at + size))
    await fill()
  }
  await fill()
}

/** Answers with the body, once it is complete. */
function echo(request: SeenRequest): void {
  let body = ''
  request.stream.on('data', (chunk: Buffer) => {
    body += chunk.toString('latin1')
  })
  request.stream.on('end', () => reply(request, 200, body))
}

beforeEach(() => {
  stub.answer = echo
  other.answer = ({ stream }) => {
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      assert.ok(chunk.equals(FOREIGN.subarray(0, chunk.length)), 'bytes of someone else')
      foreignBytes += chunk.length
    })
  }
})
after(() => foreign?.destroy())

const FIELDS = ['X-One: first', `X-Long: ${'long '.repeat(100)}end`]

function assertWhole(seen: SeenRequest | undefined): void {
  assert.ok(seen)
  assert.equal(seen.path, '/api/v1/namespaces/default/pods')
  assert.deepEqual(seen.values('x-one'), ['first'])
  assert.deepEqual(seen.values('x-long'), [`${'long '.repeat(100)}end`])
}

describe('what one client sends while another one sends', () => {
  const post = (...fields: string[]): string =>
    requestHead('POST /api/v1/namespaces/default/pods', [...FIELDS, ...fields])

  test('over HTTP/1.1: heads, a body with a length, chunks, trailers, a request behind another', async () => {
    const client = await http1Connect(asAlice)
    const half = BODY.length >> 1
    const chunk = (text: string): string => `${text.length.toString(16)};name=value\r\n${text}\r\n`
    const chunks = `${chunk(BODY.slice(0, half))}${chunk(BODY.slice(half))}0\r\nX-Trailer: x\r\n\r\n`
    await sendInPieces(
      client.raw,
      post(`Content-Length: ${BODY.length}`) + BODY + post('Transfer-Encoding: chunked') + chunks,
    )
    for (const seen of [0, 1]) {
      assert.equal((await client.response()).body.toString(), BODY)
      assertWhole(stub.seen[seen])
    }
    client.destroy()
  })

  test('over HTTP/2: header blocks in many frames, DATA', async () => {
    const client = await openFrames(asAlice)
    const block = headerBlock([
      ...[':method', 'POST', ':path', '/api/v1/namespaces/default/pods', ':scheme', 'https', ':authority', HOST],
      ...FIELDS.flatMap((field) => field.split(': ')).map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)),
    ])
    let received = ''
    stub.answer = (request) => {
      request.stream.on('data', (bytes: Buffer) => {
        received += bytes.toString('latin1')
      })
      request.stream.on('end', () => reply(request, 200, '{}'))
    }
    await sendInPieces(
      client,
      Buffer.concat([
        frame(HEADERS, 0, 1, block.subarray(0, 50)),
        frame(CONTINUATION, 0, 1, block.subarray(50, 70)),
        frame(CONTINUATION, END_HEADERS, 1, block.subarray(70)),
        data(1, BODY.slice(0, 500)),
        data(1, BODY.slice(500), END_STREAM),
      ]),
    )
    await waitFor('the body', () => received.length >= BODY.length)
    assert.equal(received, BODY)
    assertWhole(stub.seen[0])
    client.destroy()
  })

  for (const protocol of ['HTTP/2', 'HTTP/1.1']) {
    test(`a body that waits for a decision, and for upstream over ${protocol}`, async () => {
      const user = { username: 'bob', groups: ['dev'] }
      const host = protocol === 'HTTP/2' ? HOST : EXEC_HOST
      let decide: (() => void) | undefined
      stub.answerToken = (review) => {
        decide = () => replyReview(review, { authenticated: true, user })
      }
      let read: (() => void) | undefined
      stub.answer = (request) => {
        read = () => echo(request)
      }
      http1.answer = ({ message, response }) => {
        let body = ''
        read = () => {
          message.on('data', (chunk: Buffer) => {
            body += chunk.toString('latin1')
          })
          message.on('end', () => response.end(body))
        }
      }
      const byCertificate = protocol === 'HTTP/1.1'
      const client = await http1Connect({
        port: gateway.port,
        serverName: host,
        ...(byCertificate && { cert: alice }),
      })
      const head = requestHead('POST /api/v1/namespaces/default/pods', [
        `Host: ${host}`,
        ...(byCertificate ? [] : ['Authorization: Bearer token-of-bob']),
        'Content-Length: 60000',
      ])
      const half = 'a'.repeat(30_000)
      client.send(head + half)
      if (!byCertificate) await waitFor('the question who it is', () => decide !== undefined)
      await fill()
      decide?.()
      await waitFor('the request', () => read !== undefined)
      client.send('b'.repeat(30_000))
      await fill()
      await fill()
      read?.()
      assert.equal((await client.response()).body.toString(), half + 'b'.repeat(30_000))
      client.destroy()
    })
  }

  test('a body that is sent again, because upstream has refused the stream', async () => {
    let refusals = 0
    let refuse: (() => void) | undefined
    stub.answer = (request) => {
      if (refusals++ > 0) echo(request)
      else refuse = () => request.stream.close(constants.NGHTTP2_REFUSED_STREAM)
    }
    const client = await http1Connect(asAlice)
    await sendInPieces(client.raw, post(`Content-Length: ${BODY.length}`) + BODY)
    await waitFor('the first attempt', () => refuse !== undefined)
    refuse?.()
    assert.equal((await client.response()).body.toString(), BODY)
    assertWhole(stub.seen[1])
    client.destroy()
  })

  test('an upgrade: the request, what comes with it, before the answer and behind it', async () => {
    let accept: (() => void) | undefined
    http1.answerUpgrade = ({ socket }) => {
      accept = () => {
        socket.write(SWITCH)
        socket.pipe(socket)
      }
    }
    const client = await http1Connect({ port: gateway.port, serverName: EXEC_HOST, cert: alice })
    const head = requestHead(`GET ${EXEC}`, [`Host: ${EXEC_HOST}`, 'Connection: Upgrade', 'Upgrade: websocket'])
    const [first, second, third] = [BODY, BODY.toUpperCase(), BODY.replaceAll('<', '(')]
    await sendInPieces(client.raw, head.slice(0, -10))
    client.send(head.slice(-10) + first)
    await fill()
    await sendInPieces(client.raw, second)
    await waitFor('the upgrade', () => accept !== undefined)
    accept?.()
    assert.equal((await client.response()).status, 101)
    await sendInPieces(client.raw, third)
    // More than one read, without a pause for either.
    const much = third.repeat(100)
    for (let at = 0; at < much.length; at += 9999) {
      client.send(much.slice(at, at + 9999))
      foreign?.send(FOREIGN)
    }
    const all = first + second + third + much
    await waitFor('all of it', () => client.raw.text().length >= all.length + SWITCH.length)
    assert.equal(client.raw.text().slice(client.raw.text().indexOf('\r\n\r\n') + 4), all)
    client.destroy()
  })
})
