import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { HeaderList, Peer, Stream, StreamEvents } from '../../kit/api/stream.ts'
import { addressCharge } from '../../kit/core/shares/charge.ts'
import { StatusError } from '../../kube/api/status.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { SCHEME } from '../../program/api/scheme.ts'
import { createWebhookHandler, reviewAdmission } from './webhook.ts'
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

const CHECKS = { scheme: SCHEME, pem: nodePemChecks }

function cluster(name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, ...metadata },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { bearerToken: 'dG9rZW4=', insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
  }
}

const RESOURCE = { group: 'proxy.kubegateway.io', version: 'v1alpha1', resource: 'upstreamclusters' }

interface Answer {
  readonly kind: string
  readonly apiVersion: string
  readonly response: {
    readonly uid: string
    readonly allowed: boolean
    readonly warnings?: readonly string[]
    readonly status?: { code: number; reason: string; message: string; details: { causes: { field: string }[] } }
  }
}

function review(request: JsonObject, others: readonly JsonObject[] = []): Answer['response'] {
  const body = {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: { uid: 'u1', operation: 'CREATE', resource: RESOURCE, ...request },
  }
  // The response is sent as JSON.
  const answer: Answer = JSON.parse(JSON.stringify(reviewAdmission(body, CHECKS, others)))
  assert.deepEqual(
    [answer.kind, answer.apiVersion, answer.response.uid],
    ['AdmissionReview', 'admission.k8s.io/v1', 'u1'],
  )
  return answer.response
}

test('a valid object is allowed, with its warnings', () => {
  assert.deepEqual(review({ object: cluster('a') }), { uid: 'u1', allowed: true })
  const rules = [{ verbs: ['a\nb-*'], apiGroups: ['*'], resources: ['*'] }]
  const { allowed, warnings = [] } = review({ object: cluster('a', { dispatchPolicies: [{ rules }] }) })
  assert.equal(allowed, true)
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /^spec\.dispatchPolicies\[0\]\.rules\[0\]\.verbs\[0\]: .*; /)
  assert.ok(!/[\r\n]/.test(warnings[0] ?? ''))
})

