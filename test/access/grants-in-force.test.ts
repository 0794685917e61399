// An AccessGrant in force, in a gateway with threads: whose requests have the groups, on which clusters, what ends with it, and what the audit log says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import type { ControlClient, Json } from '../harness/clients/control-client.ts'
import { h2Open, h2Request, h2Response } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { ClientConnections, type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import {
  reply,
  replyReview,
  type SeenRequest,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const ALL = '/apis/portcullis.io/v1alpha1/accessgrants'
const PROD = 'prod.example.com'
const TEST = 'test.example.com'
const EXEC = 'exec.example.com'
const FEDERATED = 'federated.example.com'
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/configmaps', 'content-type', 'application/json']
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const bob = clientPair(clientCA, 'bob', ['oncall'])

let stub: StubUpstream
let http1: Http1Stub
let embedded: EmbeddedGateway
let requester: ControlClient
let approver: ControlClient
const clients = new Map<string, ClientConnections>()
let grants = 0

before(async () => {
  stub = await startStub()
  http1 = await startHttp1Stub()
  embedded = await startEmbedded({
    args: ['--access-requester=group:developers', '--access-approver=user:carol', '--audit-log-path=-'],
  })
  requester = userOf('alice', 'developers')
  approver = userOf('carol')
  for (const [name, servers] of [
    [PROD, [{ endpoint: stub.url }]],
    [TEST, [{ endpoint: stub.url }]],
    [EXEC, [{ endpoint: http1.url }]],
  ] as const) {
    const object = clusterObject([stub], { name, clientCA })
    const clientConfig = name === EXEC ? { insecure: true, bearerToken: base64('x') } : object.spec.clientConfig
    const degrade = { exempt: [{ userGroups: ['break-glass'], verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }
    const created = await embedded.admin.post(UC_PATH, {
      ...object,
      spec: { ...object.spec, servers, clientConfig, degrade },
    })
    assert.equal(created.code, 201, created.text)
  }
  for (const pair of [alice, bob]) {
    for (const name of [PROD, TEST]) await of(pair, name).everywhereStatus(200)
  }
})
after(async () => {
  for (const one of clients.values()) one.close()
  await embedded.stop()
  await stub.stop()
  await http1.stop()
})
beforeEach(() => {
  stub.seen.length = 0
  stub.answer = (request) => reply(request, 200, JSON.stringify(groupsOf(request)))
  stub.answerAccess = (review) => replyReview(review, { allowed: true })
})

function userOf(user: string, ...groups: readonly string[]): ControlClient {
  const key = readFileSync(join(embedded.dataDir, 'control/pki/token.key'), 'utf8')
  return embedded.clientOf({ token: issueControlToken(key, { user, groups, ttlSeconds: 3600, nowMs: Date.now() }) })
}

function groupsOf(request: SeenRequest): string[] {
  return request.values('impersonate-group')
}

/** Connections of a user to a cluster. */
function of(pair: KeyPair, cluster = PROD): ClientConnections {
  const key = `${pair.certPem} ${cluster}`
  const known = clients.get(key) ?? new ClientConnections(() => embedded.gateway, cluster, pair)
  clients.set(key, known)
  return known
}

function sessionOf(pair: KeyPair): ClientHttp2Session {
  return of(pair).sessions()[0] ?? assert.fail()
}

async function ask(spec: object = {}): Promise<Json> {
  const name = `grant-${grants++}`
  const whole = { subject: { kind: 'User', name: 'alice' }, clusters: [PROD], groups: ['ops-admin'], ...spec }
  const { code, json, text } = await requester.post(ALL, {
    apiVersion: 'portcullis.io/v1alpha1',
    kind: 'AccessGrant',
    metadata: { name },
    spec: { reason: 'INC-4711', durationSeconds: 600, ...whole },
  })
  assert.equal(code, 201, text)
  return json
}

async function granted(spec: object = {}): Promise<string> {
  const { metadata } = await ask(spec)
  const { code, text } = await approver.post(`${ALL}/${metadata.name}/approval`, { uid: metadata.uid })
  assert.equal(code, 201, text)
  return metadata.name
}

async function end(name: string): Promise<void> {
  const { code, text } = await approver.post(`${ALL}/${name}/end`, {})
  assert.equal(code, 201, text)
}

/** All threads send these groups with the requests of the user. */
async function haveGroups(pair: KeyPair, cluster: string, ...groups: readonly string[]): Promise<void> {
  const expected = JSON.stringify([...groups].sort())
  const holds = ({ body }: { body: Buffer }): boolean =>
    JSON.stringify((JSON.parse(body.toString()) as string[]).sort()) === expected
  await of(pair, cluster).everywhere(`groups ${expected}`, holds)
}

test('the groups are there once it is approved, for its user and cluster alone, until it ends', async () => {
  const { metadata } = await ask()
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
  await approver.post(`${ALL}/${metadata.name}/approval`, { uid: metadata.uid })
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  await haveGroups(alice, TEST, 'dev', 'system:authenticated')
  await haveGroups(bob, PROD, 'oncall', 'system:authenticated')
  await end(metadata.name)
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
})

test('a grant for a group is for its members; several add up', async () => {
  const first = await granted({ subject: { kind: 'Group', name: 'oncall' }, groups: ['first'], clusters: [PROD, TEST] })
  const second = await granted({ subject: { kind: 'User', name: 'bob' }, groups: ['second', 'oncall'] })
  await haveGroups(bob, PROD, 'oncall', 'first', 'second', 'system:authenticated')
  await haveGroups(bob, TEST, 'oncall', 'first', 'system:authenticated')
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
  await end(first)
  await haveGroups(bob, PROD, 'oncall', 'second', 'system:authenticated')
  await embedded.admin.call('DELETE', `${ALL}/${second}`)
  await haveGroups(bob, PROD, 'oncall', 'system:authenticated')
})

test('a request that impersonates has none of it, neither in its reviews nor as the other user', async () => {
  const name = await granted()
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  stub.reviews.length = 0
  const answer = await h2Request(sessionOf(alice), ['impersonate-user', 'erin'])
  assert.deepEqual(JSON.parse(answer.body.toString()), ['system:authenticated'])
  const asOther = await h2Request(sessionOf(bob), ['impersonate-user', 'alice'])
  assert.deepEqual(JSON.parse(asOther.body.toString()), ['system:authenticated'])
  assert.ok(stub.reviews.length > 0)
  for (const { spec } of stub.reviews) assert.doesNotMatch(JSON.stringify(spec), /ops-admin/)
  await end(name)
})

test('a federated cluster gets none of it, so its members neither', async () => {
  const { secureServing, dispatchPolicies } = clusterObject([], { name: FEDERATED, clientCA }).spec
  const members = [{ name: 'prod', cluster: PROD, trustUsers: true }]
  const federation = { resources: [{ version: 'v1', resource: 'pods' }] }
  const object = {
    ...clusterObject([], { name: FEDERATED }),
    spec: { secureServing, dispatchPolicies, members, federation },
  }
  const created = await embedded.admin.post(UC_PATH, object)
  assert.equal(created.code, 201, created.text)
  const name = await granted({ clusters: [FEDERATED, PROD] })
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  // Its members do not answer; who asks is decided before.
  await of(alice, FEDERATED).everywhereStatus(503)
  const lines = await embedded.gateway.logged(({ responseStatus: status }) => status?.code === 503)
  for (const { user, annotations } of lines) {
    assert.deepEqual([user.username, user.groups], ['alice', ['dev', 'system:authenticated']])
    assert.equal(annotations['portcullis.io/access-grant'], undefined)
  }
  await end(name)
})

test('a client cannot add the group itself', async () => {
  stub.answerAccess = (review) => replyReview(review, { allowed: false })
  const { status } = await h2Request(sessionOf(alice), ['impersonate-group', 'ops-admin'])
  assert.equal(status, 400)
})

test('with it end its watches and its exec, and no others', async () => {
  stub.answer = (request) => {
    if (!request.path.includes('watch=1')) return reply(request, 200, JSON.stringify(groupsOf(request)))
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write('{"type":"BOOKMARK"}\n')
  }
  const watch = [':path', '/api/v1/pods?watch=1']
  const before = h2Open(sessionOf(alice), watch)
  await waitFor('the watch of before', () => stub.seen.some(({ path }) => path.includes('watch=1')))
  const name = await granted({ clusters: [PROD, EXEC] })
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  const theirs = of(alice)
    .sessions()
    .map((session) => h2Open(session, watch))
  const ends = theirs.map((stream) => h2Response(stream))
  const others = h2Open(sessionOf(bob), watch)
  const count = theirs.length + 2
  await waitFor('all watches', () => stub.seen.filter(({ path }) => path.includes('watch=1')).length === count)
  const exec = await http1Connect({ port: embedded.gateway.port, serverName: EXEC, cert: alice })
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', `Host: ${EXEC}`]
  exec.send(requestHead('GET /api/v1/namespaces/default/pods/p/exec?command=sh', upgrade))
  assert.equal((await exec.response()).status, 101)
  await end(name)
  await Promise.all(ends)
  await exec.raw.closed
  await waitFor('upstream to hear of it', () => http1.upgrades[0]?.closed() === true)
  assert.equal(before.closed, false, 'what was let in without the grant')
  assert.equal(others.closed, false)
  before.destroy()
  others.destroy()
})

test('a request that waits for its body when the grant ends is refused, or ended, and not sent with the groups', async () => {
  // This mode reads the bodies of writes that may remove pods before anything is sent.
  await embedded.patch(PROD, { spec: { degrade: { mode: 'NoDisruption', reason: 'INC-4711' } } })
  await of(bob).everywhereStatus(403, [':method', 'DELETE', ':path', '/api/v1/namespaces/default/pods/web'])
  const path = '/apis/apps/v1/namespaces/default/deployments/web/scale'
  const head = [':method', 'PUT', ':path', path, 'content-type', 'application/json']
  const name = await granted()
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  const stream = h2Open(sessionOf(alice), head, { endStream: false })
  const answer = h2Response(stream)
  stream.write('{"apiVersion":"autoscaling/v1",')
  const other = await h2Request(sessionOf(alice), [])
  assert.equal(other.status, 200, 'the head has arrived')
  await end(name)
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
  stream.end('"kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":1}}')
  const { status, body } = await answer
  assert.deepEqual([status, JSON.parse(body.toString()).reason], [403, 'Forbidden'])
  assert.match(body.toString(), /the access grant \\"grant-\d+\\" has ended/)
  assert.ok(stub.seen.every((seen) => seen.path !== path))
  await embedded.patch(PROD, { spec: { degrade: { mode: 'Off' } } })
})

test('the exempt lane is a group that spec.degrade.exempt names', async () => {
  await embedded.patch(PROD, { spec: { degrade: { mode: 'ReadOnly', reason: 'INC-4711' } } })
  await of(alice).everywhereStatus(503, POST)
  const name = await granted({ groups: ['break-glass'] })
  await of(alice).everywhereStatus(200, POST)
  await of(bob).everywhereStatus(503, POST)
  await end(name)
  await of(alice).everywhereStatus(503, POST)
  await embedded.patch(PROD, { spec: { degrade: { mode: 'Off' } } })
})

test('each use is in the audit log with its name, and the process log has beginning and end', async () => {
  const name = await granted()
  await haveGroups(alice, PROD, 'dev', 'ops-admin', 'system:authenticated')
  await end(name)
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
  const lines = await embedded.gateway.logged((line) => line['annotations']?.['portcullis.io/access-grant'] === name)
  assert.equal(lines[0]?.['user'].username, 'alice')
  assert.ok(lines[0]?.['user'].groups.includes('ops-admin'))
  for (const text of ['an access grant is in force', 'an access grant has ended']) {
    await waitFor(text, () =>
      embedded.gateway
        .logs()
        .split('\n')
        .some((line) => line.includes(text) && line.includes(`"${name}"`)),
    )
  }
  await waitFor('an Event', async () => {
    const { json } = await embedded.admin.get('/api/v1/events')
    const events: readonly Json[] = json.items
    return events.some(({ reason, involvedObject }) => reason === 'AccessEnded' && involvedObject.name === name)
  })
  assert.match(await embedded.gateway.metrics(), /portcullis_access_grant_changes_total\{change="ended"\} [1-9]/)
})

test('it is in force again after a restart, and one that was ended is not', async () => {
  const kept = await granted({ groups: ['kept'] })
  const ended = await granted({ groups: ['ended'] })
  await haveGroups(alice, PROD, 'dev', 'ended', 'kept', 'system:authenticated')
  await end(ended)
  for (const one of clients.values()) one.close()
  await embedded.restart('SIGKILL')
  await haveGroups(alice, PROD, 'dev', 'kept', 'system:authenticated')
  approver = userOf('carol')
  await end(kept)
  await haveGroups(alice, PROD, 'dev', 'system:authenticated')
})
