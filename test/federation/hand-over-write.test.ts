// What a member gets of a write that a federated cluster hands over to it, byte for byte, and what becomes of its answer: against a stub.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import { federationEpoch } from '../../src/federation/core/federation-epoch.ts'
import { encodeVector } from '../../src/federation/core/vectors.ts'
import { MAX_SHOWN_ANSWER_BYTES, MAX_SHOWN_LIST_BYTES } from '../../src/federation/request/hand-over-write.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { type FederatedStub, startFederatedStub } from '../harness/federation/federated-stub.ts'
import type { InProcessGateway } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL } from '../harness/objects/objects.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/namespaces/east--default/pods'
const POD = `${PODS}/web`
const IN_MEMBER = '/api/v1/namespaces/default/pods/web'
const MERGE = 'application/merge-patch+json'
const ANNOTATION = '"portcullis.io/cluster":"east"'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** As the only member's. */
function vector(version: string): string {
  return encodeVector({ epoch: federationEpoch([{ name: 'east', cluster: 'east' }]), versions: [version] })
}

interface Written {
  readonly request: SeenRequest
  readonly body: string
}

interface Scene extends FederatedStub {
  /** Writes that came to the member. */
  readonly written: Written[]
  /** What the member answers to a write. Default: the pod. */
  told: (request: SeenRequest) => void
  /** As alice. */
  write(method: string, path: string, body?: string | Buffer, fields?: readonly string[]): Promise<Response>
}

const ANSWER = '{"kind":"Pod","metadata":{"name":"web","namespace":"default","resourceVersion":"8"}}'
const SHOWN = `{"kind":"Pod","metadata":{"name":"web","namespace":"east--default","resourceVersion":"${vector('8')}","annotations":{${ANNOTATION}}}}`

async function setUp(
  ofAll: Partial<UpstreamClusterSpec> = {},
  config: Partial<Config> = {},
  ofEast: Partial<UpstreamClusterSpec> = {},
): Promise<Scene> {
  const stub = await startFederatedStub(ofAll, config, ofEast)
  cleanups.push(stub.stop)
  const alice = stub.connect('alice')
  const scene: Scene = {
    ...stub,
    written: [],
    told: (request) => reply(request, 200, ANSWER),
    write: (method, path, body, fields = []) => {
      const head = [':method', method, ':path', path, ':authority', 'all', ...fields]
      return h2Request(alice, head, body === undefined ? undefined : Buffer.from(body))
    },
  }
  stub.east.answer = (request) => {
    if (!request.path.includes('/namespaces/') && !request.path.includes('/nodes')) {
      reply(request, 200, '{}')
      return
    }
    const chunks: Buffer[] = []
    request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.stream.on('end', () => {
      scene.written.push({ request, body: Buffer.concat(chunks).toString() })
      scene.told(request)
    })
  }
  return scene
}

function json(answer: Response): { readonly reason: string; readonly message: string } {
  return JSON.parse(String(answer.body))
}

async function buffered(gateway: InProcessGateway): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  return answer.limits.find(({ limit }) => limit === 'buffered-bytes')?.held ?? Number.NaN
}

test('the member gets its own names, the client those of all', async () => {
  const { write, written } = await setUp()
  const metadata = (namespace: string, version: string): string =>
    `{"name":"web","namespace":"${namespace}","resourceVersion":"${version}"`
  const rest = '"spec":{"n":1.50,"x":18446744073709551616},"unknown":[ ]}'
  const body = `{"kind":"Pod","metadata":${metadata('east--default', vector('7'))},"annotations":{${ANNOTATION}}},${rest}`
  const fields = [
    'content-type',
    'application/json',
    'accept-encoding',
    'gzip',
    'accept',
    'application/vnd.kubernetes.protobuf, application/json',
    'content-length',
    String(body.length),
    'x-other',
    'kept',
  ]
  const answer = await write('PUT', `${POD}?dryRun=All&fieldManager=a%20b`, body, fields)
  assert.equal(answer.status, 200, String(answer.body))
  assert.equal(String(answer.body), SHOWN)
  assert.deepEqual(valuesOf(answer.head, 'content-length'), [String(SHOWN.length)])
  const [{ request, body: inMember } = assert.fail()] = written
  assert.equal(request.method, 'PUT')
  assert.equal(request.path, `${IN_MEMBER}?dryRun=All&fieldManager=a%20b`)
  assert.equal(inMember, `{"kind":"Pod","metadata":${metadata('default', '7')},"annotations":{}},${rest}`)
  assert.deepEqual(request.values('content-length'), [String(inMember.length)])
  assert.deepEqual(request.values('content-type'), ['application/json'])
  assert.deepEqual(request.values('accept'), ['application/json'])
  assert.deepEqual(request.values('accept-encoding'), ['identity'])
  assert.deepEqual(request.values('impersonate-user'), ['alice'])
  assert.deepEqual(request.values('x-other'), ['kept'])
})

