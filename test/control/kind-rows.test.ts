// What a row of a kind can say beside names and schema: subresources of its own, time to end, what the server fills in, and
// lists that are merged. An API server with one such kind, asked in the process.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { reviewKind } from '../../src/apiserver/objects/self-review-kinds.ts'
import { METADATA, message } from '../../src/apiserver/protobuf/kinds.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { type ControlHandler, createControlHandler } from '../../src/apiserver/server.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { HeaderList, Peer, Stream, StreamEvents } from '../../src/kit/api/stream.ts'
import { foreignKind } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import type { KindSubresource, ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { startControl } from '../harness/gateways/control.ts'

const VIEW: KindSubresource = {
  name: 'size',
  group: 'sizes.example.com',
  version: 'v1',
  kind: 'Size',
  show: ({ metadata, spec }) => ({ kind: 'Size', metadata, size: Object(spec)['size'] }),
  withView: (object, view) => ({ ...object, spec: { ...Object(object['spec']), size: view['size'] } }),
}
const CLOSE: KindSubresource = {
  name: 'close',
  group: '',
  version: 'v1',
  kind: 'Closing',
  methods: ['POST'],
  connect({ body, remove }) {
    remove(Object(body['options']))
    return { code: 201, body: { closed: body['why'] } }
  },
}
let following = 0
let write: (text: string) => void = () => undefined
const TALK: KindSubresource = {
  name: 'talk',
  group: '',
  version: 'v1',
  kind: 'Box',
  methods: ['GET'],
  connect: ({ query }) => ({
    code: 200,
    body: 'so far\n',
    ...(query.has('follow') && {
      follow(to) {
        following++
        write = to
        return () => void following--
      },
    }),
  }),
}
const SEAL: KindSubresource = {
  name: 'seal',
  group: '',
  version: 'v1',
  kind: 'Seal',
  methods: ['POST'],
  connect({ by, setStatus }) {
    const phase = `Sealed by ${by?.user.name}${by?.impersonates === true ? ', as another' : ''}`
    return { code: 201, body: setStatus({ phase: by?.may('create', 'seal') === true ? phase : 'Unsealed' }) }
  },
}
const item = { type: 'object', properties: { name: { type: 'string' }, value: { type: 'string' } } } as const
const BOXES: ResourceKind = {
  ...foreignKind({ group: '', version: 'v1', kind: 'Box', plural: 'boxes', namespaced: true }),
  subresources: [VIEW, CLOSE, TALK],
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          size: { type: 'integer', minimum: 0 },
          items: {
            type: 'array',
            items: item,
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name'],
          },
        },
      },
      status: { type: 'object', properties: { phase: { type: 'string' } } },
    },
  },
  prepare: (box) => ({ ...box, status: { phase: 'New' } }),
  gracePeriod: (_box, asked) => asked ?? 30,
}
/** Only the server writes its status. */
const SEALED: ResourceKind = {
  ...foreignKind({ group: '', version: 'v1', kind: 'Sealed', plural: 'sealeds', namespaced: true }),
  ownStatus: true,
  subresources: [SEAL],
  schema: BOXES.schema,
  prepare: (box, by) => ({ ...box, status: { phase: `Made by ${by?.user.name}` } }),
}
const ECHO = {
  ...reviewKind('echo.example.com', 'EchoReview', { type: 'object' }),
  answer: (body: JsonObject) => ({ status: { heard: body['spec'] } }),
}

let store: SqliteStore
let registry: Registry
let handler: ControlHandler

before(() => {
  store = openSqliteStore({ file: ':memory:', key: undefined })
  const world = { now: Date.now, uuid: randomUUID, random: Math.random }
  registry = new Registry({ ...world, store, kinds: [NAMESPACES, BOXES, SEALED], pem: nodePemChecks })
  handler = createControlHandler({
    ...world,
    registry,
    reviews: [ECHO],
    messages: new Map([['v1/Box', message(METADATA, [2, 'spec', (bytes) => ({ size: bytes.length })])]]),
    shownTo: () => (_kind, object) => object,
    version: '0.0.0',
    checks: [],
    authenticate: () => ({ name: 'alice', uid: '', groups: [], extra: {} }),
    authorize: () => true,
    log: { debug: assert.fail, info: assert.fail, warn: assert.fail, error: assert.fail },
    headers: ['x-which', 'one'],
  })
})

