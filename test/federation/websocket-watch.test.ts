// Watches of a federated cluster over WebSocket: what they are sent, how they end, and what clients cannot do with them.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { type Http1Response, http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import {
  BINARY,
  CLOSE,
  clientFrame,
  messagesOf,
  openWebSocket,
  PING,
  PONG,
  TEXT,
  type WebSocketClient,
} from '../harness/clients/websocket-client.ts'
import { type PodsMember, startPodsMember } from '../harness/federation/pods-member.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startTokenIssuers, TEST_AUDIENCE, type TokenIssuers } from '../harness/servers/token-issuers.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'
const POLICY = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: RequestResponse }]\n'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const CONTINUATION = 0
/** Each has a megabyte. */
const LARGE_PODS = 16
/** More than the kernel buffers of a connection that is not read. */
const FLOOD_EVENTS = 1_500
const NOTE_BYTES = 24 * 1024
const clientCA = createCA({ commonName: 'clients of all' })
const alice = clientPair(clientCA, 'alice')

let dir = ''
let east: PodsMember
let issuers: TokenIssuers
let gateway: InProcessGateway

interface Changed {
  readonly dispatchPolicies?: unknown
  readonly flowControl?: unknown
  readonly revoked?: unknown
}

function objects({ revoked = [], ...more }: Changed = {}): UpstreamCluster[] {
  const member = clusterObject([east.stub], { name: 'east' })
  const all = clusterObject([], { name: 'all', clientCA })
  const resources = [{ version: 'v1', resource: 'pods' }]
  const issuer = { url: issuers.url('good'), certificateAuthority: issuers.ca, audiences: [TEST_AUDIENCE] }
  const spec = {
    secureServing: all.spec.secureServing,
    authentication: { jwt: [{ issuer, claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } } }], revoked },
    dispatchPolicies: [ALLOW_ALL],
    members: [{ name: 'east', trustUsers: true }],
    federation: { resources },
    ...more,
  }
  return [
    { ...member, spec: { ...member.spec, cache: resources } } as UpstreamCluster,
    { ...all, spec } as unknown as UpstreamCluster,
  ]
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-websocket-'))
  const auditPolicyPath = join(dir, 'policy.yaml')
  writeFileSync(auditPolicyPath, POLICY)
  const flags = {
    source: 'files',
    configDir: 'given',
    auditPolicyFile: auditPolicyPath,
    auditLogPath: join(dir, 'audit.log'),
  }
  const { auditPolicyFile, auditLogPath } = loadConfig({ flags, env: {}, readFile: () => '' })
  ;[east, issuers] = await Promise.all([startPodsMember(), startTokenIssuers()])
  east.write('web')
  gateway = await startInProcess(objects(), { auditPolicyFile, auditLogPath })
  await waitFor('what is kept', async () => (await list()).status === 200)
})
after(async () => {
  await gateway?.stop()
  await east?.stop()
  await issuers?.stop()
  rmSync(dir, { recursive: true, force: true })
})

function list(fields: readonly string[] = []): Promise<Http1Response> {
  const certificate = { port: gateway.port, serverName: 'all', cert: alice }
  return http1Request(certificate, requestHead(`GET ${PODS}`, ['Host: all', ...fields]))
}

async function listedVersion(): Promise<string> {
  return JSON.parse((await list()).body.toString()).metadata.resourceVersion
}

interface Opening {
  readonly query?: string
  readonly fields?: Readonly<Record<string, string | undefined>>
  readonly behind?: Buffer
  /** null = none. Default: alice's. */
  readonly cert?: KeyPair | null
}

/** From now on, unless `query` says otherwise. */
async function open({
  query,
  fields = {},
  behind = Buffer.alloc(0),
  cert = alice,
}: Opening = {}): Promise<WebSocketClient> {
  const path = `${PODS}?watch=1&${query ?? `resourceVersion=${await listedVersion()}`}`
  const certificate = cert === null ? {} : { cert }
  return openWebSocket({ port: gateway.port, serverName: 'all', name: 'all', path, fields, behind, ...certificate })
}

async function watches(): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  return answer.limits.find(({ limit }) => limit === 'watches')?.held ?? 0
}

async function ended(client: WebSocketClient): Promise<number | undefined> {
  await client.raw.closed
  await waitFor('its place', async () => (await watches()) === 0)
  return client.closed()
}