test('an invalid object is refused with 422 and every error', () => {
  const object = cluster('a', {
    clientConfig: { caData: 'eA==', certData: 'eA==', keyData: 'eA==' },
    authentication: { revoked: [{}] },
  })
  const { allowed, status } = review({ object })
  assert.equal(allowed, false)
  assert.equal(status?.code, 422)
  assert.equal(status.reason, 'Invalid')
  assert.match(status.message, /^UpstreamCluster\.proxy\.kubegateway\.io "a" is invalid: \[/)
  assert.deepEqual(
    status.details.causes.map(({ field }) => field),
    [
      'spec.clientConfig.keyData',
      'spec.clientConfig.certData',
      'spec.clientConfig.caData',
      'spec.authentication.revoked[0]',
    ],
  )
})

test('conflicts with other clusters are errors; an object does not conflict with itself', () => {
  const old = cluster('b', { secureServing: { serverNames: ['x.example.com'] } })
  const object = cluster('a', { secureServing: { serverNames: ['X.example.com'] } })
  assert.match(review({ object }, [old]).status?.message ?? '', /belongs to UpstreamCluster "b"/)
  const again = cluster('b', { secureServing: { serverNames: ['x.example.com', 'y'] } })
  assert.equal(review({ operation: 'UPDATE', object: again, oldObject: old }, [old]).allowed, true)
  assert.equal(review({ object, dryRun: true }, [old]).allowed, false)
})

test('an object that was bad before can be labelled, but not changed and stay bad', () => {
  const spec = { servers: [{ endpoint: 'https://a' }, { endpoint: 'http://b' }] }
  const before = cluster('a', spec)
  const labelled = cluster('a', spec, { labels: { x: 'y' } })
  const answer = review({ operation: 'UPDATE', object: labelled, oldObject: before })
  assert.equal(answer.allowed, true)
  assert.match(answer.warnings?.[0] ?? '', /^spec\.servers\[1\]\.endpoint: /)
  const changed = cluster('a', { ...spec, default: true })
  assert.equal(review({ operation: 'UPDATE', object: changed, oldObject: before }).allowed, false)
  assert.equal(review({ operation: 'UPDATE', object: cluster('a'), oldObject: before }).allowed, true)
})

test('deletions, other kinds and subresources are let through', () => {
  assert.equal(review({ operation: 'DELETE', object: null, oldObject: {} }).allowed, true)
  assert.equal(review({ operation: 'CONNECT' }).allowed, true)
  assert.equal(review({ operation: 'UPDATE', subResource: 'status', object: {}, oldObject: {} }).allowed, true)
  const pods = { group: '', version: 'v1', resource: 'pods' }
  assert.equal(review({ resource: pods, object: {} }).allowed, true)
  assert.equal(review({ resource: undefined, object: {} }).allowed, true)
})

test('protectors are reviewed too', () => {
  const resource = { group: 'podseidon.kubewharf.io', version: 'v1alpha1', resource: 'podprotectors' }
  const selector = { matchExpressions: [{ key: 'a', operator: 'In' }] }
  const object = { metadata: { name: 'web' }, spec: { minAvailable: 1, minReadySeconds: 0, selector } }
  const { status } = review({ resource, object })
  assert.deepEqual(
    status?.details.causes.map(({ field }) => field),
    ['spec.selector.matchExpressions[0].values'],
  )
})

test('anything but an AdmissionReview is answered with 400', () => {
  const isRefused = (error: unknown): boolean => error instanceof StatusError && error.code === 400
  const review = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' }
  const bodies = [
    null,
    [],
    'x',
    {},
    { ...review },
    { ...review, request: null },
    { ...review, request: { operation: 'CREATE' } },
    { ...review, request: { uid: 'a' } },
    { ...review, apiVersion: 'admission.k8s.io/v1beta1', request: { uid: 'a', operation: 'CREATE' } },
    { ...review, request: { uid: 'a', operation: 'CREATE', resource: RESOURCE } },
    { ...review, request: { uid: 'a', operation: 'CREATE', resource: RESOURCE, object: [] } },
  ]
  for (const body of bodies) assert.throws(() => reviewAdmission(body, CHECKS, []), isRefused, JSON.stringify(body))
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (object, oldObject) => {
      const request = { uid: 'a', operation: 'UPDATE', resource: RESOURCE, object, oldObject }
      try {
        reviewAdmission({ ...review, request }, CHECKS, [])
      } catch (error) {
        assert.ok(isRefused(error))
      }
    }),
  )
})

// Every client that reaches the webhook may send it anything: quadratic work would take minutes.
test('an object with thousands of errors costs next to nothing', { timeout: 60_000 }, () => {
  const many = <T>(make: (i: number) => T): T[] => Array.from({ length: 9_000 }, (_, i) => make(i))
  const servers = many((i) => ({ endpoint: `https://a${i}.example.com:6443` }))
  for (const spec of [
    { servers, dispatchPolicies: [{ upstreamSubset: many((i) => `https://b${i}.example.com:6443`) }] },
    { flowControl: { flowControlSchemas: many(() => ({ name: 1 })) }, dispatchPolicies: many(() => ({ rules: 1 })) },
    { servers: [{ endpoint: '/'.repeat(1_000_000) }] },
    { [`x${'y'.repeat(1_000_000)}`]: 1, degrade: { mode: 'z'.repeat(1_000_000) } },
  ]) {
    const { allowed, status } = review({ object: cluster('a', { ...spec, default: 1 }) })
    assert.equal(allowed, false)
    // The last one says how many more there are.
    assert.ok((status?.details.causes.length ?? 0) <= 101)
  }
})