after(() => store.close())

class Recorded implements Stream {
  queued = 0
  head: HeaderList = []
  text = ''
  ended = false
  wasReset = false
  headers(list: HeaderList, end: boolean): void {
    this.head = list
    this.ended = end
  }
  body(chunk: Buffer, end: boolean): void {
    this.text += chunk.toString()
    this.ended = end
  }
  trailers(): void {
    // Not examined here.
  }
  credit(): void {
    // Not examined here.
  }
  reset(): void {
    this.wasReset = true
  }
  header(name: string): string {
    const at = this.head.indexOf(name)
    return at < 0 ? '' : (this.head[at + 1] ?? '')
  }
}

function open(method: string, path: string, body?: Buffer, type = 'application/json'): [Recorded, StreamEvents] {
  const stream = new Recorded()
  const head: HeaderList = [':method', method, ':path', path, 'content-type', type]
  const events = handler({ certificate: undefined } as Peer, stream, head, body === undefined)
  if (body !== undefined) events.onBody(body, true)
  return [stream, events]
}

interface Asked {
  readonly code: number
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked at by their fields
  readonly json: any
  readonly stream: Recorded
}

function ask(method: string, path: string, body?: unknown, type?: string): Asked {
  const [stream] = open(method, path, body === undefined ? undefined : Buffer.from(JSON.stringify(body)), type)
  return { code: Number(stream.header(':status')), json: JSON.parse(stream.text), stream }
}

const PATH = '/api/v1/namespaces/default/boxes'
const JSON_PATCH = 'application/json-patch+json'

function box(name: string, spec: JsonObject = { size: 1 }): void {
  assert.equal(ask('POST', PATH, { metadata: { name }, spec, status: { phase: 'Sent' } }).code, 201)
}

test('the server fills in what it decides, and says which server it is', () => {
  box('filled')
  const { json, stream } = ask('GET', `${PATH}/filled`)
  assert.deepEqual(json.status, { phase: 'New' })
  assert.equal(stream.header('x-which'), 'one')
})

test('a status that the server alone writes tells who did what; no client writes it', () => {
  const all = '/api/v1/namespaces/default/sealeds'
  const path = `${all}/one`
  const status = { phase: 'Forged' }
  const made = ask('POST', all, { metadata: { name: 'one' }, spec: { size: 1 }, status })
  assert.deepEqual([made.code, made.json.status.phase], [201, 'Made by alice'])
  const merge = 'application/merge-patch+json'
  const apply = 'application/apply-patch+yaml'
  const whole = { apiVersion: 'v1', kind: 'Sealed', metadata: { name: 'one' }, status }
  for (const { code, json } of [
    ask('PUT', `${path}/status`, { ...made.json, status }),
    ask('PATCH', `${path}/status`, { status }, merge),
    ask('PATCH', `${path}/status`, [{ op: 'replace', path: '/status/phase', value: 'Forged' }], JSON_PATCH),
    ask('PATCH', `${path}/status?fieldManager=a&force=true`, whole, apply),
  ]) {
    assert.deepEqual([code, json.message], [403, 'sealeds "one" is forbidden: the gateway alone writes its status'])
  }
  assert.equal(ask('PATCH', path, { status }, merge).json.status.phase, 'Made by alice')
  assert.equal(ask('PUT', path, { ...made.json, status }).json.status.phase, 'Made by alice')
  assert.equal(ask('PATCH', `${path}?fieldManager=a&force=true`, whole, apply).json.status.phase, 'Made by alice')
  assert.equal(ask('POST', `${path}/seal?dryRun=All`, {}).json.status.phase, 'Sealed by alice')
  assert.equal(ask('GET', `${path}/status`).json.status.phase, 'Made by alice')
  assert.equal(ask('POST', `${path}/seal`, {}).json.status.phase, 'Sealed by alice')
  assert.equal(ask('GET', path).json.status.phase, 'Sealed by alice')
})