/** It is still served. */
async function goesOn(client: WebSocketClient): Promise<void> {
  const note = `goes on ${Math.random()}`
  east.write('web', { note })
  await waitFor('the change', () => client.messages().some((message) => message.includes(note)))
  client.destroy()
  await waitFor('its place', async () => (await watches()) === 0)
}

describe('events', () => {
  test('each is a message, and ends as a line of a watch over HTTP does', async () => {
    const client = await open()
    const { answer } = client
    assert.equal(answer.status, 101)
    assert.deepEqual(answer.values('upgrade'), ['websocket'])
    assert.deepEqual(answer.values('connection'), ['Upgrade'])
    assert.deepEqual(answer.values('sec-websocket-protocol'), [])
    assert.deepEqual(answer.values('sec-websocket-extensions'), [])
    for (const note of ['a', 'b'.repeat(200), 'c'.repeat(70_000)]) east.write('web', { note })
    const messages = await messagesOf(client, 3)
    assert.deepEqual(
      messages.map((message) => {
        const { type, object } = JSON.parse(message)
        return [type, object.metadata.namespace, object.metadata.annotations.note.length]
      }),
      [1, 200, 70_000].map((length) => ['MODIFIED', 'east--default', length]),
    )
    assert.ok(messages.every((message) => message.endsWith('}\n') && message.indexOf('\n') === message.length - 1))
    assert.ok(client.frames().every(({ isFinal, opcode }) => isFinal && opcode === TEXT))
    east.write('web')
    await goesOn(client)
  })

  test('a watch over HTTP beside it is sent the same, as lines', async () => {
    const version = await listedVersion()
    const query = `watch=1&timeoutSeconds=1&resourceVersion=${version}`
    const lines = http1Request(
      { port: gateway.port, serverName: 'all', cert: alice },
      requestHead(`GET ${PODS}?${query}`, ['Host: all']),
    )
    const client = await open({ query: `resourceVersion=${version}` })
    await waitFor('both', async () => (await watches()) === 2)
    east.write('web', { note: 'for both' })
    const [message] = await messagesOf(client, 1)
    assert.equal((await lines).body.toString(), message)
    await goesOn(client)
  })

  test('a state, the mark of its end, and bookmarks are messages too', async () => {
    const query = 'allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan'
    const client = await open({ query: `${query}&timeoutSeconds=1` })
    const messages = await messagesOf(client, 2)
    const [state, mark] = messages.map((message) => JSON.parse(message))
    assert.deepEqual([state.type, mark.type], ['ADDED', 'BOOKMARK'])
    assert.equal(mark.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
    assert.equal(await ended(client), 1000)
  })

  test('Tables, of which the first has the columns', async () => {
    const client = await open({ fields: { Accept: TABLE } })
    east.write('web', { note: 'one' })
    east.write('web', { note: 'two' })
    const tables = (await messagesOf(client, 2)).map((message) => JSON.parse(message).object)
    assert.deepEqual(
      tables.map(({ kind, columnDefinitions, rows }) => [kind, columnDefinitions === null, rows.length]),
      [
        ['Table', false, 1],
        ['Table', true, 1],
      ],
    )
    client.destroy()
    await ended(client)
  })

  test('a state in Tables, whose end is marked', async () => {
    const query = 'allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan'
    const client = await open({ query, fields: { Accept: TABLE } })
    const events = (await messagesOf(client, 2)).map((message) => JSON.parse(message))
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.kind]),
      [
        ['ADDED', 'Table'],
        ['BOOKMARK', 'Table'],
      ],
    )
    client.destroy()
    await ended(client)
  })

  test('a version that is gone is one message with ERROR, and then the end', async () => {
    const version = await listedVersion()
    const epoch = Number(version.slice(1, 5))
    const gone = `1${String((epoch + 1) % 10_000).padStart(4, '0')}${version.slice(5)}`
    const client = await open({ query: `resourceVersion=${gone}` })
    assert.equal(client.answer.status, 101)
    assert.equal(await ended(client), 1000)
    const [error, ...others] = client.messages().map((message) => JSON.parse(message))
    assert.deepEqual([error.type, error.object.code, others.length], ['ERROR', 410, 0])
  })

  test('it is counted and audited as a watch, with the code of its answer', async () => {
    const client = await open()
    await goesOn(client)
    const lines = readFileSync(join(dir, 'audit.log'), 'utf8').trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line)).filter(({ verb }) => verb === 'watch')
    const begun = events.findLast(({ stage }) => stage === 'ResponseStarted')
    assert.deepEqual([begun.responseStatus.code, begun.user.username], [101, 'alice'])
    assert.match(await gateway.metrics(), /verb="WATCH"[^\n]*code="101"|code="101"[^\n]*verb="WATCH"/i)
  })
})

