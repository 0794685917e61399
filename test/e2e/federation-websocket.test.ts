// Watches over WebSocket, as dashboards in browsers open them: the same client at a real kube-apiserver and at the federated cluster is sent the same frames,
// but for names and versions, and treated alike, whatever it sends itself.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent, WebSocket } from 'undici'
import { compareResourceVersions } from '../../src/kube/core/objects/resource-version.ts'
import {
  CLOSE,
  clientFrame,
  type Frame,
  openWebSocket,
  PING,
  PONG,
  TEXT,
  type WebSocketClient,
} from '../harness/clients/websocket-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf } from '../harness/clusters/upstream-cluster.ts'
import {
  ALL_PODS,
  alice,
  createPod,
  deletePod,
  federatedClusters,
  federatedUsersCA,
  labelPod,
  prepareMember,
  readThrough,
  type ShownItem,
  shownNames,
} from '../harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const DIRECT_PODS = '/api/v1/namespaces/default/pods'
const SHOWN_PODS = '/api/v1/namespaces/east--default/pods'
const STATE = 'allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const CONTINUATION = 0
/** golang.org/x/net/websocket, DefaultMaxPayloadBytes. */
const MOST_BYTES = 32 * 1024 * 1024

let east: TestCluster
let west: TestCluster
let gateway: TestGateway

before(async () => {
  const start = (name: string): Promise<TestCluster> => startCluster({ name, clientCA: federatedUsersCA })
  ;[east, west] = await Promise.all([start('east'), start('west')])
  await Promise.all([prepareMember(east, ['alice']), prepareMember(west, ['alice'])])
  const clusters = federatedClusters([east, west])
  gateway = await startGateway({
    clusters: clusters.map((one) => ({ ...one, spec: { ...one.spec, logging: { mode: 'on' } } })),
  })
  await waitFor('what is kept of both', async () => (await readThrough(gateway, ALL_PODS)).status === 200)
})
after(async () => {
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
})

interface Opening {
  /** Default: the pods of the default namespace of east. */
  readonly path?: string
  readonly query?: string
  readonly fields?: Readonly<Record<string, string | undefined>>
}

interface Server {
  readonly name: string
  version(): Promise<string>
  open(opening: Opening): Promise<WebSocketClient>
}

const DIRECT: Server = {
  name: 'direct',
  version: async () => (await east.request(DIRECT_PODS)).json().metadata.resourceVersion,
  open: ({ path = DIRECT_PODS, query = '', fields = {} }) => {
    const { port } = east.apiservers[0] ?? assert.fail()
    return openWebSocket({ port, name: 'localhost', cert: east.admin.cert, path: path + query, fields })
  },
}

const SHOWN: Server = {
  name: 'federated',
  version: async () => (await readThrough(gateway, SHOWN_PODS)).json().metadata.resourceVersion,
  open: ({ path = SHOWN_PODS, query = '', fields = {} }) => {
    const host = hostOf('all')
    const { cert } = alice
    const user = cert === undefined ? {} : { cert }
    return openWebSocket({ port: gateway.port, serverName: host, name: host, path: path + query, fields, ...user })
  },
}

/** What came of both, in this order. */
async function ofBoth<T>(ask: (server: Server) => Promise<T>): Promise<readonly [T, T]> {
  return await Promise.all([ask(DIRECT), ask(SHOWN)])
}

/** Without what is the federated cluster's own: prefixes of names, its annotation and column, and versions. */
function withoutNames(frame: Frame): Plain {
  const { isFinal, opcode, payload } = frame
  if (opcode !== TEXT) return { isFinal, opcode, payload: payload.toString('hex') }
  const text = payload.toString()
  const event = JSON.parse(text, (key, value) => {
    if (key === 'resourceVersion') return 'V'
    if (key === 'namespace' && typeof value === 'string') return value.replace(/^east--/, '')
    // A federated cluster describes no columns.
    if (key === 'description') return ''
    if (key === 'columnDefinitions' && Array.isArray(value)) return value.filter(({ name }) => name !== 'Cluster')
    if (key === 'cells' && Array.isArray(value)) return value.filter((cell) => cell !== 'east')
    if (key === 'annotations') {
      const { 'portcullis.io/cluster': _, ...others } = value
      return Object.keys(others).length === 0 ? undefined : others
    }
    return value
  })
  // kube-apiserver writes a bookmark as it writes an object without a spec.
  if (event.type === 'BOOKMARK') event.object = { metadata: { annotations: event.object.metadata.annotations } }
  return { isFinal, opcode, event, ends: text.endsWith('}\n') }
}