test('a view is read, replaced and patched; the checks of the kind and versions hold', () => {
  box('viewed')
  const path = `${PATH}/viewed/size`
  const { json } = ask('GET', path)
  assert.deepEqual([json.kind, json.size], ['Size', 1])
  assert.equal(ask('PUT', path, { ...json, size: 2 }).json.size, 2)
  assert.equal(ask('PUT', path, { ...json, size: 3 }).json.reason, 'Conflict')
  assert.equal(ask('PATCH', path, { size: 4 }, 'application/merge-patch+json').json.size, 4)
  const operations = [{ op: 'replace', path: '/size', value: 5 }]
  assert.equal(ask('PATCH', path, operations, 'application/json-patch+json').json.size, 5)
  assert.equal(ask('PATCH', path, { size: -1 }, 'application/merge-patch+json').code, 422)
  assert.equal(ask('PATCH', path, { size: 6 }, 'application/apply-patch+yaml').code, 422)
  assert.equal(ask('PATCH', `${path}?fieldManager=a`, { size: 6 }, 'application/apply-patch+yaml').code, 415)
  assert.equal(ask('PUT', path, { metadata: { name: 'other' }, size: 6 }).code, 400)
  assert.equal(ask('POST', path, {}).code, 405)
  assert.equal(ask('PUT', `${PATH}/none/size`, { metadata: { name: 'none' } }).code, 404)
  const whole = ask('GET', `${PATH}/viewed`).json
  assert.deepEqual([whole.spec.size, whole.metadata.generation], [5, 4])
})

test('a deletion with time to end marks the object; less time can be asked for, and none ends it', () => {
  box('ending')
  const path = `${PATH}/ending`
  const ends = ({ metadata }: { metadata: JsonObject }): unknown[] => [
    metadata['deletionGracePeriodSeconds'],
    Date.parse(String(metadata['deletionTimestamp'])),
  ]
  assert.equal(ask('DELETE', path, { dryRun: ['All'] }).json.metadata.deletionGracePeriodSeconds, 30)
  const marked = ask('DELETE', path).json
  const [seconds, at] = ends(marked)
  assert.equal(seconds, 30)
  assert.equal(marked.metadata.generation, 2)
  // Again, or with more: nothing changes, not even the version.
  assert.equal(ask('DELETE', path).json.metadata.resourceVersion, marked.metadata.resourceVersion)
  const longer = ask('DELETE', `${path}?gracePeriodSeconds=60`).json
  assert.equal(longer.metadata.resourceVersion, marked.metadata.resourceVersion)
  assert.deepEqual(ends(ask('DELETE', path, { gracePeriodSeconds: 10 }).json), [10, Number(at) - 20_000])
  // A write in the meantime is not its end.
  const status = { ...ask('GET', path).json, status: { phase: 'Ending' } }
  assert.equal(ask('PUT', `${path}/status`, status).code, 200)
  assert.equal(ask('GET', path).json.status.phase, 'Ending')
  assert.equal(ask('DELETE', `${path}?gracePeriodSeconds=0`).json.status, 'Success')
  assert.equal(ask('GET', path).code, 404)
})

test('something done to an object may delete it, by options as clients send them', () => {
  box('closed')
  const path = `${PATH}/closed/close`
  assert.equal(ask('GET', path).code, 405)
  assert.equal(ask('POST', `${PATH}/none/close`, {}).code, 404)
  assert.equal(ask('POST', path, { options: { preconditions: { uid: 'another' } } }).code, 409)
  assert.equal(ask('POST', path, { options: { dryRun: ['Some'] } }).code, 422)
  assert.equal(ask('POST', path, { options: { dryRun: ['All'] } }).code, 201)
  assert.equal(ask('GET', `${PATH}/closed`).json.metadata.deletionTimestamp, undefined)
  const { code, json } = ask('POST', path, { why: 'full', options: { gracePeriodSeconds: 0 } })
  assert.deepEqual([code, json], [201, { closed: 'full' }])
  assert.equal(ask('GET', `${PATH}/closed`).code, 404)
})