describe('the handshake', () => {
  for (const [name, fields, status] of [
    ['another version', { 'Sec-WebSocket-Version': '8' }, 400],
    ['no version', { 'Sec-WebSocket-Version': undefined }, 400],
    ['no key', { 'Sec-WebSocket-Key': undefined }, 400],
    ['an empty key', { 'Sec-WebSocket-Key': '' }, 400],
    ['no origin', { Origin: undefined }, 403],
    ['the origin of a page that has none', { Origin: 'null' }, 403],
    ['several subprotocols', { 'Sec-WebSocket-Protocol': 'base64.binary.k8s.io, binary.k8s.io' }, 400],
    ['a list of subprotocols with nothing behind the comma', { 'Sec-WebSocket-Protocol': 'a,' }, 400],
  ] as const) {
    test(`${name}: ${status}, and the connection ends`, async () => {
      const client = await open({ fields })
      assert.equal(client.answer.status, status, client.answer.body.toString())
      assert.equal(JSON.parse(client.answer.body.toString()).kind, 'Status')
      const versions = client.answer.values('sec-websocket-version')
      assert.deepEqual(versions, 'Sec-WebSocket-Version' in fields ? ['13'] : [])
      await ended(client)
    })
  }

  test('any key is proved to have been read, any origin is taken, and the one subprotocol is sent back', async () => {
    for (const [origin, protocol] of [
      ['https://elsewhere.example.com', 'base64.binary.k8s.io'],
      ['http://localhost:4466', 'binary.k8s.io'],
      ['file://', 'what.no.server.knows'],
    ] as const) {
      const fields = { Origin: origin, 'Sec-WebSocket-Protocol': ` ${protocol} `, 'Sec-WebSocket-Key': 'x' }
      const client = await open({ fields })
      assert.equal(client.answer.status, 101)
      assert.deepEqual(client.answer.values('sec-websocket-protocol'), [protocol])
      east.write('web', { note: protocol })
      const [message] = await messagesOf(client, 1)
      // Text, whatever the subprotocol says.
      assert.equal(JSON.parse(message ?? '').type, 'MODIFIED')
      client.destroy()
      await ended(client)
    }
  })

  test('a token in a subprotocol says who it is, is not sent back, and is in no log', async () => {
    const token = issuers.token('good', { sub: 'token-user' })
    const asProtocol = TOKEN_PROTOCOL + Buffer.from(token).toString('base64url')
    const fields = { 'Sec-WebSocket-Protocol': `${asProtocol}, base64.binary.k8s.io` }
    // Its keys are read first.
    const client = await waitFor('the issuer', async () => {
      const one = await open({ cert: null, fields })
      return one.answer.status === 101 && one
    })
    assert.deepEqual(client.answer.values('sec-websocket-protocol'), ['base64.binary.k8s.io'])
    assert.equal(client.answer.head.join().includes(TOKEN_PROTOCOL), false)
    await goesOn(client)
    const logs = readFileSync(join(dir, 'audit.log'), 'utf8') + JSON.stringify(gateway.logged)
    assert.ok(logs.includes('oidc:token-user'))
    assert.ok(!logs.includes(token) && !logs.includes(asProtocol.slice(TOKEN_PROTOCOL.length)))
  })

  test('a token that is not good, or alone, is 401', async () => {
    const encode = (token: string): string => TOKEN_PROTOCOL + Buffer.from(token).toString('base64url')
    for (const protocols of [
      `${encode(issuers.token('good', {}, { by: 'foreign' }))}, base64.binary.k8s.io`,
      encode(issuers.token('good')),
      `${TOKEN_PROTOCOL}%%, base64.binary.k8s.io`,
    ]) {
      const client = await open({ cert: null, fields: { 'Sec-WebSocket-Protocol': protocols } })
      assert.ok([401, 503].includes(client.answer.status), String(client.answer.status))
      assert.ok(!client.answer.body.toString().includes('base64url'))
      client.destroy()
    }
  })

  test('who may not read is refused before it is looked at', async () => {
    east.mayRead = (user) => user !== 'bob'
    const client = await open({ cert: clientPair(clientCA, 'bob'), fields: { 'Sec-WebSocket-Key': undefined } })
    assert.equal(client.answer.status, 403)
    assert.match(client.answer.body.toString(), /cannot watch pods/)
    await ended(client)
  })
})

