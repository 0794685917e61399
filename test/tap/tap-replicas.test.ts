// One tap of two replicas: real processes that know each other by --admin-peers.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import type { TapLine } from '../../src/insight/core/tap/tap-lines.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { openTap, type TapReader } from './tap-reader.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
let stub: StubUpstream
let first: TestGateway
let second: TestGateway
const sessions: ClientHttp2Session[] = []
/** A replica that takes connections, and says nothing. */
const sockets: Socket[] = []
const silent = createServer((socket) => void sockets.push(socket.resume().on('error', () => undefined)))

before(async () => {
  stub = await startStub()
  const clusters = [clusterObject([stub], { clientCA })]
  first = await startGateway({ clusters, args: ['--replica-name=gw-0'] })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const peers = [first.adminPort, silentPort()].map((port) => `--admin-peers=127.0.0.1:${port}`)
  second = await startGateway({ clusters, args: ['--replica-name=gw-1', ...peers] })
  for (const { port } of [first, second]) {
    sessions.push(h2Connect({ port, serverName: 'prod.example.com', certificate: alice }))
  }
})
after(async () => {
  for (const session of sessions) session.destroy()
  await second?.stop()
  await first?.stop()
  await stub?.stop()
  silent.close()
  for (const socket of sockets) socket.destroy()
})

function silentPort(): number {
  return (silent.address() as AddressInfo).port
}

function lossOf(reader: TapReader, port: number): Promise<TapLine> {
  const replica = `127.0.0.1:${port}`
  return waitFor(`the loss of ${replica}`, () =>
    reader.lines.find((line) => line.type === 'missing' && line.replica === replica),
  )
}

async function ask(replica: 0 | 1, count = 1): Promise<void> {
  const session = sessions[replica]
  assert.ok(session)
  const all = Array.from({ length: count }, () => h2Request(session, [':path', '/api/v1/pods']))
  for (const { status } of await Promise.all(all)) assert.equal(status, 200)
}

function shownBy(reader: TapReader, replica: string): number {
  return reader.requests().filter((event) => event.replica === replica).length
}

async function bothShow(reader: TapReader): Promise<void> {
  await waitFor('events of both replicas', async () => {
    await ask(0)
    await ask(1)
    return shownBy(reader, 'gw-0') > 0 && shownBy(reader, 'gw-1') > 0
  })
}

test('events of all replicas are shown, at the rate and up to the limit of one tap', async () => {
  const reader = await openTap(second.adminPort, 'replicas=all&maxRps=20')
  await bothShow(reader)
  const beganMs = performance.now()
  for (let i = 0; i < 10; i++) await Promise.all([ask(0, 25), ask(1, 25)])
  await waitFor('all to be told', () => reader.requests().length + reader.dropped() >= 502)
  const seconds = (performance.now() - beganMs) / 1000
  assert.ok(reader.requests().length <= 22 + 20 * (seconds + 2), `${reader.requests().length} in ${seconds} s`)
  reader.close()

  const limited = await openTap(second.adminPort, 'replicas=all&limit=5')
  await waitFor('its end', async () => {
    await Promise.all([ask(0), ask(1)])
    return limited.lines.at(-1)?.type === 'end'
  })
  await limited.ended
  assert.equal(limited.requests().length, 5)
  // Its part of the tap is over, too.
  await waitFor('no tap', async () => /^portcullis_taps 0$/m.test(await first.metrics()))
})

test('a replica that does not answer is named, and not waited for', async () => {
  const reader = await openTap(second.adminPort, 'replicas=all')
  await bothShow(reader)
  const line = await lossOf(reader, silentPort())
  assert.equal(line.type === 'missing' && line.message, 'it does not answer')
  reader.close()
})

test('a replica that is lost is named, and the tap goes on without it', async () => {
  const reader = await openTap(second.adminPort, 'replicas=all')
  await bothShow(reader)
  await first.stop('SIGKILL')
  await lossOf(reader, first.adminPort)
  const before = reader.requests().length
  await ask(1)
  await waitFor('an event after it', () => reader.requests().length > before)
  reader.close()

  const without = await openTap(second.adminPort, 'replicas=all')
  await lossOf(without, first.adminPort)
  await waitFor('an event', async () => {
    await ask(1)
    return without.requests().length > 0
  })
  without.close()
})