interface Plain {
  readonly isFinal: boolean
  readonly opcode: number
  /** In hexadecimal digits, if it is not text. */
  readonly payload?: string
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  readonly event?: any
  readonly ends?: boolean
}

function byName(a: Plain, b: Plain): number {
  const [one = '', other = ''] = [a, b].map(({ event }) => String(event.object.metadata.name ?? ''))
  return one < other ? -1 : 1
}

describe('the same frames', () => {
  test('of changes behind a list, until its time is over', async () => {
    const clients = await ofBoth(async (server) => {
      return server.open({ query: `?watch=1&timeoutSeconds=5&resourceVersion=${await server.version()}` })
    })
    await createPod(east, 'new')
    await labelPod(east, 'new', 'one')
    await labelPod(east, 'web', 'x'.repeat(60))
    await deletePod(east, 'new')
    for (const { raw } of clients) await raw.closed
    const [direct, shown] = clients.map((client) => client.frames())
    assert.deepEqual(shown?.map(withoutNames), direct?.map(withoutNames))
    assert.ok(direct !== undefined && direct.length >= 5)
    assert.equal(direct.at(-1)?.opcode, CLOSE)
  })

  test('of a state and the mark of its end', async () => {
    const clients = await ofBoth((server) => server.open({ query: `?watch=1&${STATE}` }))
    for (const client of clients) await waitFor('its mark', () => client.messages().length === 3)
    const [direct, shown] = clients.map((client) => client.frames())
    const sorted = (frames: readonly Frame[] = []): unknown[] => frames.map(withoutNames).sort(byName)
    assert.deepEqual(sorted(shown), sorted(direct))
    for (const client of clients) client.destroy()
  })

  test('of Tables', async () => {
    const clients = await ofBoth(async (server) => {
      const query = `?watch=1&resourceVersion=${await server.version()}`
      return server.open({ query, fields: { Accept: TABLE } })
    })
    await labelPod(east, 'web', 'tabled')
    await labelPod(east, 'web', 'again')
    for (const client of clients) await waitFor('both', () => client.messages().length === 2)
    const ageless = (client: WebSocketClient | undefined): unknown =>
      JSON.parse(JSON.stringify(client?.frames().map(withoutNames)).replaceAll(/"[0-9]+m?[0-9]*s"/g, '"AGE"'))
    assert.deepEqual(ageless(clients[1]), ageless(clients[0]))
    for (const client of clients) client.destroy()
  })
})

describe('the same handshake', () => {
  for (const [name, opening] of [
    ['as browsers send it', {}],
    ['a subprotocol that it knows for other streams', { fields: { 'Sec-WebSocket-Protocol': 'base64.binary.k8s.io' } }],
    ['a subprotocol that no server knows', { fields: { 'Sec-WebSocket-Protocol': 'unknown' } }],
    ['several subprotocols', { fields: { 'Sec-WebSocket-Protocol': 'binary.k8s.io, base64.binary.k8s.io' } }],
    ['another version', { fields: { 'Sec-WebSocket-Version': '8' } }],
    ['no version', { fields: { 'Sec-WebSocket-Version': undefined } }],
    ['no key', { fields: { 'Sec-WebSocket-Key': undefined } }],
    ['a key that is none', { fields: { 'Sec-WebSocket-Key': 'x' } }],
    ['no origin', { fields: { Origin: undefined } }],
    ['a page without origin', { fields: { Origin: 'null' } }],
    ['a page of another site', { fields: { Origin: 'https://evil.example.com' } }],
    ['no origin that Go can read', { fields: { Origin: 'evil.example.com' } }],
    ['extensions', { fields: { 'Sec-WebSocket-Extensions': 'permessage-deflate' } }],
    ['a list', { query: '' }],
    ['SPDY', { fields: { Upgrade: 'SPDY/3.1' } }],
  ] as const satisfies readonly (readonly [string, Opening])[]) {
    test(name, async () => {
      const query = '?watch=1&timeoutSeconds=1'
      const [direct, shown] = await ofBoth(async (server) => {
        const client = await server.open({ query, ...opening })
        client.destroy()
        const { status, values } = client.answer
        const fields = [
          'upgrade',
          'connection',
          'sec-websocket-protocol',
          'sec-websocket-version',
          'sec-websocket-extensions',
        ]
        // Only of what is switched: ends of connections are the gateway's own affair.
        const told = status === 101 ? fields : fields.slice(2)
        return [status, ...told.map((field) => `${field}: ${values(field)}`)]
      })
      assert.deepEqual(shown, direct)
    })
  }
})

