// A socket that the gateway inherits: it serves on it, names what is wrong with it, and another process takes over without a lost connection.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { numberEvents } from '../harness/clients/numbered-events.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { RestartTraffic, ResumedWatch } from '../harness/clients/restart-traffic.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type HeldSocket, holdSocket } from '../harness/gateways/inherited-sockets.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { MAIN } from '../harness/program.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

const cleanups: (() => unknown)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

async function setUp(): Promise<{ socket: HeldSocket; start(more?: Partial<GatewayOptions>): Promise<TestGateway> }> {
  const stub = await startStub()
  const socket = await holdSocket()
  cleanups.push(stub.stop, socket.close)
  return {
    socket,
    async start(more = {}) {
      const clusters = [clusterObject([stub], { clientCA })]
      const gateway = await startGateway({ clusters, sockets: [{ name: 'https', socket }], ...more })
      cleanups.push(() => gateway.stop())
      return gateway
    },
  }
}

/** One request on a connection of its own; '' or why it failed. */
async function requestOnce(port: number): Promise<string> {
  const session = h2Connect({ port, serverName: 'prod.example.com', certificate: alice })
  try {
    const { status, resetCode } = await h2Request(session, [])
    return status === 200 && resetCode === 0 ? '' : `${status} ${resetCode}`
  } catch (error) {
    return String(error)
  } finally {
    session.destroy()
  }
}

/** Rejects when no server listens. */
function openTcp(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(socket))
    socket.on('error', reject)
  })
}

describe('an inherited socket', () => {
  test(
    'is served by all threads in turn, says what it is, and connections that were there before the gateway are served',
    PATIENT,
    async () => {
      const { socket, start } = await setUp()
      const early = requestOnce(socket.port)
      const gateway = await start()
      assert.match(gateway.logs(), new RegExp(`listening on systemd:https \\(port ${socket.port}\\)`))
      assert.equal(await early, '')
      const sessions = Array.from({ length: 8 }, () =>
        h2Connect({ port: socket.port, serverName: 'prod.example.com', certificate: alice }),
      )
      cleanups.push(() => {
        for (const session of sessions) session.destroy()
      })
      for (const session of sessions) assert.equal((await h2Request(session, [])).status, 200)
      const { threads } = JSON.parse((await gateway.admin('/debug/config')).text) as {
        threads: { clientConnections: number }[]
      }
      for (const { clientConnections } of threads)
        assert.ok(clientConnections >= 8 / threads.length, JSON.stringify(threads))
    },
  )
})

test('with a PROXY protocol header, which the thread reads that gets the connection', PATIENT, async () => {
  const { socket, start } = await setUp()
  const args = ['--listen=systemd:https/proxy-protocol', '--proxy-protocol-from=127.0.0.1/32']
  const gateway = await start({ sockets: [{ name: 'https', socket, flag: '' }], args })
  assert.match(gateway.logs(), new RegExp(`listening on systemd:https.* \\(port ${socket.port}\\)`))
  const answer = async (header: string): Promise<string> => {
    const plain = await openTcp(socket.port)
    plain.write(header)
    const tls = connectTls({
      socket: plain,
      servername: 'prod.example.com',
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    })
    let text = ''
    tls.on('error', () => undefined)
    tls.on('data', (chunk) => {
      text += String(chunk)
    })
    tls.write('GET /api HTTP/1.1\r\nHost: prod.example.com\r\nConnection: close\r\n\r\n')
    await new Promise((resolve) => tls.once('close', resolve))
    return text
  }
  assert.match(await answer('PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n'), /^HTTP\/1\.1 200 /)
  assert.equal(await answer(''), '', 'without one it is closed')
})