describe('other upgrades', () => {
  test('a watch that asks for SPDY is answered over HTTP, as by kube-apiserver', async () => {
    const client = await open({ query: 'timeoutSeconds=1', fields: { Upgrade: 'SPDY/3.1' } })
    assert.equal(client.answer.status, 200)
    assert.equal(JSON.parse(client.answer.body.toString()).type, 'ADDED')
    await ended(client)
  })

  test('so is a list that asks for a WebSocket, however large it is and slow its client', async () => {
    const note = 'n'.repeat(1024 * 1024)
    for (let at = 0; at < LARGE_PODS; at++) east.write(`large-${at}`, { note: `${at}${note}` })
    await waitFor('them', async () => JSON.parse((await list()).body.toString()).items.length === LARGE_PODS + 1)
    const client = await http1Connect({ port: gateway.port, serverName: 'all', cert: alice })
    client.raw.socket.pause()
    client.send(requestHead(`GET ${PODS}`, ['Host: all', 'Connection: Upgrade', 'Upgrade: websocket']))
    const plain = await list()
    client.raw.socket.resume()
    const slow = await client.response()
    assert.equal(slow.status, 200)
    assert.ok(slow.body.equals(plain.body))
    client.destroy()
    for (let at = 0; at < LARGE_PODS; at++) east.write(`large-${at}`)
  })
})

describe('what clients send', () => {
  test('a close ends it, and is answered', async () => {
    const client = await open()
    client.send(clientFrame(CLOSE, Buffer.from([3, 0xe9])))
    assert.equal(await ended(client), 1000)
  })

  test('so does the end of its connection, in one direction or both', async () => {
    const half = await open()
    half.raw.socket.end()
    assert.equal(await ended(half), 1000)
    const whole = await open()
    whole.destroy()
    await ended(whole)
  })

  test('messages are ignored, with the request or later, in parts or whole', async () => {
    const client = await open({ behind: clientFrame(TEXT, 'first') })
    client.send(
      clientFrame(TEXT),
      clientFrame(BINARY, Buffer.alloc(200_000)),
      clientFrame(TEXT, 'a', { isFinal: false }),
      clientFrame(PING, 'between'),
      clientFrame(CONTINUATION, 'b'),
    )
    await waitFor('the pong', () => client.frames().some(({ opcode }) => opcode === PONG))
    await goesOn(client)
  })

  test('a message without end keeps nothing and ends nothing', async () => {
    const client = await open()
    client.send(clientFrame(TEXT, 'x', { isFinal: false }))
    const part = clientFrame(CONTINUATION, 'x'.repeat(1000), { isFinal: false })
    for (let at = 0; at < 100; at++) client.send(...Array.from({ length: 100 }, () => part))
    await goesOn(client)
  })

  test('a ping is answered with what it says, also when it came with the request', async () => {
    const client = await open({ behind: clientFrame(PING, 'early') })
    const pongs = (): string[] =>
      client.frames().flatMap(({ opcode, payload }) => (opcode === PONG ? [payload.toString()] : []))
    await waitFor('a pong', () => pongs().length === 1)
    client.send(clientFrame(PING, 'p'.repeat(125)))
    await waitFor('another', () => pongs().length === 2)
    assert.deepEqual(pongs(), ['early', 'p'.repeat(125)])
    await goesOn(client)
  })

  test('of a flood of pings some are answered, the last among them, and others are served meanwhile', async () => {
    const client = await open()
    const COUNT = 200_000
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => clientFrame(PING, 'x')))
    for (let at = 0; at < COUNT / 1000; at++) client.send(pings)
    assert.equal((await list()).status, 200)
    client.send(clientFrame(PING, 'last'))
    const pongs = (): Buffer[] => client.frames().flatMap(({ opcode, payload }) => (opcode === PONG ? [payload] : []))
    await waitFor('the last', () => pongs().some((payload) => payload.toString() === 'last'))
    assert.ok(pongs().length < COUNT / 10, `${pongs().length} pongs`)
    await goesOn(client)
  })

  for (const [name, frame] of [
    ['a frame that is not masked', clientFrame(TEXT, 'x', { isMasked: false })],
    ['a close that is not masked', clientFrame(CLOSE, '', { isMasked: false })],
    ['reserved bits', clientFrame(TEXT, 'x', { reserved: 0x40 })],
    ['an unknown type', clientFrame(5, 'x')],
    ['a ping in parts', clientFrame(PING, 'x', { isFinal: false })],
    ['a ping that is too long', clientFrame(PING, 'x'.repeat(126))],
    ['a continuation of nothing', clientFrame(CONTINUATION, 'x')],
    ['a frame that is too long', clientFrame(TEXT, '', { announced: 32 * 1024 * 1024 + 1 })],
    ['a frame without end', clientFrame(BINARY, '', { announced: 2 ** 40 })],
    ['another request', Buffer.from(requestHead(`GET ${PODS}`))],
  ] as const) {
    test(`${name} ends it with an error of the protocol`, async () => {
      const client = await open()
      client.send(frame)
      assert.equal(await ended(client), 1002)
      assert.deepEqual(
        client.frames().filter(({ opcode }) => opcode !== CLOSE),
        [],
      )
    })
  }

  test('who reads nothing keeps a bounded part of what happens, and is ended between two events', async () => {
    const client = await open()
    client.raw.socket.pause()
    const note = 'n'.repeat(NOTE_BYTES)
    for (let at = 0; at < FLOOD_EVENTS && (await watches()) > 0; at++) {
      east.write('web', { note })
      if (at % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await waitFor('its end', async () => (await watches()) === 0)
    client.raw.socket.resume()
    await client.raw.closed
    const messages = client.messages()
    assert.ok(messages.length < FLOOD_EVENTS, `${messages.length} of ${FLOOD_EVENTS}`)
    for (const message of messages) assert.equal(JSON.parse(message).object.metadata.annotations.note, note)
    assert.equal(client.closed(), 1000)
    east.write('web')
  })
})