describe('the same end of what a client sends', () => {
  const goesOn = async (client: WebSocketClient): Promise<boolean> => {
    // What was sent before has been read when this is answered: a change may come sooner.
    client.send(clientFrame(PING))
    const isAnswered = (): boolean => client.frames().some(({ opcode }) => opcode === PONG)
    await waitFor('a pong or the end', () => isAnswered() || client.closed() !== undefined)
    await labelPod(east, 'web', `v${Date.now()}`)
    await waitFor('a change or the end', () => client.messages().length > 0 || client.closed() !== undefined)
    return client.closed() === undefined
  }
  for (const [name, sent] of [
    ['a close', clientFrame(CLOSE, Buffer.from([3, 0xe8]))],
    ['a close that says nothing', clientFrame(CLOSE)],
  ] as const satisfies readonly (readonly [string, Buffer])[]) {
    test(name, async () => {
      const [direct, shown] = await ofBoth(async (server) => {
        const client = await server.open({ query: `?watch=1&resourceVersion=${await server.version()}` })
        client.send(sent)
        await client.raw.closed
        return client.closed()
      })
      assert.deepEqual(shown, direct)
    })
  }
  for (const [name, sent] of [
    ['a message', [clientFrame(TEXT, 'x')]],
    ['an empty message, as Headlamp sends it', [clientFrame(TEXT)]],
    ['a message in parts', [clientFrame(TEXT, 'x', { isFinal: false }), clientFrame(CONTINUATION, 'y')]],
    ['a message without end', [clientFrame(TEXT, 'x', { isFinal: false })]],
    ['a frame that is not masked', [clientFrame(TEXT, 'x', { isMasked: false })]],
    ['a frame that is as long as may be', [clientFrame(TEXT, Buffer.alloc(MOST_BYTES))]],
  ] as const satisfies readonly (readonly [string, readonly Buffer[]])[]) {
    test(name, async () => {
      const [direct, shown] = await ofBoth(async (server) => {
        const client = await server.open({ query: `?watch=1&resourceVersion=${await server.version()}` })
        client.send(...sent)
        const outcome = [await goesOn(client), client.closed()]
        client.destroy()
        return outcome
      })
      assert.deepEqual(shown, direct)
    })
  }

  test('a frame that is longer ends both', async () => {
    const statuses = await ofBoth(async (server) => {
      const client = await server.open({ query: `?watch=1&resourceVersion=${await server.version()}` })
      client.send(clientFrame(TEXT, '', { announced: MOST_BYTES + 1 }))
      await client.raw.closed
      return client.closed()
    })
    // Go's server has no other status to say it with.
    assert.deepEqual(statuses, [1000, 1002])
  })

  test('a ping gets its pong', async () => {
    const [direct, shown] = await ofBoth(async (server) => {
      const client = await server.open({ query: `?watch=1&resourceVersion=${await server.version()}` })
      client.send(clientFrame(PING, 'are you there'))
      await waitFor('the pong', () => client.frames().some(({ opcode }) => opcode === PONG))
      client.destroy()
      return client.frames().map(({ opcode, payload }) => [opcode, payload.toString()])
    })
    assert.deepEqual(shown, direct)
  })
})