for (const [method, path, type, body, target, inMember] of [
  ['POST', PODS, '', '{"metadata":{"name":"web"}}', IN_MEMBER.replace('/web', ''), '{"metadata":{"name":"web"}}'],
  [
    'PATCH',
    POD,
    MERGE,
    '{"metadata":{"namespace":"east--default"}}',
    IN_MEMBER,
    '{"metadata":{"namespace":"default"}}',
  ],
  ['PATCH', `${POD}/status`, MERGE, '{"status":{}}', `${IN_MEMBER}/status`, '{"status":{}}'],
  [
    'PATCH',
    POD,
    'application/json-patch+json',
    `[{"op":"test","path":"/metadata/resourceVersion","value":"${vector('7')}"}]`,
    IN_MEMBER,
    '[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]',
  ],
  [
    'PATCH',
    `${POD}?force=true`,
    'application/apply-patch+yaml',
    'metadata:\n  namespace: east--default\n',
    `${IN_MEMBER}?force=true`,
    'metadata:\n  namespace: "default"\n',
  ],
  [
    'POST',
    `${POD}/eviction`,
    'application/json',
    '{"metadata":{"name":"web","namespace":"east--default"}}',
    `${IN_MEMBER}/eviction`,
    '{"metadata":{"name":"web","namespace":"default"}}',
  ],
  [
    'DELETE',
    POD,
    'application/json',
    `{"preconditions":{"resourceVersion":"${vector('7')}"}}`,
    IN_MEMBER,
    '{"preconditions":{"resourceVersion":"7"}}',
  ],
  ['DELETE', `${POD}?resourceVersion=${vector('7')}`, '', undefined, `${IN_MEMBER}?resourceVersion=7`, ''],
  [
    'DELETE',
    `${PODS}?fieldSelector=metadata.namespace%3Deast--default&labelSelector=a`,
    '',
    undefined,
    '/api/v1/namespaces/default/pods?fieldSelector=metadata.namespace%3Ddefault&labelSelector=a',
    '',
  ],
  ['GET', `${POD}/status?resourceVersion=${vector('7')}`, '', undefined, `${IN_MEMBER}/status?resourceVersion=7`, ''],
] as const) {
  test(`${method} ${path} ${type}`, async () => {
    const { write, written } = await setUp()
    const answer = await write(method, path, body, type === '' ? [] : ['content-type', type])
    assert.equal(answer.status, 200, String(answer.body))
    assert.equal(String(answer.body), SHOWN)
    assert.deepEqual(
      written.map(({ request, body: got }) => [request.method, request.path, got]),
      [[method, target, inMember]],
    )
  })
}

test('metadata alone is asked for as metadata alone', async () => {
  const { write, written } = await setUp()
  const partial = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
  await write('PATCH', POD, '{}', ['content-type', MERGE, 'accept', `${partial},application/json`])
  assert.deepEqual(written[0]?.request.values('accept'), [partial])
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  await write('GET', `${POD}/status`, undefined, ['accept', `${table},application/json`])
  assert.deepEqual(written[1]?.request.values('accept'), ['application/json'])
  assert.equal((await write('GET', `${POD}/status`, undefined, ['accept', table])).status, 406)
})

