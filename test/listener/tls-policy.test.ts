// --tls-min-version and --tls-cipher-suites hold on every port with TLS, and the pair of the control and protection ports is replaced
// while they are open.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type ConnectionOptions, connect } from 'node:tls'
import { createCA } from '../../src/pki/io/pki.ts'
import { writeKeyPair } from '../../src/pki/io/pki-files.ts'
import { EMBEDDED_FLAGS, type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const SOURCE = [...EMBEDDED_FLAGS, '--protection-listen=127.0.0.1:WEBHOOK']

interface Handshake {
  readonly protocol: string
  readonly cipher: string
  readonly shown: string
}

/** Rejects when the handshake fails. */
function handshake(port: number, options: ConnectionOptions = {}): Promise<Handshake> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options }, () => {
      const shown = String(socket.getPeerCertificate().subject.CN)
      resolve({ protocol: socket.getProtocol() ?? '', cipher: socket.getCipher().name, shown })
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

describe('TLS of all ports', () => {
  let gateway: EmbeddedGateway
  /** In the order of their start. */
  const running: { stop(): Promise<void> }[] = []

  async function start(...args: readonly string[]): Promise<void> {
    gateway = await startEmbedded({ source: SOURCE, args })
    running.push(gateway)
    const stub = await startStub()
    running.push(stub)
    const { code, text } = await gateway.admin.post(UC_PATH, clusterObject([stub]))
    assert.equal(code, 201, text)
  }
  async function stopAll(): Promise<void> {
    for (const one of running.splice(0)) await one.stop()
  }
  /** A connection without a name, one that names a cluster, the API server, the webhook of deletions. */
  const ports = (): readonly [string, number, ConnectionOptions][] => {
    const { port, controlPort, webhookPort } = gateway.gateway
    return [
      ['--listen', port, {}],
      ['a cluster', port, { servername: HOST }],
      ['--control-listen', controlPort, {}],
      ['--protection-listen', webhookPort, {}],
    ]
  }

  // Also of a test that failed: what runs on keeps this process.
  afterEach(stopAll)

  test('by default TLS 1.2 and 1.3; then only 1.3', async () => {
    await start()
    for (const [, port, options] of ports()) {
      assert.equal((await handshake(port, { ...options, maxVersion: 'TLSv1.2' })).protocol, 'TLSv1.2')
    }
    await stopAll()
    await start('--tls-min-version=VersionTLS13')
    for (const [what, port, options] of ports()) {
      assert.equal((await handshake(port, options)).protocol, 'TLSv1.3')
      await assert.rejects(handshake(port, { ...options, maxVersion: 'TLSv1.2' }), /protocol version|unsupported/, what)
    }
  })

  test('suites of TLS 1.2; those of 1.3 are there in any case', async () => {
    await start('--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384')
    for (const [what, port, options] of ports()) {
      assert.equal((await handshake(port, options)).protocol, 'TLSv1.3')
      const older = { ...options, maxVersion: 'TLSv1.2' } as const
      assert.match((await handshake(port, older)).cipher, /^ECDHE-(RSA|ECDSA)-AES256-GCM-SHA384$/)
      const other = 'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256'
      await assert.rejects(handshake(port, { ...older, ciphers: other }), /handshake failure/, what)
    }
  })

  describe('the pair in DATA_DIR/control/pki', () => {
    const theirs = createCA({ commonName: 'theirs' })
    const pairs = ['one.example.com', 'two.example.com'].map((name) => serverCertificate(theirs, [name], []))
    const put = (index: number): void =>
      writeKeyPair(join(gateway.dataDir, 'control/pki'), 'tls', pairs[index] ?? { certPem: '', keyPem: '' })
    const shown = async (): Promise<readonly string[]> =>
      await Promise.all(
        [gateway.gateway.controlPort, gateway.gateway.webhookPort].map(async (port) => (await handshake(port)).shown),
      )

    beforeEach(() => start())

    test('is shown by both ports soon after it was replaced, and again', async () => {
      for (const [index, name] of ['one.example.com', 'two.example.com'].entries()) {
        put(index)
        await waitFor(`${name} on both ports`, async () => (await shown()).every((one) => one === name))
      }
    })
  })
})
