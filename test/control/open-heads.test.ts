// Heads without an end at the ports of control plane and webhooks: what is kept of them is bounded over all connections, and an authenticated client sends
// large ones meanwhile.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { SILENT } from '../../src/kit/api/ports.ts'
import { ADMIN_GROUP } from '../../src/kube/api/own-names.ts'
import { issueCertificate } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import type { RunningGateway } from '../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw, type RawConnection } from '../harness/clients/raw-clients.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { allPorts } from '../harness/gateways/all-ports.ts'
import { waitFor } from '../harness/wait.ts'

const CONNECTIONS = 60
/** Those who are not known have 1 MiB, and as much on top, with an eighth in reserve; each head takes 64 KiB at least. */
const MOST = (2 * 1.125 * 1024) / 64
const HEAD = [':method', 'GET', ':path', '/api', ':scheme', 'https', ':authority', 'localhost']
const FIELD = 'y'.repeat(15_000)
const REASON = /127\.0\.0\.1 is sending \d+ of \d+ bytes that heads of requests to control plane and webhooks may take/
let dir: string
let gateway: RunningGateway
const closers: (() => unknown)[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-heads-'))
  const flags = {
    ...allPorts(join(dir, 'data')),
  }
  gateway = await startGateway(loadConfig({ flags, env: {}, readFile: () => '' }), { inline: true, log: SILENT })
  closers.push(
    () => rmSync(dir, { recursive: true, force: true }),
    () => gateway.stop(),
  )
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function begunHead(alpn: string): Buffer {
  if (alpn !== 'h2') {
    return Buffer.from(`GET /api HTTP/1.1\r\nHost: localhost\r\n${`X-A: ${FIELD}\r\n`.repeat(4)}`)
  }
  const piece = h2.frame(h2.CONTINUATION, 0, 1, h2.headerBlock(['x-a', FIELD]))
  const first = h2.frame(h2.HEADERS, h2.END_STREAM, 1, h2.headerBlock(HEAD))
  return Buffer.concat([Buffer.from(h2.PREFACE), h2.settings(), first, piece, piece, piece, piece])
}

for (const alpn of ['h2', 'http/1.1']) {
  test(`over ${alpn}, at both ports`, async () => {
    const ca = {
      certPem: readFileSync(join(dir, 'data/control/pki/ca.crt'), 'utf8'),
      keyPem: readFileSync(join(dir, 'data/control/pki/ca.key'), 'utf8'),
    }
    const certificate = issueCertificate(ca, { commonName: 'ann', organizations: [ADMIN_GROUP], usage: 'client' })
    const ann = h2Connect({ port: gateway.controlPort, certificate, localAddress: '127.0.0.3' })
    closers.push(() => ann.destroy())
    assert.equal((await h2Request(ann, [':path', '/api/v1/namespaces'])).status, 200)
    const ports = [gateway.controlPort, gateway.webhookPort]
    const begun = begunHead(alpn)
    const connections: RawConnection[] = []
    const ended: RawConnection[] = []
    for (let n = 0; n < CONNECTIONS; n++) {
      const connection = await openRaw({ port: ports[n % 2] ?? 0, alpn: [alpn] })
      closers.push(connection.destroy)
      void connection.closed.then(() => ended.push(connection))
      connection.send(begun)
      connections.push(connection)
    }
    await waitFor('connections to end', () => ended.length >= CONNECTIONS - MOST)
    for (const connection of ended) assert.match(connection.text(), REASON)
    const large = await h2Request(ann, [':path', '/api/v1/namespaces', 'x-large', 'y'.repeat(40_000)])
    assert.equal(large.status, 200)
    const metrics = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`).then((answer) => answer.text())
    assert.match(metrics, /portcullis_limited_total\{limit="control-heads",known="false"\} [1-9]/)
    for (const connection of connections) connection.destroy()
    // What was held has been given back.
    for (const port of ports) {
      const again = await openRaw({ port, alpn: ['http/1.1'] })
      closers.push(again.destroy)
      again.send(begunHead('http/1.1'))
      again.send('\r\n')
      const [status] = await again.until(/^HTTP\/1\.1 \d+/)
      assert.ok(!['HTTP/1.1 429', 'HTTP/1.1 431'].includes(status), status)
    }
  })
}
