// A real HAProxy in front, with send-proxy and send-proxy-v2: what it declares counts, and its health checks are answered.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parseCidr } from '../../src/kit/core/dial/cidr.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { withFreePorts } from '../harness/ports.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const BY_ADDRESS = 'by-address.example.com'
/** Where HAProxy listens; the gateway does not. */
const VIP = '127.0.0.80'
/** Where HAProxy connects from. */
const HAPROXY = '127.0.0.81'
const CLIENT = '127.0.0.9'
const MODES = ['send-proxy', 'send-proxy-v2', 'send-proxy-v2 proxy-v2-options crc32c,unique-id,authority,ssl'] as const
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
const serving = serverCertificate(clientCA, [BY_ADDRESS], [VIP])
let dir: string
let stub: StubUpstream
let gateway: InProcessGateway
let haproxy: RunningProcess
let ports: readonly number[] = []
let seen: SeenRequest[] = []

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-haproxy-'))
  stub = await startStub()
  stub.answer = (request) => {
    seen.push(request)
    reply(request, 200, '{}')
  }
  const byAddress = {
    addresses: { ips: [VIP] },
    secureServing: {
      clientCAData: base64(clientCA.certPem),
      certData: base64(serving.certPem),
      keyData: base64(serving.keyPem),
    },
  }
  gateway = await startInProcess(
    [clusterObject([stub], { clientCA }), clusterObject([stub], { name: BY_ADDRESS, spec: byAddress })],
    {
      listen: [{ host: '127.0.0.1', port: 0, proxyProtocol: true }],
      proxyProtocolFrom: [parseCidr(HAPROXY) ?? assert.fail()],
      threads: 2,
    },
  )
  haproxy = await withFreePorts(MODES.length, (free) => {
    ports = free
    return startHaproxy(free)
  })
})
after(async () => {
  await haproxy?.stop(0)
  await gateway?.stop()
  await stub?.stop()
  rmSync(dir, { recursive: true, force: true })
})

function startHaproxy(free: readonly number[]): Promise<RunningProcess> {
  const sections = MODES.map((mode, i) => {
    const server = `server gateway 127.0.0.1:${gateway.port} source ${HAPROXY} check inter 100ms ${mode}`
    return `listen l${i}\n  bind ${VIP}:${free[i] ?? 0}\n  unique-id-format %ci-%cp\n  ${server}\n`
  })
  const times = 'timeout connect 5s\n  timeout client 60s\n  timeout server 60s'
  const file = join(dir, 'haproxy.cfg')
  writeFileSync(file, `global\n  maxconn 200\ndefaults\n  mode tcp\n  ${times}\n${sections.join('')}`)
  return startProcess({
    name: 'haproxy',
    command: 'haproxy',
    args: ['-db', '-f', file],
    logFile: join(dir, 'haproxy.log'),
    ready: () => isOpen(free[0] ?? 0),
  })
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: VIP, port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function count(outcome: string): Promise<number> {
  const pattern = new RegExp(`proxy_protocol_connections_total\\{outcome="${outcome}"\\} (\\d+)`)
  return Number(pattern.exec(await gateway.metrics())?.[1] ?? 0)
}

for (const [i, mode] of MODES.entries()) {
  describe(mode, () => {
    test('the client is known by its own address, over HTTP/2 and HTTP/1.1', async () => {
      seen = []
      const session = await waitFor('HAProxy to use the gateway', async () => {
        const one = connectTo(ports[i] ?? 0)
        const { status } = await h2Request(one, [])
        if (status === 200) return one
        one.destroy()
        return undefined
      })
      session.destroy()
      const client = await http1Connect({
        host: VIP,
        port: ports[i] ?? 0,
        serverName: HOST,
        cert: alice,
        localAddress: CLIENT,
      })
      client.send(requestHead('GET /api/v1/pods'))
      assert.equal((await client.response()).status, 200)
      client.destroy()
      assert.deepEqual(new Set(seen.flatMap((request) => request.values('x-forwarded-for'))), new Set([CLIENT]))
    })

    test('the VIP chooses the cluster, and the certificate', async () => {
      const client = await http1Connect({ host: VIP, port: ports[i] ?? 0, cert: alice })
      assert.equal(client.raw.socket.getPeerCertificate().subject.CN, BY_ADDRESS)
      client.send(requestHead('GET /api/v1/pods', [], 'an-address'))
      assert.equal((await client.response()).status, 200)
      client.destroy()
    })
  })
}

test('its health checks are not errors, and no client bypasses it', async () => {
  // It resets them as soon as they are open: some are gone before they are accepted.
  await waitFor('health checks', async () => (await count('local')) + (await count('ended')) > 2 * MODES.length)
  assert.deepEqual([await count('invalid'), await count('timeout'), await count('untrusted')], [0, 0, 0])
  await assert.rejects(http1Connect({ port: gateway.port, serverName: HOST, cert: alice }))
  assert.equal(await count('untrusted'), 1)
})

function connectTo(port: number): ReturnType<typeof h2Connect> {
  return h2Connect({ host: VIP, port, serverName: HOST, certificate: alice, localAddress: CLIENT })
}
