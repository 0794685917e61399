// Recordings of kubectl port-forward, over WebSocket and SPDY, and of the channels of older clients, on a real kube-apiserver and a kubelet's own streaming
// code: what is in the file is what passed, byte by byte.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { MAX_FORWARD_STREAMS } from '../../src/sessions/core/protocol/port-forward.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type RunningKubectl, SPDY, startKubectl } from '../harness/kubectl/kubectl.ts'
import { type Played, type PlayOptions, playRecording } from '../harness/sessions/play.ts'
import { waitFor } from '../harness/wait.ts'

const POD = 'target'
const CONNECTIONS = 20
const LARGE = 1_000_000
/** More than there may be at a time. */
const MANY = MAX_FORWARD_STREAMS
const folder = mkdtempSync(join(tmpdir(), 'port-forwards-'))
const keyFile = join(folder, 'sessions.key')
writeFileSync(keyFile, `${randomBytes(32).toString('base64')}\n`)
const auditLog = join(folder, 'audit.log')
const dir = join(folder, 'recordings')

let cluster: TestCluster
let gateway: TestGateway
let kubeconfig = ''
let pod: Server
const known = new Set<string>()

/** What the pod answers: other bytes than it got, so that directions cannot be mixed up. */
const answerTo = (bytes: Buffer): Buffer => bytes.map((byte) => byte ^ 0xff) as Buffer

/** The program in the pod. */
function startPod(): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    socket.on('data', (bytes) => socket.write(answerTo(bytes)))
    socket.on('end', () => socket.end())
    socket.on('error', () => undefined)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

before(async () => {
  pod = await startPod()
  const forward = `127.0.0.1:${(pod.address() as AddressInfo).port}`
  cluster = await startCluster({ nodes: 1, controllerManager: true, kwok: true, kubelet: { forward } })
  const container = { name: 'c', image: 'c:1', ports: [{ containerPort: 80 }] }
  const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name: POD } }
  await cluster.apply(JSON.stringify({ ...manifest, spec: { nodeName: 'node-0', containers: [container] } }))
  const ready = await cluster.kubectl(['wait', `pod/${POD}`, '--for=condition=Ready'])
  assert.equal(ready.code, 0, ready.stderr)
  const sessions = { portForwards: 'InputAndOutput', whenFull: 'Block' } as const
  gateway = await startGateway({
    clusters: [upstreamClusterFor(cluster, { spec: { healthCheck: { intervalSeconds: 1 }, audit: { sessions } } })],
    args: [`--session-recording-dir=${dir}`, `--session-recording-key-file=${keyFile}`, `--audit-log-path=${auditLog}`],
  })
  kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  pod?.close()
  rmSync(folder, { recursive: true })
})

const played = (file: string, how: Omit<PlayOptions, 'keyFile'>): Promise<Played> =>
  playRecording(file, { keyFile, ...how })

/** The file that is new since the last call. */
async function recorded(): Promise<string> {
  const name = await waitFor('a recording', () =>
    readdirSync(dir).find((one) => one.endsWith('.session') && !known.has(one)),
  )
  known.add(name)
  return join(dir, name)
}

interface Carried {
  readonly port: number
  readonly sent: Buffer
  readonly got: Buffer
}

/** What a file says of each connection, read as another program would: by the header and the markers alone. */
async function connectionsOf(file: string): Promise<readonly Carried[]> {
  const { code, out } = await played(file, { cast: true })
  assert.equal(code, 0)
  const [header, ...events] = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual([header.portcullis.kind, header.portcullis.dataEncoding], ['portforward', 'latin1'])
  const found = new Map<string, { port: number; sent: Buffer[]; got: Buffer[] }>()
  let current: { sent: Buffer[]; got: Buffer[] } | undefined
  for (const [, kind, data] of events) {
    const [, number, port] = /^connection (\d+) to port (\d+)/.exec(kind === 'm' ? data : '') ?? []
    if (number !== undefined) {
      const connection = found.get(number) ?? { port: Number(port), sent: [], got: [] }
      found.set(number, connection)
      current = connection
    }
    if (kind === 'i') current?.sent.push(Buffer.from(data, 'latin1'))
    if (kind === 'o') current?.got.push(Buffer.from(data, 'latin1'))
  }
  return [...found.values()].map(({ port, sent, got }) => ({
    port,
    sent: Buffer.concat(sent),
    got: Buffer.concat(got),
  }))
}

/** Sends piece by piece, so that connections take turns. */
function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let got = 0
    const step = Math.ceil(bytes.length / 5)
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes.subarray(0, step)))
    let sent = step
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      got += chunk.length
      if (got === bytes.length) socket.end()
      else if (got >= sent) {
        socket.write(bytes.subarray(sent, sent + step))
        sent += step
      }
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks)))
  })
}

/** Resets the connection once the pod has answered. */
function breakOff(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write('x'))
    socket.on('data', () => socket.resetAndDestroy())
    socket.on('error', reject)
    socket.on('close', () => resolve())
  })
}

async function forwarding(ports: readonly string[], env: Readonly<Record<string, string>>): Promise<RunningKubectl> {
  return await startKubectl(['port-forward', POD, ...ports], { kubeconfig, env })
}