test('a page of Headlamp lists, watches from there, and has what the members have', async () => {
  const listed = (await readThrough(gateway, ALL_PODS)).json()
  const shown = new Map<string, ShownItem>(listed.items.map((item: ShownItem) => [shownNames([item])[0] ?? '', item]))
  let version: string = listed.metadata.resourceVersion
  const client = await SHOWN.open({ path: ALL_PODS, query: `?watch=1&resourceVersion=${version}` })
  // What its backend sends as soon as it is connected, and every half minute.
  client.send(clientFrame(TEXT), clientFrame(PING))
  await Promise.all([createPod(east, 'page-east'), createPod(west, 'page-west')])
  await Promise.all([labelPod(east, 'web', 'page'), labelPod(west, 'web', 'page')])
  await deletePod(east, 'page-east')
  // Kubernetes may say that a pod is being deleted before it is.
  await waitFor('all of it', () => {
    const messages = client.messages()
    return messages.length >= 5 && messages.some((message) => message.includes('"DELETED"'))
  })
  for (const message of client.messages()) {
    const { type, object } = JSON.parse(message)
    const next: string = object.metadata.resourceVersion
    // It passes over what is not newer than its list; but for the size of numbers, as parseInt compares them.
    assert.ok((compareResourceVersions(version, next) ?? 0) < 0, `${version} -> ${next}`)
    version = next
    const [name = ''] = shownNames([object])
    if (type === 'DELETED') shown.delete(name)
    else shown.set(name, object)
  }
  client.destroy()
  const now: readonly ShownItem[] = (await readThrough(gateway, ALL_PODS)).json().items
  const versionsOf = (items: Iterable<ShownItem>): object =>
    Object.fromEntries([...items].map((item) => [shownNames([item])[0], item.metadata.resourceVersion]))
  assert.deepEqual(versionsOf(shown.values()), versionsOf(now))
  await deletePod(west, 'page-west')
})

test('the WebSocket of a browser takes it', async () => {
  const { cert } = alice
  const dispatcher = new Agent({
    allowH2: false,
    connect: { rejectUnauthorized: false, servername: hostOf('all'), cert: cert?.certPem, key: cert?.keyPem },
  })
  const path = `${SHOWN_PODS}?watch=1&timeoutSeconds=5&resourceVersion=${await SHOWN.version()}`
  const socket = new WebSocket(`wss://127.0.0.1:${gateway.port}/clusters/all${path}`, {
    protocols: ['base64.binary.k8s.io'],
    headers: { origin: 'https://dashboard.example.com' },
    dispatcher,
  })
  const messages: unknown[] = []
  let closed: unknown
  socket.addEventListener('message', ({ data }) => void messages.push(data))
  socket.addEventListener('close', ({ code, wasClean }) => {
    closed = [code, wasClean]
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', ({ error }) => reject(error))
  })
  assert.equal(socket.protocol, 'base64.binary.k8s.io')
  await labelPod(east, 'web', 'browsed')
  await waitFor('the change', () => messages.length === 1)
  assert.equal(JSON.parse(String(messages[0])).object.metadata.labels.value, 'browsed')
  await waitFor('its end', () => closed !== undefined)
  assert.deepEqual(closed, [1000, true])
  await dispatcher.close()
})

test('it is logged as a watch, and ends when a right is taken away in one member', PATIENT, async () => {
  const client = await SHOWN.open({ path: ALL_PODS, query: '?watch=1' })
  await waitFor('its state', () => client.messages().length > 0)
  const { code, stderr } = await west.kubectl(['delete', 'clusterrolebinding', 'pod-reader'])
  assert.equal(code, 0, stderr)
  await client.raw.closed
  assert.equal(client.closed(), 1000)
  const refused = await waitFor('the refusal', async () => {
    const again = await SHOWN.open({ path: ALL_PODS, query: '?watch=1' })
    again.destroy()
    return again.answer.status === 403 && again
  })
  assert.match(refused.answer.body.toString(), /cannot watch pods/)
  const [line] = await gateway.logged(({ verb, code: status }) => verb === 'watch' && status === 101)
  assert.equal(line?.['user'], 'alice')
})