test('an answer that goes on ends with its client, with the server, or when it is not read', () => {
  box('talking')
  const path = `${PATH}/talking/talk`
  const [whole] = open('GET', path)
  assert.deepEqual([whole.text, whole.ended, following], ['so far\n', true, 0])
  const [left, events] = open('GET', `${path}?follow=true`)
  assert.match(left.header('content-type'), /^text\/plain/)
  assert.equal(left.header('content-length'), '')
  write('more\n')
  assert.deepEqual([left.text, left.ended, following], ['so far\nmore\n', false, 1])
  events.onReset('cancel')
  write('too late\n')
  assert.deepEqual([left.text, following], ['so far\nmore\n', 0])
  const [ended] = open('GET', `${path}?follow=true`)
  handler.endWatches()
  assert.deepEqual([ended.ended, following], [true, 0])
  const [slow] = open('GET', `${path}?follow=true`)
  slow.queued = 5 * 1024 * 1024
  write('much\n')
  assert.deepEqual([slow.wasReset, following], [true, 0])
  const [head] = open('HEAD', `${path}?follow=true`)
  assert.deepEqual([head.ended, following], [true, 0])
})

test('a strategic merge patch merges the lists of which the schema says the key', () => {
  box('listed', { items: [{ name: 'a', value: '1' }, { name: 'b' }] })
  const patch = { spec: { items: [{ name: 'a', value: '2' }, { $patch: 'delete', name: 'b' }, { name: 'c' }] } }
  const { json } = ask('PATCH', `${PATH}/listed`, patch, 'application/strategic-merge-patch+json')
  assert.deepEqual(json.spec.items, [{ name: 'a', value: '2' }, { name: 'c' }])
})

test('a review is answered, of its own kind, and stored nowhere', () => {
  const { revision } = store
  const { code, json } = ask('POST', '/apis/echo.example.com/v1/echoreviews', { spec: 'hello' })
  assert.equal(code, 201)
  assert.deepEqual([json.kind, json.apiVersion, json.status], ['EchoReview', 'echo.example.com/v1', { heard: 'hello' }])
  assert.equal(ask('POST', '/apis/echo.example.com/v1/echoreviews', 'hello').code, 400)
  assert.equal(store.revision, revision)
})

test('objects in Protobuf are read by the messages of the server', () => {
  const field = (number: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content])
  const type = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from('Box'))])
  const raw = Buffer.concat([field(1, field(1, Buffer.from('sent'))), field(2, Buffer.from('seven77'))])
  const body = Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, raw)])
  const [stream] = open('POST', PATH, body, 'application/vnd.kubernetes.protobuf')
  assert.equal(JSON.parse(stream.text).spec.size, 7)
})

test('discovery tells what a subresource takes, and OpenAPI only what has a schema', () => {
  const { resources } = ask('GET', '/api/v1').json
  const named = (name: string): JsonObject => resources.find((one: JsonObject) => one['name'] === name)
  const size = { group: 'sizes.example.com', version: 'v1', kind: 'Size', verbs: ['get', 'patch', 'update'] }
  assert.deepEqual(named('boxes/size'), { name: 'boxes/size', singularName: '', namespaced: true, ...size })
  assert.deepEqual(named('boxes/close')['verbs'], ['create'])
  assert.deepEqual(named('boxes/talk')['verbs'], ['get'])
  const paths = Object.keys(ask('GET', '/openapi/v3/api/v1').json.paths)
  assert.ok(paths.includes('/api/v1/namespaces/{namespace}/boxes/{name}/status'))
  assert.ok(!paths.some((path) => path.endsWith('/size') || path.endsWith('/close')))
})

test('the gateway’s own API server has none of it but for access grants, and no kind but those of the scheme', async () => {
  const others = SCHEME.filter(({ kind }) => kind !== 'AccessGrant')
  assert.ok(others.every(({ subresources, gracePeriod, prepare }) => !subresources && !gracePeriod && !prepare))
  const control = await startControl()
  try {
    assert.deepEqual(control.registry.kinds, SCHEME)
  } finally {
    await control.stop()
  }
})
