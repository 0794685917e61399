// When clients that matter in an incident came through: from the threads that serve them, over the memory that they share, to the status
// that `portcullis degrade` goes by. A client that could make it say more than is true would make a Freeze seem safe.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ClientsSeen } from '../../src/gateway/api/upstream-cluster/status.ts'
import { LAST_SEEN_STEP_MINUTES } from '../../src/gateway/api/upstream-cluster/status-schema.ts'
import { Incident } from '../../src/gateway/state/incident.ts'
import { ALONE } from '../../src/gateway/state/thread-place.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { ClientConnections, type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const STEP_MS = LAST_SEEN_STEP_MINUTES * 60_000
const AGENT = 'kube-controller-manager/v1.34.1 (linux/amd64) kubernetes/9bc6e4f'
const clientCA = createCA({ commonName: 'clients of prod' })
let stub: StubUpstream
let embedded: EmbeddedGateway

before(async () => {
  stub = await startStub()
  embedded = await startEmbedded()
  const { code, text } = await embedded.admin.post(UC_PATH, clusterObject([stub], { name: HOST, clientCA }))
  assert.equal(code, 201, text)
})
after(async () => {
  await embedded?.stop()
  await stub?.stop()
})

interface Client {
  readonly name: string
  readonly groups?: readonly string[]
  readonly fields?: readonly string[]
}

/** Over all threads of the gateway. */
async function comeThrough({ name, groups = [], fields = [] }: Client, status = 200): Promise<void> {
  const clients = new ClientConnections(() => embedded.gateway, HOST, clientPair(clientCA, name, groups))
  await clients.everywhereStatus(status, [':path', '/api/v1/pods', ...fields])
  clients.close()
}

async function lastSeen(): Promise<ClientsSeen | undefined> {
  const { json } = await embedded.admin.get(`${UC_PATH}/${HOST}`)
  return json.status?.gateways?.[0]?.lastSeen
}

function assertJustNow(time: string | undefined): void {
  const at = Date.parse(time ?? '')
  assert.equal(at % STEP_MS, 0, 'to the step')
  assert.ok(at <= Date.now() && at > Date.now() - 2 * STEP_MS, time)
}

test('lastSeen: by who was authenticated, whatever the User-Agent says', async () => {
  const fields = ['user-agent', AGENT]
  await comeThrough({ name: 'alice', groups: ['dev'], fields })
  await comeThrough({ name: 'kube-controller-manager', fields })
  await comeThrough({ name: 'system:serviceaccount:default:robot', fields })
  await comeThrough({ name: 'system:node:n1', fields: ['user-agent', 'kubelet/v1.34.1'] })
  // Neither does who is refused: not authenticated, or not allowed to impersonate.
  const stranger = createCA({ commonName: 'another CA' })
  const forged = clientPair(stranger, 'system:kube-controller-manager')
  const strangers = new ClientConnections(() => embedded.gateway, HOST, forged)
  await strangers.everywhereStatus(401, [':path', '/api/v1/pods', ...fields])
  strangers.close()
  stub.answerAccess = (seen) => seen.request.stream.respond([':status', '403'], { endStream: true })
  const impersonating = ['impersonate-user', 'system:kube-controller-manager', ...fields]
  const mallory = new ClientConnections(() => embedded.gateway, HOST, clientPair(clientCA, 'mallory'))
  for (const { status } of await mallory.ask([':path', '/api/v1/pods', ...impersonating])) assert.ok(status >= 400)
  mallory.close()

  // What is seen after all of them is told; then they would have been, too.
  await comeThrough({ name: 'system:node:n1', groups: ['system:nodes'] })
  const told = await waitFor('the kubelet to be told', lastSeen)
  assert.deepEqual(Object.keys(told), ['kubelets'])
  assertJustNow(told.kubelets)

  await comeThrough({ name: 'system:kube-controller-manager' })
  const both = await waitFor('both', async () => {
    const seen = await lastSeen()
    return seen?.controllerManager !== undefined && seen
  })
  assertJustNow(both.controllerManager)
  assertJustNow(both.kubelets)
})

test('what one thread sees all know, by cluster and by client', () => {
  const place = { threads: 2, seed: ALONE.seed }
  const main = new Incident({ ...place, thread: 0 })
  const other = new Incident({ ...place, thread: 1 }, main.memory)
  const elsewhere = new Incident({ ...place, thread: 0 })
  assert.equal(main.lastSeenMs('controllerManager'), 0)
  other.see('controllerManager', 1_800_000_000_999)
  for (const incident of [main, other])
    assert.deepEqual(
      [incident.lastSeenMs('controllerManager'), incident.lastSeenMs('kubelets')],
      [1_800_000_000_000, 0],
    )
  assert.equal(elsewhere.lastSeenMs('controllerManager'), 0)
})