describe('what is in no namespace', () => {
  const ofAll = {
    federation: {
      resources: [
        { version: 'v1', resource: 'nodes' },
        { version: 'v1', resource: 'namespaces' },
        { version: 'v1', resource: 'pods' },
      ],
    },
  }
  const object = (name: string): string => `{"metadata":{"name":"${name}"}}`

  test('a new one goes to the member that its name says', async () => {
    const scene = await setUp(ofAll)
    scene.told = (request) => reply(request, 201, object('n1'))
    const answer = await scene.write('POST', '/api/v1/nodes', object('east--n1'))
    assert.equal(answer.status, 201, String(answer.body))
    assert.equal(JSON.parse(String(answer.body)).metadata.name, 'east--n1')
    assert.deepEqual(
      scene.written.map(({ request, body }) => [request.path, body]),
      [['/api/v1/nodes', object('n1')]],
    )
    const generated = '{"metadata":{"generateName":"east--n"}}'
    assert.equal((await scene.write('POST', '/api/v1/nodes', generated)).status, 201)
    assert.equal(scene.written.pop()?.body, generated.replace('east--', ''))
    for (const name of ['n1', 'west--n1', ''])
      assert.equal((await scene.write('POST', '/api/v1/nodes', object(name))).status, 404, name)
    assert.equal(scene.written.length, 1)
  })

  test('a new one is not for a member that does not know its users, though others do', async () => {
    const { write, written } = await setUp({
      ...ofAll,
      members: [{ name: 'east', trustUsers: true }, { name: 'west' }],
    })
    const answer = await write('POST', '/api/v1/nodes', object('west--n1'))
    assert.equal(answer.status, 403)
    assert.match(json(answer).message, /^user "alice" cannot create nodes in cluster "west"$/)
    assert.deepEqual(written, [])
  })

  test('what is a step back without the member in front of it is not handed over', async () => {
    const scene = await setUp(ofAll)
    for (const name of ['east--..', 'east--.', 'east--.a', 'east---a'])
      for (const resource of ['nodes', 'namespaces']) {
        const answer = await scene.write('DELETE', `/api/v1/${resource}/${name}`)
        assert.ok([404, 405].includes(answer.status), `${resource}/${name}: ${answer.body}`)
      }
    for (const namespace of ['east--..', 'east--', 'east---a'])
      assert.notEqual((await scene.write('DELETE', `/api/v1/namespaces/${namespace}/pods/web`)).status, 200)
    assert.deepEqual(scene.written, [])
  })

  test('namespaces have the names that others are in', async () => {
    const scene = await setUp(ofAll)
    scene.told = (request) => reply(request, 404, '{"kind":"Status","details":{"name":"a","kind":"namespaces"}}')
    const answer = await scene.write('PUT', '/api/v1/namespaces/east--a', object('east--a'))
    assert.equal(answer.status, 404)
    assert.equal(JSON.parse(String(answer.body)).details.name, 'east--a')
    assert.deepEqual(
      scene.written.map(({ request, body }) => [request.path, body]),
      [['/api/v1/namespaces/a', object('a')]],
    )
    assert.equal((await scene.write('PUT', '/api/v1/namespaces/east--a', object('east--b'))).status, 400)
    assert.equal((await scene.write('DELETE', '/api/v1/namespaces/west--a')).status, 404)
    assert.equal(scene.written.length, 1)
  })
})

