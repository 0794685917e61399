import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeaderList, Peer, Stream } from '../../../kit/api/stream.ts'
import { isRefusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { ThreadShares } from '../../state/thread-shares.ts'
import { readBody } from '../calls/request-bodies.ts'
import { Exchange, type UpstreamOutcome } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { UpstreamHalf } from './state.ts'

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
  const events = { requestEnded: nothing }
  const running = { remove: nothing }
  const clock = { now: () => 0, monotonic: () => 0 }
  const gw = { clock, uuid: () => 'id', shares, events, running } as unknown as Gateway
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

/** Counts what the exchange asks of its upstream half. */
function upstream(): UpstreamHalf & { cancelled: number; left: number } {
  return {
    stream: undefined,
    cancelled: 0,
    left: 0,
    cancel() {
      this.cancelled++
    },
    leave() {
      this.left++
    },
  }
}

function recordOutcomes(exchange: Exchange): UpstreamOutcome[] {
  const outcomes: UpstreamOutcome[] = []
  exchange.onOutcome = (outcome) => void outcomes.push(outcome)
  return outcomes
}

test('a filter learns once what became of the request', () => {
  const refused = start().exchange
  const ofRefused = recordOutcomes(refused)
  refused.end()
  refused.end()
  assert.deepEqual(ofRefused, ['unsent'], 'refused before anything was sent')

  const lost = start().exchange
  const ofLost = recordOutcomes(lost)
  lost.sending(upstream(), undefined)
  lost.abort()
  assert.deepEqual(ofLost, ['unknown'], 'upstream may have done it')

  const answered = start().exchange
  const ofAnswered = recordOutcomes(answered)
  answered.sending(upstream(), undefined)
  answered.tellOutcome(201)
  answered.answering(undefined)
  answered.end()
  assert.deepEqual(ofAnswered, [201])
})

test('a conflict is decided again only while the whole body can be sent again', () => {
  let decisions = 0
  const { exchange } = start()
  const half = upstream()
  exchange.sending(half, () => void decisions++)
  assert.equal(exchange.decidesAgain(), false, 'the body is still coming')
  assert.equal(exchange.phase, 'sending')
  exchange.onBody(Buffer.alloc(0), true)
  assert.equal(exchange.decidesAgain(), true)
  assert.deepEqual([decisions, half.cancelled, half.left, exchange.phase], [1, 1, 1, 'reading'])
  exchange.sending(upstream(), undefined)
  assert.equal(exchange.decidesAgain(), false, 'no filter asks for it a second time')
})

test('a watch that is to end before its answer begins ends at its first boundary; any other request is aborted', () => {
  const { exchange } = start()
  exchange.decision = { isWatch: true } as Exchange['decision'] & object
  exchange.sending(upstream(), undefined)
  exchange.finish()
  assert.equal(exchange.phase, 'sending')
  assert.equal(exchange.answering(undefined).finishing, true)

  const other = start().exchange
  const half = upstream()
  other.sending(half, undefined)
  other.finish()
  assert.deepEqual([other.phase, half.cancelled, half.left], ['over', 1, 1])
  assert.throws(() => other.sending(upstream(), undefined), /a request that is over cannot become sending/)
})