const localPort = async (running: RunningKubectl, remote: number): Promise<number> =>
  Number((await running.output(new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${remote}\\b`)))[1])

for (const [protocol, env, name] of [
  ['WebSocket', { KUBECTL_PORT_FORWARD_WEBSOCKETS: 'true' }, 'websocket SPDY/3.1+portforward.k8s.io'],
  ['SPDY', SPDY, 'SPDY/3.1 portforward.k8s.io'],
] as const) {
  describe(protocol, () => {
    test(`${CONNECTIONS} connections at once to two ports, and a large one`, async () => {
      const running = await forwarding([':80', ':81'], env)
      const ports = [await localPort(running, 80), await localPort(running, 81)]
      const texts = Array.from({ length: CONNECTIONS }, (_, at) => randomBytes(at === 0 ? LARGE : 5000 + at))
      const answers = await Promise.all(texts.map((bytes, at) => exchange(ports[at % 2] ?? 0, bytes)))
      for (const [at, answer] of answers.entries()) assert.ok(answer.equals(answerTo(texts[at] ?? answer)))
      await running.stop()
      const file = await recorded()
      const found = await connectionsOf(file)
      assert.equal(found.length, CONNECTIONS)
      for (const [at, sent] of texts.entries()) {
        const one = found.find((connection) => connection.sent.equals(sent))
        assert.ok(one, `connection ${at} is recorded`)
        assert.deepEqual([one.port, one.got.equals(answerTo(sent))], [at % 2 === 0 ? 80 : 81, true])
      }
      const first = found[0]
      assert.ok((await played(file, { connection: '1' })).bytes.equals(first?.got ?? Buffer.alloc(1)))
      assert.ok((await played(file, { connection: '1', sent: true })).bytes.equals(first?.sent ?? Buffer.alloc(1)))
      const fields = await waitFor('the end in the audit log', () => {
        const events = readFileSync(auditLog, 'utf8').split('\n').slice(0, -1)
        return events
          .map((line) => JSON.parse(line))
          .find(({ annotations }) => file.endsWith(`/${annotations['portcullis.io/session-recording'] ?? ' '}`))
          ?.annotations
      })
      assert.equal(fields['portcullis.io/session-protocol']?.toLowerCase(), name.toLowerCase())
      assert.equal(fields['portcullis.io/session-recording-incomplete'], undefined)
    })

    test(`${MANY} connections one after the other, some of which clients break off`, async () => {
      const running = await forwarding([':80'], env)
      const port = await localPort(running, 80)
      for (let at = 0; at < MANY; at++) {
        if (at % 3 === 0) await breakOff(port)
        else await exchange(port, Buffer.from(`connection ${at}`))
      }
      await running.stop()
      const found = await connectionsOf(await recorded())
      assert.equal(found.length, MANY, 'the recording goes on to the end')
      for (const [at, { sent }] of found.entries()) {
        if (at % 3 !== 0) assert.equal(sent.toString(), `connection ${at}`)
      }
    })

    test('what is played is readable, and cannot reach the terminal', async () => {
      const running = await forwarding([':80'], env)
      const text = Buffer.from('GET / HTTP/1.1\r\n\x1b]52;c;cm0gLXJmIC8=\x07\r\n')
      await exchange(await localPort(running, 80), text)
      await running.stop()
      const { out, err } = await played(await recorded(), { text: true })
      assert.match(err, /kind portforward/)
      assert.match(out, /^connection 1 to port 80 begins\n/)
      assert.match(out, /1:80 > GET \//)
      assert.match(out, /\\x1b\]/)
      assert.match(out, /1:80 < \\xb8\\xba/)
      assert.match(out, /^[\n -~]*connection 1 to port 80 ends\n[\n -~]*$/)
    })
  })
}

test('in the channels of older clients', async () => {
  const host = hostOf(cluster.name)
  const client = await http1Connect({ port: gateway.port, serverName: host, cert: cluster.admin.cert })
  const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  const key = `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`
  const path = `/api/v1/namespaces/default/pods/${POD}/portforward?ports=80&ports=81`
  client.send(
    requestHead(`GET ${path}`, [`Host: ${host}`, ...fields, key, 'Sec-WebSocket-Protocol: v4.channel.k8s.io']),
  )
  assert.equal((await client.response()).status, 101)
  for (const [channel, text] of [
    [0, 'to 80'],
    [2, 'to 81'],
  ] as const) {
    const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)])
    client.send(Buffer.concat([Buffer.from([0x82, 0x80 | payload.length, 0, 0, 0, 0]), payload]))
  }
  await waitFor('both answers', () => {
    const received = client.raw.received()
    return ['to 80', 'to 81'].every((text) => received.includes(answerTo(Buffer.from(text))))
  })
  client.destroy()
  const found = await connectionsOf(await recorded())
  assert.deepEqual(found.map(({ port, sent, got }) => [port, sent.toString(), answerTo(got).toString()]).sort(), [
    [80, 'to 80', 'to 80'],
    [81, 'to 81', 'to 81'],
  ])
})

test('what a kubelet says of a connection that it cannot make', async () => {
  await new Promise((resolve) => pod.close(resolve))
  const running = await forwarding([':80'], {})
  const port = await localPort(running, 80)
  await exchange(port, Buffer.from('x')).catch(() => undefined)
  await running.output(/error forwarding port 80/)
  await running.stop()
  const { out } = await played(await recorded(), { text: true })
  assert.match(out, /^connection 1 to port 80 error: error forwarding port 80 to pod /m)
})