test('what cannot be read in one way reaches no member', async () => {
  const { write, written } = await setUp()
  for (const [method, path, type, body, status] of [
    ['POST', PODS, '', '{"metadata":{"namespace":"default"}}', 400],
    ['POST', PODS, '', '{"metadata":{"namespace":"west--default"}}', 400],
    ['POST', PODS, '', '{"metadata":{},"metadata":{"namespace":"kube-system"}}', 400],
    ['POST', PODS, '', '{', 400],
    ['POST', PODS, '', 'null', 400],
    ['POST', PODS, 'text/plain', '{}', 415],
    ['POST', PODS, 'application/cbor', '{}', 415],
    ['POST', PODS, 'application/yaml', 'a: &x b', 400],
    ['POST', PODS, 'application/yaml', `a: ${'b'.repeat(40_000)}`, 413],
    ['DELETE', POD, 'application/yaml', `a: ${'b'.repeat(2000)}`, 413],
    ['POST', PODS, 'application/vnd.kubernetes.protobuf', 'k8s', 400],
    ['PUT', POD, '', '{"metadata":{"resourceVersion":"7"}}', 400],
    ['PUT', POD, '', `{"metadata":{"resourceVersion":"${vector('')}"}}`, 409],
    ['PUT', POD, '', `{"metadata":{"resourceVersion":"${encodeVector({ epoch: 1, versions: ['7'] })}"}}`, 409],
    ['PATCH', POD, '', '{}', 415],
    ['PATCH', POD, 'application/apply-patch+cbor', '{}', 415],
    ['PATCH', POD, MERGE.toUpperCase(), '{}', 415],
    ['PATCH', POD, 'application/json-patch+json', '[{"op":"copy","from":"/metadata/namespace","path":"/spec/x"}]', 400],
    ['DELETE', `${POD}?resourceVersion=7`, '', undefined, 400],
    ['DELETE', `${PODS}?limit=1`, '', undefined, 400],
    ['DELETE', `${PODS}?fieldSelector=metadata.namespace%3Ddefault`, '', undefined, 400],
    ['DELETE', `${PODS}?fieldSelector=x`, '', undefined, 400],
    ['GET', `${POD}/status`, '', '{}', 400],
    ['DELETE', '/api/v1/namespaces/default/pods/web', '', undefined, 404],
    ['DELETE', '/api/v1/namespaces/west--default/pods/web', '', undefined, 404],
    ['DELETE', '/api/v1/namespaces/east--default/secrets/web', '', undefined, 405],
    ['DELETE', '/api/v1/pods', '', undefined, 405],
    ['POST', `${POD}/binding`, '', '{}', 405],
  ] as const) {
    const answer = await write(method, path, body, type === '' ? [] : ['content-type', type])
    assert.equal(answer.status, status, `${method} ${path} ${body}: ${answer.body}`)
  }
  const protobuf = ['accept', 'application/vnd.kubernetes.protobuf']
  assert.equal((await write('DELETE', POD, undefined, protobuf)).status, 406)
  const large = await write('POST', PODS, Buffer.alloc(3 * 1024 * 1024 + 1, ' '))
  assert.equal(large.status, 413)
  assert.deepEqual(written, [])
})

test('a version that cannot be compared is a conflict, upon which clients read again', async () => {
  const { write } = await setUp()
  const answer = json(await write('PUT', POD, `{"metadata":{"resourceVersion":"${vector('')}"}}`))
  assert.equal(answer.reason, 'Conflict')
  assert.match(answer.message, /^Operation cannot be fulfilled on pods "web": the object has been modified/)
})

test('with merged names writes stay refused', async () => {
  const { write, written } = await setUp({
    federation: { mode: 'merged', resources: [{ version: 'v1', resource: 'pods' }] },
  })
  const answer = await write('DELETE', IN_MEMBER)
  assert.equal(answer.status, 405)
  assert.match(json(answer).message, /is read only; write at \/clusters\/MEMBER/)
  assert.equal((await write('GET', `${IN_MEMBER}/status`)).status, 404)
  assert.deepEqual(written, [])
})

test('what describes the API is that of the first member that answers, for those whom it knows', async () => {
  // There is no west.
  const members = ['west', 'east'].map((name) => ({ name, trustUsers: true }))
  const { write, connect, east } = await setUp({ members })
  for (const path of ['/openapi/v2', '/openapi/v3?timeout=32s', '/openapi/v3/api/v1?hash=A'])
    assert.deepEqual([(await write('GET', path)).status, east.seen.at(-1)?.path], [200, path])
  assert.deepEqual(east.seen.at(-1)?.values('impersonate-user'), ['alice'])
  const head = [':method', 'GET', ':path', '/openapi/v3', ':authority', 'all']
  assert.equal((await h2Request(connect('system:admin'), head)).status, 403)
  for (const path of ['/openapi/v3/../v2', '/openapi', '/version', '/metrics'])
    assert.equal((await write('GET', path)).status, 404, path)
})

