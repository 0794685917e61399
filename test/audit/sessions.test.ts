// Sessions in the audit log: which container and command, how much went each way, and who ended it.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const folder = mkdtempSync(join(tmpdir(), 'audit-'))
const auditLogPath = join(folder, 'audit.log')
const POD = '/api/v1/namespaces/prod/pods/web-1'
const V5 =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n'

let stub: Http1Stub
let gateway: InProcessGateway
let object: ReturnType<typeof clusterObject>

before(async () => {
  stub = await startHttp1Stub()
  const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(stub.caPem) }
  const spec = { servers: [{ endpoint: stub.url }], clientConfig }
  object = clusterObject([], { clientCA, spec })
  gateway = await startInProcess([object], { auditLogPath })
})
after(async () => {
  await gateway.stop()
  await stub.stop()
  rmSync(folder, { recursive: true })
})

interface Event {
  readonly stage: string
  readonly requestURI: string
  readonly objectRef: unknown
  readonly annotations: Readonly<Record<string, string>>
}

/** What the event of this stage says of the session. */
async function told(name: string, stage = 'ResponseComplete'): Promise<Readonly<Record<string, string>>> {
  const event = await waitFor(`the ${stage} of ${name}`, () => {
    const lines = readFileSync(auditLogPath, 'utf8').split('\n').slice(0, -1)
    return lines
      .map((line): Event => JSON.parse(line))
      .find((one) => one.stage === stage && one.requestURI.includes(name))
  })
  const fields = Object.entries(event.annotations).filter(([key]) => key.startsWith('portcullis.io/session-'))
  return Object.fromEntries(fields.map(([key, value]) => [key.slice('portcullis.io/session-'.length), value]))
}

async function open(target: string, answer = V5): Promise<Awaited<ReturnType<typeof http1Connect>>> {
  stub.answerUpgrade = ({ socket }) => void socket.write(answer)
  const client = await http1Connect({ port: gateway.port, serverName: 'prod.example.com', cert: alice })
  client.send(requestHead(`GET ${target}`, ['Host: prod.example.com', 'Connection: Upgrade', 'Upgrade: websocket']))
  await client.response()
  return client
}

const upstream = (): (typeof stub.upgrades)[number] => {
  const found = stub.upgrades.at(-1)
  assert.ok(found)
  return found
}

test('a session that the client ends', async () => {
  const client = await open(
    `${POD}/exec?container=one&command=sh&command=-c&command=echo%20%E2%80%AE%1b%5d0%07&stdin=true&tty=true`,
  )
  const asked = {
    container: 'one',
    command: '["sh","-c","echo \\u202e\\u001b]0\\u0007"]',
    streams: 'stdin,tty',
    protocol: 'websocket v5.channel.k8s.io',
  }
  assert.deepEqual(await told('container=one', 'ResponseStarted'), asked)
  client.send('12345')
  await waitFor('the bytes to arrive', () => upstream().received() === '12345')
  upstream().socket.write('123')
  await client.raw.until(/123$/)
  client.destroy()
  assert.deepEqual(await told('container=one'), {
    ...asked,
    'bytes-from-client': '5',
    'bytes-to-client': '3',
    'ended-by': 'client',
  })
})

test('a session that upstream ends, with the last bytes', async () => {
  await open(`${POD}/attach?container=two`)
  upstream().socket.end('goodbye')
  const { container, ...others } = await told('container=two')
  assert.equal(container, 'two')
  assert.deepEqual(others, {
    protocol: 'websocket v5.channel.k8s.io',
    'bytes-from-client': '0',
    'bytes-to-client': '7',
    'ended-by': 'upstream',
  })
})

test('a session that the gateway ends is recorded with its bytes', async () => {
  const client = await open(`${POD}/portforward?ports=8080&x=three`)
  client.send('12345678')
  await waitFor('the bytes to arrive', () => upstream().received() === '12345678')
  const spec = {
    ...object.spec,
    authentication: { ...object.spec.authentication, revoked: [{ user: 'alice' }] },
  }
  gateway.apply([{ ...object, spec }])
  const found = await told('x=three')
  gateway.apply([object])
  assert.deepEqual(found, {
    ports: '8080',
    protocol: 'websocket v5.channel.k8s.io',
    'bytes-from-client': '8',
    'bytes-to-client': '0',
    'ended-by': 'gateway',
  })
})

test('a session that upstream refuses is one of which only the request is known', async () => {
  const client = await open(`${POD}/exec?container=four`, 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
  assert.deepEqual(await told('container=four'), { container: 'four' })
  client.destroy()
})
