import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import type { HeaderList, Peer, Stream, StreamEvents } from '../../kit/api/stream.ts'
import { addressCharge } from '../../kit/core/shares/charge.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { SCHEME } from '../../program/api/scheme.ts'
import { createWebhookHandler } from './webhook.ts'
import type { WebhookCaller } from './webhook-callers.ts'

class Answered implements Stream {
  readonly queued = 0
  code = ''
  headers(list: HeaderList): void {
    assert.equal(this.code, '', 'answered twice')
    this.code = list[1] ?? ''
  }
  body(): void {
    // Unused.
  }
  trailers(): void {
    // Unused.
  }
  credit(): void {
    // Unused.
  }
  reset(): void {
    // Unused.
  }
}

const quiet = (): void => undefined
const PEER = { addressCharge: addressCharge('10.0.0.1') } as Peer
const PIECE = Buffer.alloc(1024 * 1024, ' ')
/** Keyed by the token in the path. */
const CALLERS: Readonly<Record<string, WebhookCaller>> = { good: 'by-path', other: 'other' }
let handler: ReturnType<typeof createWebhookHandler>

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const authenticate = (_peer: Peer, _head: HeaderList, webhook: string, token: string | undefined): WebhookCaller =>
    webhook === '/admission' ? (CALLERS[token ?? ''] ?? 'unauthenticated') : 'unauthenticated'
  handler = createWebhookHandler({ authenticate, kinds: SCHEME, pem: nodePemChecks, clusters: () => [], log })
})
afterEach(() => mock.timers.reset())

function ask(method: string, path: string, end = false): { stream: Answered; events: StreamEvents } {
  const stream = new Answered()
  return { stream, events: handler(PEER, stream, [':method', method, ':path', path], end) }
}

test('nothing is kept of a body that will not be read', () => {
  assert.equal(ask('POST', '/healthz').stream.code, '200')
  assert.equal(ask('POST', '/').stream.code, '404')
  assert.equal(ask('PUT', '/admission').stream.code, '405')
  const { stream, events } = ask('POST', '/admission/good?timeout=10s')
  assert.equal(stream.code, '')
  events.onBody(Buffer.from('{'), true)
  assert.equal(stream.code, '400')
})

test('a body has ten seconds', () => {
  const { stream, events } = ask('POST', '/admission/good')
  events.onBody(PIECE, false)
  mock.timers.tick(9_000)
  assert.equal(stream.code, '')
  mock.timers.tick(1_000)
  assert.equal(stream.code, '504')
  events.onBody(PIECE, true)
})

test('bodies that are still coming hold so much memory together, and give it back', () => {
  const slow = Array.from({ length: 16 }, () => ask('POST', '/admission/good'))
  for (const { events } of slow) for (let i = 0; i < 2; i++) events.onBody(PIECE, false)
  assert.ok(slow.every(({ stream }) => stream.code === ''))
  const late = ask('POST', '/admission/good')
  late.events.onBody(PIECE, true)
  assert.equal(late.stream.code, '429')
  slow[0]?.events.onReset('cancel')
  slow[1]?.events.onBody(Buffer.alloc(0), true)
  assert.equal(slow[1]?.stream.code, '400')
  const next = Array.from({ length: 2 }, () => ask('POST', '/admission/good'))
  for (const { events } of next) for (let i = 0; i < 2; i++) events.onBody(PIECE, false)
  assert.ok(next.every(({ stream }) => stream.code === ''))
})

test('the body of an unauthenticated caller is not read', () => {
  for (const [path, code] of [
    ['/admission', '401'],
    ['/admission/', '401'],
    ['/admission/bad', '401'],
    ['/admission/good/more', '401'],
    ['/admission/other', '403'],
  ] as const) {
    const { stream, events } = ask('POST', path)
    assert.equal(stream.code, code, path)
    // Further input has no effect.
    events.onBody(PIECE, true)
  }
  assert.equal(ask('GET', '/readyz').stream.code, '200')
})