describe('who may', () => {
  test('those that the member does not know do not get so far that their body is read', async () => {
    for (const members of [[{ name: 'east', trustUsers: true }], [{ name: 'east' }]]) {
      const { connect, written } = await setUp({ members })
      for (const user of [
        'system:admin',
        'system:serviceaccount:default:default',
        ...(members.some((one) => 'trustUsers' in one) ? [] : ['alice']),
      ]) {
        const head = [':method', 'POST', ':path', PODS, ':authority', 'all']
        const stream = h2Open(connect(user), head, { endStream: false })
        const answer = await h2Response(stream)
        assert.equal(answer.status, 403, user)
      }
      assert.deepEqual(written, [])
    }
  })

  test('the member decides by its own policies and degrade mode', async () => {
    for (const [ofEast, status] of [
      [
        {
          dispatchPolicies: [
            { rules: [{ verbs: ['get'], apiGroups: ['*'], resources: ['*'], namespaces: ['default'] }] },
          ],
        },
        403,
      ],
      [{ degrade: { mode: 'ReadOnly' } }, 503],
    ] as const) {
      const { write, written } = await setUp({}, {}, ofEast as unknown as Partial<UpstreamClusterSpec>)
      const answer = await write('DELETE', POD)
      assert.equal(answer.status, status, String(answer.body))
      assert.equal((await write('GET', `${POD}/status`)).status, 200)
      assert.equal(written.length, 1)
    }
  })

  test('the federated cluster decides first', async () => {
    const dispatchPolicies = [{ rules: [{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }] }]
    const { write, written } = await setUp({ dispatchPolicies })
    assert.equal((await write('DELETE', POD)).status, 403)
    assert.deepEqual(written, [])
  })
})

describe('an answer', () => {
  const html = ['content-type', 'text/html']
  for (const [what, status, body, fields] of [
    ['a page', 200, '<p>', html],
    ['a page with an error', 503, '<p>', html],
    ['text', 200, 'ok', ['content-type', 'text/plain']],
    ['compressed', 200, gzipSync(ANSWER), ['content-type', 'application/json', 'content-encoding', 'gzip']],
    ['said to be compressed', 200, ANSWER, ['content-type', 'application/json', 'content-encoding', 'gzip']],
    ['Protobuf', 200, 'k8s\0', ['content-type', 'application/vnd.kubernetes.protobuf']],
    ['a part of one', 200, ANSWER.slice(0, -1), ['content-type', 'application/json']],
    ['another object', 200, '{"metadata":{"name":"web"}}', ['content-type', 'application/json']],
    ['too long', 200, Buffer.alloc(MAX_SHOWN_ANSWER_BYTES + 1, ' '), ['content-type', 'application/json']],
  ] as const)
    test(`that is ${what} is not passed on`, async () => {
      const scene = await setUp()
      scene.told = ({ stream }) => {
        stream.respond([':status', String(status), ...fields])
        stream.end(body)
      }
      const answer = await scene.write('DELETE', POD)
      assert.equal(answer.status, 502, String(answer.body))
      assert.match(json(answer).message, /^cluster "east" answered with \d+, and its answer cannot be shown: /)
      assert.equal(/carried out/.test(json(answer).message), status === 200)
      assert.equal(/more than 10485760 bytes/.test(json(answer).message), what === 'too long')
      await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
    })

  test('that is a long list of what was deleted says that it was', async () => {
    const scene = await setUp()
    const item = ANSWER.replace('"kind":"Pod",', '')
    const listOf = (bytes: number): string =>
      `{"kind":"PodList","metadata":{},"items":[${Array(Math.floor(bytes / (item.length + 1)) - 1)
        .fill(item)
        .join(',')}]}`
    for (const [bytes, kind] of [
      [MAX_SHOWN_LIST_BYTES, 'PodList'],
      [MAX_SHOWN_LIST_BYTES * 2, 'Status'],
      [MAX_SHOWN_LIST_BYTES * 20, 'Status'],
    ] as const) {
      scene.told = (request) => reply(request, 200, listOf(bytes))
      const answer = await scene.write('DELETE', PODS)
      assert.equal(answer.status, 200)
      const told = JSON.parse(String(answer.body))
      assert.equal(told.kind, kind)
      if (kind === 'Status') assert.equal(told.status, 'Success')
      else assert.equal(told.items.at(-1).metadata.namespace, 'east--default')
      await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
    }
    scene.told = (request) => reply(request, 500, listOf(MAX_SHOWN_LIST_BYTES * 2))
    assert.equal((await scene.write('DELETE', PODS)).status, 502)
  })

  test('in text, with an error, and one without a body, are passed on, with warnings', async () => {
    const scene = await setUp()
    const text = ['content-type', 'text/plain; charset=utf-8', 'warning', '299 - "old"', 'retry-after', '1']
    scene.told = ({ stream }) => {
      stream.respond([':status', '429', ...text])
      stream.end('Too many requests\n')
    }
    const answer = await scene.write('DELETE', POD)
    assert.deepEqual([answer.status, String(answer.body)], [429, 'Too many requests\n'])
    assert.deepEqual([valuesOf(answer.head, 'warning'), valuesOf(answer.head, 'retry-after')], [['299 - "old"'], ['1']])
    scene.told = ({ stream }) => stream.respond([':status', '200', 'warning', '299 - "old"'], { endStream: true })
    const empty = await scene.write('DELETE', POD)
    assert.deepEqual([empty.status, String(empty.body), valuesOf(empty.head, 'warning')], [200, '', ['299 - "old"']])
  })

  test('in pieces comes whole, and behind trailers', async () => {
    const scene = await setUp()
    scene.told = ({ stream }) => {
      stream.respond([':status', '201', 'content-type', 'application/json'], { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ x: 'y' }))
      for (const c of ANSWER) stream.write(c)
      stream.end()
    }
    const answer = await scene.write('POST', PODS, '{}')
    assert.deepEqual([answer.status, String(answer.body)], [201, SHOWN])
    await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
  })

  test('that breaks off is an error, and a write is not sent again', async () => {
    const scene = await setUp()
    scene.told = ({ stream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      stream.write(ANSWER.slice(0, 10), () => stream.close(2))
    }
    const answer = await scene.write('DELETE', POD)
    assert.equal(answer.status, 502)
    assert.equal(scene.written.length, 1)
  })
})

