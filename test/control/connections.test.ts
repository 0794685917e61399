// How many connections the ports of control plane and webhooks have together: unauthenticated clients have a quarter of the places, and the user with most of
// them gives one up. No client is refused because of others.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { WEBHOOKS_GROUP, webhookUser } from '../../src/apiserver/webhooks/webhook-callers.ts'
import { type Logger, SILENT } from '../../src/kit/api/ports.ts'
import { ADMIN_GROUP } from '../../src/kube/api/own-names.ts'
import { issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import type { RunningGateway } from '../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { openSilent, type SilentConnections } from '../harness/clients/silent-connections.ts'
import { allPorts } from '../harness/gateways/all-ports.ts'
import { waitFor } from '../harness/wait.ts'

const MAX = 16
const STRANGERS = MAX / 4
const [FLOODER, OTHER] = ['127.0.0.7', '127.0.0.8']
let dir: string
let gateway: RunningGateway
const warnings: { readonly message: string; readonly fields: unknown }[] = []
const closers: (() => unknown)[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-connections-'))
  const flags = {
    ...allPorts(join(dir, 'data')),
    maxControlConnections: String(MAX),
  }
  const log: Logger = { ...SILENT, warn: (message, fields) => void warnings.push({ message, fields }) }
  gateway = await startGateway(loadConfig({ flags, env: {}, readFile: () => '' }), { inline: true, log })
  closers.push(
    () => rmSync(dir, { recursive: true, force: true }),
    () => gateway.stop(),
  )
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  warnings.length = 0
})

function silent(port: number, count: number, localAddress: string): SilentConnections {
  const connections = openSilent(port, count, localAddress)
  closers.push(() => connections.destroy())
  return connections
}

function pki(name: string): string {
  return readFileSync(join(dir, 'data/control/pki', name), 'utf8')
}

function certificateOf(commonName: string, organization: string): KeyPair {
  const ca = { certPem: pki('ca.crt'), keyPem: pki('ca.key') }
  return issueCertificate(ca, { commonName, organizations: [organization], usage: 'client' })
}

function session(port: number, certificate: KeyPair, localAddress = OTHER): ClientHttp2Session {
  const client = h2Connect({ port, certificate, localAddress })
  closers.push(() => client.destroy())
  return client
}

async function read(client: ClientHttp2Session): Promise<number> {
  return (await h2Request(client, [':path', '/api/v1/namespaces'])).status
}

/** A call of the webhook: the body of an authenticated client is read. */
async function review(client: ClientHttp2Session): Promise<number> {
  const head = [':method', 'POST', ':path', '/prod', 'content-type', 'application/json']
  return (await h2Request(client, head, Buffer.from('{}'))).status
}

async function limited(known: boolean, limit = 'control-connections'): Promise<number> {
  const text = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`).then((answer) => answer.text())
  const line = new RegExp(`^portcullis_limited_total\\{limit="${limit}",known="${known}"\\} (\\d+)$`, 'm')
  return Number(line.exec(text)?.[1] ?? 0)
}

test('silent connections of one address, at both ports: it loses its own, and others come in at both', async () => {
  const other = silent(gateway.controlPort, 1, OTHER)
  await waitFor('one of another address', () => other.open() === 1)
  const flood = [silent(gateway.controlPort, 12, FLOODER), silent(gateway.webhookPort, 12, FLOODER)]
  await waitFor('as many as may be', async () => (await limited(false)) >= 1 + 24 - STRANGERS)
  await waitFor('the others to be closed', () => flood.reduce((sum, { open }) => sum + open(), 0) === STRANGERS - 1)
  assert.equal(other.open(), 1)
  const ann = certificateOf('ann', ADMIN_GROUP)
  for (const address of [OTHER, FLOODER]) assert.equal(await read(session(gateway.controlPort, ann, address)), 200)
  const caller = certificateOf(webhookUser('prod'), WEBHOOKS_GROUP)
  assert.equal(await review(session(gateway.webhookPort, caller)), 400)
  assert.equal(other.open(), 1)
  const told = warnings.find(({ message }) => message.includes('--max-control-connections'))
  assert.deepEqual(told?.fields, { source: `address ${FLOODER}` })
})

test('a user with most is asked to leave, at whichever port; callers of the webhook are users, and what runs goes on', async () => {
  const [ann, bob] = [certificateOf('ann', ADMIN_GROUP), certificateOf('bob', ADMIN_GROUP)]
  const callers: ClientHttp2Session[] = []
  const caller = certificateOf(webhookUser('prod'), WEBHOOKS_GROUP)
  for (let i = 0; i < 2; i++) {
    const client = session(gateway.webhookPort, caller)
    assert.equal(await review(client), 400)
    callers.push(client)
  }
  const users: ClientHttp2Session[] = []
  const goaways: ClientHttp2Session[] = []
  while (users.length < MAX - STRANGERS - callers.length) {
    const user = session(gateway.controlPort, ann)
    user.on('goaway', () => goaways.push(user))
    assert.equal(await read(user), 200)
    users.push(user)
  }
  assert.equal(await limited(true), 0)
  assert.equal(await read(session(gateway.controlPort, bob)), 200)
  await waitFor('GOAWAY', () => goaways.length > 0)
  assert.deepEqual(
    goaways.map((user) => users.indexOf(user)).filter((i, at, all) => all.indexOf(i) === at),
    [0],
  )
  assert.equal(await limited(true), 1)
  for (const user of users.slice(1)) assert.equal(await read(user), 200)
  for (const client of callers) assert.equal(await review(client), 400)
})

test('a refusal because of unread answers is counted', async () => {
  const ann = certificateOf('ann', ADMIN_GROUP)
  const client = h2Connect({ port: gateway.controlPort, certificate: ann, streamWindow: 0 })
  closers.push(() => client.destroy())
  for (let i = 0; i < 200; i++) h2Open(client, [':path', '/openapi/v2'])
  await waitFor('refusals', async () => (await limited(true, 'control-answers')) > 0)
})
