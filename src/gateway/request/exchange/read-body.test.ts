import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeaderList, Peer, Stream } from '../../../kit/api/stream.ts'
import { isRefusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { ThreadShares } from '../../state/thread-shares.ts'
import { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { readBody } from './read-body.ts'

const HEAD: HeaderList = [':method', 'POST', ':path', '/x', ':authority', 'prod', ':scheme', 'https']
const LIMIT = 10
const tooLarge = () => refuse('body-too-large', 'too large')

/** Sets up an exchange before anything is sent. */
function start(fields: HeaderList = []): { exchange: Exchange; heads: HeaderList[] } {
  const heads: HeaderList[] = []
  const nothing = (): void => undefined
  const client: Stream = {
    queued: 0,
    headers: (head) => void heads.push(head),
    body: nothing,
    trailers: nothing,
    credit: nothing,
    reset: nothing,
  }
  const shares = new ThreadShares({ maxRequestsInflight: 0, maxWatches: 0, maxBufferedBytes: 0, threads: 1 })
  const gw = { clock: { now: () => 0, monotonic: () => 0 }, uuid: () => 'id', shares } as unknown as Gateway
  const peer = {
    protocol: 'h2',
    remoteAddress: '127.0.0.1',
    addressCharge: addressCharge('127.0.0.1'),
  } as unknown as Peer
  return { exchange: new Exchange(gw, peer, client, [...HEAD, ...fields], false, undefined), heads }
}

test('a body is read whole, stays to be sent, and is read once for all filters', async () => {
  const { exchange } = start()
  exchange.onBody(Buffer.from('one '), false)
  const first = readBody(exchange, LIMIT, tooLarge)
  exchange.onBody(Buffer.from('two'), true)
  const bytes = await first
  assert.equal(String(bytes), 'one two')
  assert.equal(exchange.body?.keptBytes, 7)
  assert.equal(await readBody(exchange, LIMIT, tooLarge), bytes)
  const refused = await readBody(exchange, 6, tooLarge)
  assert.ok(isRefusal(refused), 'the limit of the second reader counts for it')
})

test('a body that is too large is not waited for', async () => {
  const said = await readBody(start(['content-length', '11']).exchange, LIMIT, tooLarge)
  assert.ok(isRefusal(said))
  const { exchange } = start()
  const unsaid = readBody(exchange, LIMIT, tooLarge)
  exchange.onBody(Buffer.alloc(LIMIT + 1), false)
  assert.ok(isRefusal(await unsaid))
})

test('a client that waits to be asked for its body is asked', async () => {
  const { exchange, heads } = start(['expect', '100-continue'])
  const pending = readBody(exchange, LIMIT, tooLarge)
  assert.deepEqual(heads, [[':status', '100']])
  exchange.onBody(Buffer.from('{}'), true)
  assert.equal(String(await pending), '{}')
})