describe('who ends it', () => {
  test('its time', async () => {
    const client = await open({ query: 'timeoutSeconds=1' })
    assert.equal(await ended(client), 1000)
  })

  test('a user who is revoked', async () => {
    const client = await open()
    gateway.apply(objects({ revoked: [{ user: 'alice', reason: 'left' }] }))
    assert.equal(await ended(client), 1000)
    gateway.apply(objects())
    await waitFor('alice', async () => (await list()).status === 200)
  })

  test('a limit of watches counts it, and gives its place back', async () => {
    const flowControl = { flowControlSchemas: [{ name: 'one', exempt: true, maxWatches: 1 }] }
    const dispatchPolicies = [{ ...ALLOW_ALL, flowControlSchemaName: 'one' }]
    gateway.apply(objects({ flowControl, dispatchPolicies }))
    const first = await waitFor('it to be allowed', async () => {
      const one = await open()
      return one.answer.status === 101 && one
    })
    const second = await open()
    assert.equal(second.answer.status, 429, second.answer.body.toString())
    first.send(clientFrame(CLOSE))
    await ended(first)
    const third = await open()
    assert.equal(third.answer.status, 101)
    third.destroy()
    await ended(third)
    gateway.apply(objects())
  })

  test('a policy that does not let it through', async () => {
    gateway.apply(
      objects({ dispatchPolicies: [{ rules: [{ verbs: ['get', 'list'], apiGroups: ['*'], resources: ['*'] }] }] }),
    )
    const client = await open()
    assert.equal(client.answer.status, 403)
    gateway.apply(objects())
  })

  test('the gateway, when it stops', async () => {
    const client = await open()
    const stopped = gateway.stop()
    await client.raw.closed
    assert.equal(client.closed(), 1000)
    await stopped
  })
})

test('a client of HTTP/1.1 that has begun a request on the connection gets no WebSocket on it', async () => {
  const one = await startInProcess(objects())
  try {
    const client = await http1Connect({ port: one.port, serverName: 'all', cert: alice })
    const upgrade = ['Host: all', 'Connection: Upgrade', 'Upgrade: websocket', 'Origin: https://all']
    const handshake = [...upgrade, 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x']
    client.send(requestHead(`GET ${PODS}?watch=1`, ['Host: all']) + requestHead(`GET ${PODS}?watch=1`, handshake))
    await client.raw.closed
    assert.doesNotMatch(client.raw.text(), / 101 /)
  } finally {
    await one.stop()
  }
})
