import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { TlsPairs } from '../../../../test/harness/tls-pairs.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { SessionTap } from '../../core/request/session-tap.ts'
import type { UpstreamEndpoint } from './pool.ts'
import { type SpliceEvents, spliceUpgrade } from './upgrade-splice.ts'

const FIELDS = ['host', 'server', 'connection', 'Upgrade', 'upgrade', 'SPDY/3.1']
/** Gathered, as it is long, and in one TLS record. */
const LAST_WORDS = Buffer.alloc(16_000, 'w')

const pairs = new TlsPairs()
after(() => pairs.close())

/** Reads a socket to its end. @returns what has come until now */
function reading(socket: TLSSocket): () => string {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
  return () => Buffer.concat(chunks).toString('latin1')
}

for (const breaks of ['client', 'upstream'] as const) {
  test(`what came just before the ${breaks}'s connection broke is passed on`, async () => {
    const { client, accepted } = await pairs.open()
    const { client: upstream, accepted: server } = await pairs.open()
    const [atClient, atServer] = [reading(client), reading(server)]
    const socket = breaks === 'client' ? accepted : upstream
    // In the turn in which it was read.
    const breakSoon = (): boolean => {
      process.nextTick(() => socket.destroy(new Error('reset')))
      return true
    }
    const tap = { isFull: false, fromClient: breakSoon, toClient: breakSoon } as unknown as SessionTap
    let closed: unknown[] = []
    const events: Partial<SpliceEvents> = {
      onSwitched: () => true,
      onWaiting: () => undefined,
      onFailed: (error) => assert.fail(error),
      onClosed: (...all) => (closed = all),
    }
    const endpoint = { connectHttp1: () => Promise.resolve(upstream) } as Partial<UpstreamEndpoint>
    const first = { socket: accepted, first: Buffer.alloc(0) }
    const charge = { source: 'one', weight: 1, known: true }
    spliceUpgrade(endpoint as UpstreamEndpoint, 'POST', '/exec', FIELDS, first, charge, events as SpliceEvents, tap)
    await waitFor('the request', () => atServer().endsWith('\r\n\r\n'))
    server.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
    await waitFor('the answer', () => atClient().endsWith('\r\n\r\n'))
    const [sender, received] = breaks === 'client' ? [client, atServer] : [server, atClient]
    sender.write(LAST_WORDS)
    await waitFor('the end', () => closed.length > 0)
    await waitFor('what was sent before it', () => received().endsWith(LAST_WORDS.toString()))
    assert.equal(closed[2], breaks)
  })
}