describe('what is no socket', () => {
  /** Runs `serve` with a file in the place of the socket; how it ends, and what it says to people. */
  async function serve(listen: string, env: Readonly<Record<string, string>>): Promise<string> {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-inherited-'))
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
    const flags = [
      '--source=files',
      `--config-dir=${dir}`,
      `--data-dir=${join(dir, 'data')}`,
      '--admin-listen=127.0.0.1:0',
    ]
    const file = openSync('/dev/null', 'r')
    const child = spawn(process.execPath, [MAIN, 'serve', `--listen=${listen}`, '--threads=1', ...flags], {
      stdio: ['ignore', 'ignore', 'pipe', file],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, PORTCULLIS_TEST_THREADS: undefined, ...env },
    })
    closeSync(file)
    endWithThisProcess(child)
    let text = ''
    child.stderr?.on('data', (chunk) => {
      text += String(chunk)
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    assert.equal(lines.length, 1, text)
    return lines[0] ?? ''
  }

  test('one line says so, exit code 1: nothing inherited, a file, an address twice', PATIENT, async () => {
    const said = await Promise.all([serve('systemd:https', {}), serve('fd:3', {}), serve('fd:3,fd:3', {})])
    const [nothing = '', file = '', twice = ''] = said
    assert.match(nothing, /^error: --listen systemd:https: this process was given no sockets .*\.socket unit/)
    assert.match(file, /^error: cannot listen on --listen fd:3: .*; pass a TCP socket that listens$/)
    assert.match(twice, /^error: .*fd:3 is given twice/)
  })
})

describe('the ports of objects', () => {
  test('the embedded API server listens on an inherited socket, too', PATIENT, async () => {
    const { socket, start } = await setUp()
    const control = await holdSocket()
    cleanups.push(control.close)
    const sockets = [
      { name: 'https', socket },
      { name: 'control', socket: control, flag: '--control-listen' },
    ]
    const gateway = await start({ clusters: [], source: ['--source=embedded'], sockets })
    assert.match(gateway.logs(), new RegExp(`API server on systemd:control \\(port ${control.port}\\)`))
    const kubeconfig = readFileSync(/its kubeconfig (\S+?);?(\s|$)/.exec(gateway.logs())?.[1] ?? '', 'utf8')
    assert.match(kubeconfig, new RegExp(`server: https://localhost:${control.port}\n`))
    const raw = await openRaw({ port: control.port, alpn: ['http/1.1'] })
    raw.send('GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    await raw.closed
    assert.match(raw.text(), /^HTTP\/1\.1 200 /)
  })
})

describe('systemd-socket-activate', () => {
  test('starts the gateway at the first connection', PATIENT, async () => {
    const stub = await startStub()
    const [port = 0] = await freePorts(1)
    // The script execs Node: LISTEN_PID stays right.
    const script = join(import.meta.dirname, '../../bin/portcullis')
    const program = ['systemd-socket-activate', `--listen=127.0.0.1:${port}`, '--fdname=https', script] as const
    const starting = startGateway({
      clusters: [clusterObject([stub], { clientCA })],
      program: [...program],
      own: 'systemd:https',
    })
    // The connection that starts it.
    const early = await waitFor('the socket', () => openTcp(port))
    cleanups.push(() => void early.destroy())
    const gateway = await starting
    cleanups.push(() => gateway.stop(), stub.stop)
    assert.equal(await requestOnce(port), '')
    assert.equal(early.destroyed, false)
    assert.match(gateway.logs(), new RegExp(`listening on systemd:https \\(port ${port}\\)`))
  })
})

describe('hand-over on one host', () => {
  for (const [title, rate, rounds] of [
    ['', 100, 2],
    [' at 500 requests/s, five times (long)', 500, 5],
  ] as const) {
    test(`no request and no event is lost${title}`, PATIENT, async (t) => {
      const stub = await startStub()
      const events = numberEvents(stub)
      const socket = await holdSocket()
      const clusters = [clusterObject([stub], { clientCA })]
      const start = () =>
        startGateway({
          clusters,
          sockets: [{ name: 'https', socket }],
          drainTimeout: '3s',
          args: ['--log-level=debug'],
        })
      let serving = await start()
      const at = { port: socket.port, serverName: 'prod.example.com', certificate: alice }
      const traffic = new RestartTraffic({
        ...at,
        requestsPerSecond: rate,
        sessions: 8,
        freshEvery: 10,
        path: '/api/v1/pods',
      })
      const path = '/api/v1/configmaps?watch=1&resourceVersion='
      const watches = Array.from({ length: 10 }, () => new ResumedWatch({ ...at, path, since: events.version }))
      t.after(async () => {
        await serving.stop()
        events.stop()
        await Promise.all([stub.stop(), socket.close()])
      })
      traffic.start()
      for (const watch of watches) watch.start()
      for (let round = 0; round < rounds; round++) {
        const before = traffic.counted.served
        await waitFor('traffic', () => traffic.counted.served > before + rate / 2)
        const next = await start()
        serving.signal('SIGTERM')
        assert.equal(await serving.exited, 0)
        await serving.stop()
        serving = next
      }
      const last = events.version
      await waitFor('all events', () => watches.every(({ seen }) => (seen.at(-1) ?? 0) >= last))
      for (const watch of watches) await watch.stop()
      const { served, repeated, moved, failures } = await traffic.stop()
      t.diagnostic(
        `${served} served, ${repeated} repeated, ${moved} moved, ${watches.map(({ resumed }) => resumed)} resumed`,
      )
      assert.deepEqual(failures, [])
      for (const { seen, failures: broken, resumed } of watches) {
        assert.deepEqual(broken, [])
        assert.ok(resumed >= rounds)
        const [first = 0] = seen
        assert.deepEqual(
          seen,
          seen.map((_, i) => first + i),
          'each event once, in order',
        )
      }
    })
  }
})

test('a restart: connections that come between two processes wait, and none fails', PATIENT, async (t) => {
  const stub = await startStub()
  const socket = await holdSocket()
  const clusters = [clusterObject([stub], { clientCA })]
  const start = () => startGateway({ clusters, sockets: [{ name: 'https', socket }], drainTimeout: '1s' })
  let gateway = await start()
  const at = { port: socket.port, serverName: 'prod.example.com', certificate: alice }
  const traffic = new RestartTraffic({ ...at, requestsPerSecond: 40, sessions: 4, freshEvery: 4, path: '/api/v1/pods' })
  t.after(async () => {
    await gateway.stop()
    await Promise.all([stub.stop(), socket.close()])
  })
  traffic.start()
  await waitFor('traffic', () => traffic.counted.served > 20)
  gateway.signal('SIGTERM')
  assert.equal(await gateway.exited, 0)
  const atEnd = traffic.counted.served
  gateway = await start()
  await waitFor('what waited to be served', () => traffic.counted.served > atEnd + 20)
  const { served, moved, failures } = await traffic.stop()
  t.diagnostic(`${served} served, ${moved} connections moved, ${failures.length} failed`)
  assert.deepEqual(failures, [])
})