describe('in HTTP/1.1', () => {
  const BODY = '{"metadata":{"namespace":"east--default"}}'
  const IN_BODY = '{"metadata":{"namespace":"default"}}'

  async function client({ gateway, certificateOf }: Scene) {
    const options = { port: gateway.port, serverName: 'all', cert: certificateOf('alice') }
    const http1 = await http1Connect(options)
    cleanups.push(http1.destroy)
    return http1
  }

  test('a body in chunks, with trailers, and one that waits for 100 Continue', async () => {
    const scene = await setUp()
    const { send, response } = await client(scene)
    const chunked = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'Trailer: x']
    send(requestHead(`PUT ${POD}`, chunked, 'all'))
    for (const c of BODY) send(`1\r\n${c}\r\n`)
    send('0\r\nx: y\r\n\r\n')
    const answer = await response()
    assert.deepEqual([answer.status, String(answer.body)], [200, SHOWN])
    assert.deepEqual(answer.values('content-length'), [String(SHOWN.length)])
    const expecting = ['Content-Type: application/json', `Content-Length: ${BODY.length}`, 'Expect: 100-continue']
    send(requestHead(`PUT ${POD}`, expecting, 'all'))
    assert.equal((await response()).status, 100)
    send(BODY)
    assert.equal((await response()).status, 200)
    for (const { request, body } of scene.written) {
      assert.equal(body, IN_BODY)
      assert.deepEqual(request.values('content-length'), [String(IN_BODY.length)])
      for (const name of ['expect', 'transfer-encoding', 'trailer', 'x']) assert.deepEqual(request.values(name), [])
    }
    assert.equal(scene.written.length, 2)
  })

  test('what asks for an upgrade is not a write: its answer would come as the member sent it', async () => {
    const scene = await setUp()
    for (const line of [`GET ${POD}/status`, `POST ${POD}/eviction`, `DELETE ${POD}`]) {
      const { send, response } = await client(scene)
      send(requestHead(line, ['Connection: Upgrade', 'Upgrade: SPDY/3.1'], 'all'))
      assert.equal((await response()).status, 400, line)
    }
    assert.deepEqual(scene.written, [])
  })
})

