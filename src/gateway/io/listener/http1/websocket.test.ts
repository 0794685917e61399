import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import {
  CLOSE,
  clientFrame,
  PING,
  PONG,
  serverFrames,
  TEXT,
} from '../../../../../test/harness/clients/websocket-client.ts'
import { waitFor } from '../../../../../test/harness/wait.ts'
import { textHead } from '../../../core/websocket/frames.ts'
import { Http1WebSocket, webSocketAccept } from './websocket.ts'

const NONE = Buffer.alloc(0)
const PINGS = 100_000

/** A client that takes nothing before it is told to. */
class SlowClient extends Duplex {
  readonly written: Buffer[] = []
  taken = false
  #waiting: (() => void) | undefined

  override _read(): void {
    // It sends when the test says so.
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.written.push(Buffer.from(chunk))
    if (this.taken) done()
    else this.#waiting = done
  }

  release(): void {
    this.taken = true
    this.#waiting?.()
  }
}

function opened(first: Buffer = NONE): { client: SlowClient; webSocket: Http1WebSocket; gone: () => number } {
  const client = new SlowClient()
  client.on('error', () => undefined)
  let gone = 0
  const charge = { source: 'alice', weight: 1, known: true }
  const webSocket = new Http1WebSocket(client, first, charge, () => void gone++)
  return { client, webSocket, gone: () => gone }
}

function message(text: string): Buffer {
  return Buffer.concat([textHead(text.length), Buffer.from(text)])
}

test('the proof of RFC 6455 section 1.3', () => {
  assert.equal(webSocketAccept('dGhlIHNhbXBsZSBub25jZQ=='), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

test('who sends pings and takes nothing has one pong waiting, and then the last', async () => {
  const { client } = opened()
  const pings = Buffer.concat(Array.from({ length: 100 }, (_, at) => clientFrame(PING, String(at))))
  for (let sent = 0; sent < PINGS; sent += 100) client.push(pings)
  client.push(clientFrame(PING, 'last'))
  await waitFor('all of it to be read', () => client.readableLength === 0)
  assert.ok(client.writableLength < 100, `${client.writableLength} bytes wait`)
  client.release()
  await waitFor('two', () => serverFrames(Buffer.concat(client.written)).length === 2)
  const pongs = serverFrames(Buffer.concat(client.written))
  assert.ok(pongs.every(({ opcode }) => opcode === PONG))
  assert.equal(pongs[1]?.payload.toString(), 'last')
})

test('no pong goes into a message that is sent in pieces', async () => {
  const { client, webSocket } = opened()
  client.release()
  const whole = message('x'.repeat(100_000))
  webSocket.send(whole.subarray(0, 50_000))
  client.push(clientFrame(PING, 'p'))
  await waitFor('it to be read', () => client.readableLength === 0)
  webSocket.send(whole.subarray(50_000))
  await waitFor('both', () => serverFrames(Buffer.concat(client.written)).length === 2)
  const [text, pong] = serverFrames(Buffer.concat(client.written))
  assert.deepEqual([text?.opcode, text?.payload.length, pong?.opcode], [TEXT, 100_000, PONG])
})

test('a close in the middle of a message ends the connection without one of its own', async () => {
  const { client, webSocket, gone } = opened()
  client.release()
  webSocket.send(message('x'.repeat(100)).subarray(0, 50))
  client.push(clientFrame(CLOSE))
  await waitFor('the end', () => client.destroyed)
  assert.equal(gone(), 1)
  assert.equal(Buffer.concat(client.written).length, 50)
})

test('what was written is taken before the close, however long that takes, and the client is gone once', async () => {
  const { client, webSocket, gone } = opened(clientFrame(TEXT, 'first'))
  const text = 'x'.repeat(100_000)
  webSocket.send(message(text))
  webSocket.end()
  client.push(clientFrame(CLOSE))
  client.push(null)
  await waitFor('that to be read', () => client.readableLength === 0)
  client.release()
  await waitFor('the close', () => serverFrames(Buffer.concat(client.written)).length === 2)
  const [sent, close] = serverFrames(Buffer.concat(client.written))
  assert.equal(sent?.payload.toString(), text)
  assert.deepEqual([close?.opcode, close?.payload.readUInt16BE(0)], [CLOSE, 1000])
  assert.equal(gone(), 0)
})

test('who takes nothing of what was written before the close is not waited for without end', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { client, webSocket } = opened()
  webSocket.send(message('waits'))
  webSocket.end()
  // That it sends something itself changes nothing.
  client.push(clientFrame(PING, 'x'))
  assert.equal(client.destroyed, false)
  t.mock.timers.tick(60_000)
  assert.equal(client.destroyed, true)
})
