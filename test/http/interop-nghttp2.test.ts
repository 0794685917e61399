// The gateway in front of other people's HTTP/2 servers: nghttp2's nghttpd, and nghttpx as a proxy on the way to a stub.
// (kube-apiserver, on Go's implementation, is in e2e/.)

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clusterObject } from '../harness/objects/objects.ts'
import { writeKeyPair } from '../harness/pki.ts'
import { withFreePorts } from '../harness/ports.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'
import { reply, startStub, stubServing } from '../harness/upstreams/stub-upstream.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-nghttp2-'))
const served = join(folder, 'htdocs')
const BODY = Buffer.alloc(1_000_000, 'body')
/** The stub, on node:http2, refuses streams when it has more than 10 MB to send. */
const PIECE = BODY.subarray(0, 100_000)
const { ca, pair } = stubServing()
const files = writeKeyPair(folder, 'server', pair)

before(() => {
  mkdirSync(join(served, 'api/v1'), { recursive: true })
  writeFileSync(join(served, 'readyz'), 'ok')
  writeFileSync(join(served, 'api/v1/pods'), BODY)
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Starts a server that listens on a port of ours. */
function startServer(
  name: string,
  args: (port: number) => string[],
): Promise<{ server: RunningProcess; port: number }> {
  return withFreePorts(1, async ([port = 0]) => {
    const server = await startProcess({
      name: `${name} (package nghttp2)`,
      command: name,
      args: args(port),
      logFile: join(folder, `${name}.log`),
      ready: () => isListening(port),
    })
    return { server, port }
  })
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function gatewayTo(port: number): Promise<InProcessGateway> {
  return startInProcess([
    clusterObject([], {
      spec: {
        default: true,
        servers: [{ endpoint: `https://127.0.0.1:${port}` }],
        clientConfig: { bearerToken: base64('gateway-token'), caData: base64(ca.certPem) },
      },
    }),
  ])
}

const NGHTTPD: readonly (readonly [string, string[]])[] = [
  ['as it is', []],
  ['with padding and trailers', ['-b', '200', '--trailer', 'x-sum: 7']],
  ['with small windows and few streams', ['-w', '14', '-W', '16', '-m', '3']],
  ['without a dynamic table', ['-c', '0', '--encoder-header-table-size=0']],
]

describe('nghttpd', () => {
  for (const [name, args] of NGHTTPD) {
    test(`${name}: 60 downloads, 20 at a time, and an upload`, async () => {
      const { server, port } = await startServer('nghttpd', (free) => [
        ...['-d', served, '-a', '127.0.0.1', '--echo-upload', ...args],
        ...[String(free), files.key, files.cert],
      ])
      const gateway = await gatewayTo(port)
      const session = h2Connect({ port: gateway.port })
      try {
        for (let round = 0; round < 3; round++) {
          const answers = await Promise.all(
            Array.from({ length: 20 }, () => h2Request(session, [':authority', '127.0.0.1'])),
          )
          for (const { status, body, resetCode, trailers } of answers) {
            assert.deepEqual([status, resetCode, body.equals(BODY)], [200, 0, true])
            if (name.includes('trailers')) assert.deepEqual(trailers, ['x-sum', '7'])
          }
        }
        const posted = await h2Request(session, [':authority', '127.0.0.1', ':method', 'POST'], BODY)
        assert.deepEqual([posted.status, posted.body.equals(BODY)], [200, true])
      } finally {
        session.destroy()
        await gateway.stop()
        await server.stop(0)
      }
    })
  }
})

test('nghttpx in between: reads, writes and large bodies pass', async () => {
  const stub = await startStub()
  stub.answer = (request) => {
    if (request.method === 'GET') return reply(request, 200, PIECE.toString())
    request.stream.respond([':status', '201'])
    request.stream.pipe(request.stream)
    return undefined
  }
  const { server, port } = await startServer('nghttpx', (free) => [
    `--frontend=127.0.0.1,${free}`,
    `--backend=127.0.0.1,${stub.port};;proto=h2;tls`,
    ...['--insecure', '--workers=1', '--errorlog-file=/dev/stderr', '--accesslog-file=/dev/null'],
    ...[files.key, files.cert],
  ])
  const gateway = await gatewayTo(port)
  const session = h2Connect({ port: gateway.port })
  try {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        i % 2 === 0
          ? h2Request(session, [':authority', '127.0.0.1'])
          : h2Request(session, [':authority', '127.0.0.1', ':method', 'POST'], PIECE),
      ),
    )
    for (const [i, { status, body, resetCode }] of answers.entries()) {
      const wanted = i % 2 === 0 ? [200, PIECE.length, 0] : [201, PIECE.length, 0]
      assert.deepEqual([status, body.length, resetCode], wanted)
    }
  } finally {
    session.destroy()
    await gateway.stop()
    await server.stop(0)
    await stub.stop()
  }
})