test('what a member refuses before it has read it is answered, and a stream that it refuses is sent again', async () => {
  const scene = await setUp()
  const { answer: reading } = scene.east
  scene.east.answer = (request) => {
    reply(request, 413, '{"kind":"Status","apiVersion":"v1","code":413}')
    request.stream.close(0)
  }
  const large = `{"metadata":{"namespace":"east--default"},"data":"${'x'.repeat(3_000_000)}"}`
  assert.equal((await scene.write('PUT', POD, large)).status, 413)
  scene.east.answer = reading
  scene.told = (request) => {
    if (scene.written.length === 1) request.stream.close(7)
    else reply(request, 200, ANSWER)
  }
  const answer = await scene.write('PUT', POD, '{"metadata":{"namespace":"east--default"}}')
  assert.deepEqual([answer.status, String(answer.body)], [200, SHOWN])
  const bodies = scene.written.map(({ body }) => body)
  assert.deepEqual(bodies, Array(2).fill('{"metadata":{"namespace":"default"}}'))
  await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
})

test('the memory of an answer is free when its client goes, and there may be too little of it', async () => {
  const scene = await setUp({}, { maxBufferedBytes: 200_000 })
  const streams: SeenRequest['stream'][] = []
  scene.told = ({ stream }) => {
    streams.push(stream)
    stream.respond([':status', '200', 'content-type', 'application/json'])
    stream.write(' '.repeat(10_000))
  }
  const gone = h2Open(scene.connect('alice'), [':method', 'DELETE', ':path', POD, ':authority', 'all'])
  await waitFor('the answer', async () => (await buffered(scene.gateway)) >= 10_000)
  gone.close(8)
  await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
  await waitFor('its end', () => streams[0]?.destroyed)
  const waiting = scene.write('DELETE', POD)
  await waitFor('the next', () => streams[1])
  streams[1]?.end(' '.repeat(300_000))
  const answer = await waiting
  assert.equal(answer.status, 502)
  assert.match(json(answer).message, /too much waits for clients of this user; the request has been carried out$/)
  await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
})

test('the audit log has the bodies as the member had them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hand-over-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const policyFile = join(folder, 'policy.yaml')
  const logFile = join(folder, 'audit.log')
  writeFileSync(
    policyFile,
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{ level: RequestResponse, verbs: [update] }]\n',
  )
  const flags = { source: 'files', configDir: 'given', auditPolicyFile: policyFile, auditLogPath: logFile }
  const { auditPolicyFile, auditLogPath } = loadConfig({ flags, env: {}, readFile: () => '' })
  const { write } = await setUp({}, { auditPolicyFile, auditLogPath })
  await write('PUT', POD, '{"metadata":{"name":"web","namespace":"east--default"}}')
  const [event] = await waitFor('the event', () => {
    const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').split('\n').slice(0, -1) : []
    return lines.length > 0 && lines.map((line) => JSON.parse(line))
  })
  assert.deepEqual(event.requestObject, { metadata: { name: 'web', namespace: 'default' } })
  assert.deepEqual(event.responseObject, JSON.parse(ANSWER))
  assert.equal(event.objectRef.namespace, 'default')
  assert.equal(event.annotations['portcullis.io/federation'], 'all')
})

test('what waits is charged to its sender, and a limit of the federated cluster is held until the end', async () => {
  const flowControl = { flowControlSchemas: [{ name: 'one', maxRequestsInflight: { max: 1 } }] }
  const scene = await setUp({ flowControl, dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'one' }] })
  const waiting: SeenRequest[] = []
  scene.told = (request) => {
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write(`${' '.repeat(100_000)}{`)
    waiting.push(request)
  }
  const first = scene.write('DELETE', POD)
  await waitFor('the answer', async () => waiting.length === 1 && (await buffered(scene.gateway)) > 100_000)
  assert.equal((await scene.write('DELETE', POD)).status, 429)
  waiting[0]?.stream.end(ANSWER.slice(1))
  const answer = await first
  assert.deepEqual([answer.status, String(answer.body).trim()], [200, SHOWN])
  await waitFor('its memory', async () => (await buffered(scene.gateway)) === 0)
})
