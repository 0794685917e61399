// The CA of the control plane is replaced while the gateway runs: an old and a new one overlap in a bundle, then the old one goes, and
// with it the users that it has issued certificates for, on connections that are open as well. What cannot be used changes nothing.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { WEBHOOKS_GROUP, webhookUser } from '../../src/apiserver/webhooks/webhook-callers.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { ADMIN_GROUP } from '../../src/kube/api/own-names.ts'
import { createCA, isIssuedBy, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { writeKeyPair } from '../../src/pki/io/pki-files.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { ProtectionPort } from '../../src/protection/app/webhook.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import type { TestControl } from '../harness/gateways/control.ts'
import { EMBEDDED_FLAGS, type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { waitFor } from '../harness/wait.ts'

const REVIEWS = '/worker-1'
/** Its name is that of the one before, as of two that the gateway has made. */
const next = createCA({ commonName: 'portcullis control plane CA' })
let gateway: EmbeddedGateway
let old: KeyPair
let clients: ControlClient[]

beforeEach(async () => {
  gateway = await startEmbedded({ source: [...EMBEDDED_FLAGS, '--protection-listen=127.0.0.1:WEBHOOK'] })
  clients = []
  const [certPem, keyPem] = [read('ca.crt'), read('ca.key')]
  old = { certPem, keyPem }
})
afterEach(async () => {
  for (const client of clients) client.close()
  await gateway.stop()
})

function file(name: string): string {
  return join(gateway.dataDir, 'control/pki', name)
}

function read(name: string): string {
  return readFileSync(file(name), 'utf8')
}

function replace(name: string, text: string): void {
  writeFileSync(`${file(name)}.new`, text)
  renameSync(`${file(name)}.new`, file(name))
}

/** @param certs the first one signs, by the key of `signer` */
function putCA(certs: readonly KeyPair[], signer: KeyPair | undefined = certs[0]): void {
  replace('ca.key', signer?.keyPem ?? '')
  replace('ca.crt', certs.map(({ certPem }) => certPem).join(''))
}

/** A client with a connection of its own, which stays open. It trusts both CAs. */
function clientOf(port: number, ca: KeyPair, user: string, group: string): ControlClient {
  const cert = issueCertificate(ca, { commonName: user, organizations: [group], usage: 'client' })
  const client = new ControlClient({ port, caPem: `${old.certPem}${next.certPem}` } as TestControl, { cert })
  clients.push(client)
  return client
}

function admin(ca: KeyPair): ControlClient {
  return clientOf(gateway.gateway.controlPort, ca, 'alice', ADMIN_GROUP)
}

function apiServer(ca: KeyPair): ControlClient {
  return clientOf(gateway.gateway.webhookPort, ca, webhookUser('worker-1'), WEBHOOKS_GROUP)
}

/** Those of both ports: 200 and 400 are for callers who are known. */
async function codes(administrator: ControlClient, webhook: ControlClient): Promise<readonly number[]> {
  const [asked, reviewed] = [administrator.call('GET', UC_PATH), webhook.call('POST', REVIEWS, { body: {} })]
  return [(await asked).code, (await reviewed).code]
}

async function known(ca: KeyPair): Promise<boolean> {
  const [asked, reviewed] = await codes(admin(ca), apiServer(ca))
  return asked === 200 && reviewed !== 401
}

function reloads(): Promise<string> {
  return gateway.gateway.metrics().then((text) => {
    const lines = [
      ...text.matchAll(/^portcullis_file_last_reload_successful\{file="(control|protection)-pki"\} (\d)$/gm),
    ]
    return lines.map(([, port = '', value = '']) => `${port} ${value}`).join(', ')
  })
}

function errors(): number {
  return gateway.gateway.logs().match(/the certificates of --\w+-listen cannot be replaced/g)?.length ?? 0
}

describe('the CA of the control plane', () => {
  test('is replaced in three steps: the old one, both, only the new one; kubectl works all the time', async () => {
    const kubeconfigs = join(gateway.dataDir, 'old.kubeconfig')
    copyFileSync(gateway.kubeconfig, kubeconfigs)
    const kubectl = async (kubeconfig: string): Promise<number> =>
      (await gateway.kubectl(['get', 'upstreamclusters'], { kubeconfig })).code
    const [oldAdmin, oldWebhook] = [admin(old), apiServer(old)]
    const stays = admin(old)
    const watch = await stays.watch(`${UC_PATH}?watch=1`)
    assert.equal(watch.code, 200)
    assert.deepEqual(await codes(oldAdmin, oldWebhook), [200, 400])
    assert.deepEqual(await codes(admin(next), apiServer(next)), [401, 401])

    putCA([old, next])
    await waitFor('both to be known', async () => (await known(old)) && (await known(next)))
    assert.deepEqual(await codes(oldAdmin, oldWebhook), [200, 400])
    // No client has to know the new one yet.
    assert.ok(isIssuedBy({ certPem: read('tls.crt') }, old))
    assert.equal(await kubectl(kubeconfigs), 0)
    const bundle = Buffer.from(`${old.certPem}${next.certPem}`).toString('base64')
    await waitFor('the bundle in admin.kubeconfig', () => read('admin.kubeconfig').includes(bundle))

    copyFileSync(gateway.kubeconfig, kubeconfigs)
    putCA([next, old])
    await waitFor('certificates of the new one', () => {
      return ['tls.crt', 'admin.crt'].every((name) => isIssuedBy({ certPem: read(name) }, next))
    })
    await waitFor('both to be known', async () => (await known(old)) && (await known(next)))
    assert.equal(await kubectl(kubeconfigs), 0)
    assert.equal(watch.ended, false)

    putCA([next])
    await waitFor('the old one to be refused on connections that are open', async () =>
      (await codes(oldAdmin, oldWebhook)).every((code) => code === 401),
    )
    await watch.end()
    assert.deepEqual(await codes(admin(old), apiServer(old)), [401, 401])
    assert.ok(await known(next))
    assert.equal(await kubectl(gateway.kubeconfig), 0)
    assert.notEqual(await kubectl(kubeconfigs), 0)
    assert.equal(errors(), 0, gateway.gateway.logs())

    await gateway.restart()
    assert.deepEqual(await codes(admin(old), apiServer(old)), [401, 401])
    assert.ok(await known(next))
  })

  test('is replaced at once: what the one before had issued is issued again', async () => {
    putCA([next])
    await waitFor('the new one to be known', () => known(next))
    assert.deepEqual(await codes(admin(old), apiServer(old)), [401, 401])
    await waitFor('its certificates', () => {
      return ['tls.crt', 'admin.crt'].every((name) => isIssuedBy({ certPem: read(name) }, next))
    })
    const ends = new X509Certificate(next.certPem).validToDate.getTime() / 1000
    for (const name of ['control-ca', 'protection-ca']) {
      const line = `portcullis_certificate_expiration_timestamp_seconds{cluster="",certificate="${name}"} ${ends}\n`
      assert.ok((await gateway.gateway.metrics()).includes(line), name)
    }
  })

  test('that cannot be used leaves the one before in force, with one line for each port and 0 in the metric', async () => {
    const leaf = issueCertificate(next, { commonName: 'leaf', usage: 'server' })
    const ended = createCA({ commonName: 'ended', days: -1 })
    const bad: readonly (readonly [RegExp, () => void])[] = [
      [/ca\.crt and .*ca\.key are not a certificate and its key/, () => putCA([next], old)],
      [/ca\.crt and .*ca\.key are not a certificate and its key/, () => replace('ca.crt', 'no PEM')],
      [
        /certificate 2 of 2 is damaged|cut off or damaged/,
        () => {
          putCA([old])
          replace('ca.crt', `${old.certPem}${next.certPem.slice(0, 300)}`)
        },
      ],
      [/ca\.crt is not a CA certificate/, () => putCA([leaf])],
      [/certificate 2 of 2 is not a CA certificate/, () => putCA([old, leaf])],
      [/expired on/, () => putCA([ended])],
      [/ca\.crt is missing/, () => rmSync(file('ca.crt'))],
    ]
    const [oldAdmin, oldWebhook] = [admin(old), apiServer(old)]
    await waitFor('all to be in force', async () => (await reloads()) === 'control 1, protection 1')
    for (const [said, [says, put]] of bad.entries()) {
      const { length } = gateway.gateway.logs()
      put()
      await waitFor(`both ports to refuse ${says}`, () => errors() === 2 * (said + 1))
      assert.match(gateway.gateway.logs().slice(length), says)
      assert.equal(await reloads(), 'control 0, protection 0')
      assert.deepEqual(await codes(oldAdmin, oldWebhook), [200, 400])
      assert.ok(await known(old))
      assert.equal(await known(next), false)
    }
    putCA([old])
    await waitFor('all to be in force again', async () => (await reloads()) === 'control 1, protection 1')
    assert.equal(errors(), 2 * bad.length)
  })
})

test('a CA that changes between its first reading and readiness is in force soon after', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-early-'))
  const flags = { source: 'embedded', dataDir, listen: ['127.0.0.1:0'], controlListen: '127.0.0.1:0' }
  const config = { ...loadConfig({ flags, env: {}, readFile: () => '' }), adminListen: '127.0.0.1:0', threads: 1 }
  const starting = startGateway(config, { inline: true, log: SILENT })
  await yieldToEventLoop()
  const pki = join(dataDir, 'control/pki')
  const old = readFileSync(join(pki, 'ca.crt'), 'utf8')
  writeFileSync(join(pki, 'ca.key'), next.keyPem)
  writeFileSync(join(pki, 'ca.crt'), next.certPem)
  const started = await starting
  const cert = issueCertificate(next, { commonName: 'alice', organizations: [ADMIN_GROUP], usage: 'client' })
  const control = { port: started.controlPort, caPem: `${old}${next.certPem}` } as TestControl
  const known = async (): Promise<boolean> => {
    const client = new ControlClient(control, { cert })
    try {
      return (await client.call('GET', UC_PATH)).code === 200
    } finally {
      client.close()
    }
  }
  try {
    await waitFor('the new CA to be in force', known)
  } finally {
    await started.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('the protection port alone issues again what a former CA had issued, and keeps it over a restart', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-port-'))
  const dir = join(dataDir, 'control/pki')
  const open = async (): Promise<ProtectionPort> => {
    const port = new ProtectionPort({ listen: { host: '127.0.0.1', port: 0 }, hosts: [], dataDir, log: SILENT })
    await port.open(() => assert.fail('nothing is asked'))
    return port
  }
  const shown = (port: ProtectionPort): string =>
    port.certificates.find(({ name }) => name === 'protection-serving')?.pem ?? ''
  let port = await open()
  try {
    const before = { certPem: port.caPem }
    assert.ok(isIssuedBy({ certPem: shown(port) }, before))
    writeKeyPair(dir, 'ca', { ...next, certPem: `${next.certPem}${before.certPem}` })
    await waitFor('a certificate of the new CA', () => isIssuedBy({ certPem: shown(port) }, next))
    writeKeyPair(dir, 'ca', next)
    await waitFor('the new CA alone', () => port.caPem === next.certPem)
    assert.ok(isIssuedBy({ certPem: shown(port) }, next))
    await port.close()
    port = await open()
    assert.ok(isIssuedBy({ certPem: shown(port) }, next))
  } finally {
    await port.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
