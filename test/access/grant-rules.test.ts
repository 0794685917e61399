// AccessGrants in the embedded API server: who may ask, approve and end, what can be asked for, and that nothing of it can be forged or changed later.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { ACCESS_GRANTS, MAX_KEPT_GRANTS, MAX_OPEN_GRANTS } from '../../src/grants/core/access-grant-kind.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { ControlClient, type ControlResponse, type Json } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

const ALL = '/apis/portcullis.io/v1alpha1/accessgrants'
const MERGE = 'application/merge-patch+json'
const APPLY = 'application/apply-patch+yaml'
const JSON_PATCH = 'application/json-patch+json'
const REQUESTERS = 'portcullis:access-requesters'
const APPROVERS = 'portcullis:access-approvers'
const HOUR_MS = 3_600_000

let control: TestControl
let nowMs = Date.now()
const clients: ControlClient[] = []
let admin: ControlClient
let alice: ControlClient
let bob: ControlClient
let both: ControlClient

before(async () => {
  control = await startControl({ now: () => nowMs })
  admin = new ControlClient(control, { cert: control.admin })
  clients.push(admin)
  alice = userOf('alice-dev', REQUESTERS)
  bob = userOf('bob-ops', APPROVERS)
  both = userOf('both', REQUESTERS, APPROVERS)
})
after(async () => {
  for (const client of clients) client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})
beforeEach(async () => {
  await admin.call('DELETE', ALL)
  nowMs = Date.now()
})

function userOf(user: string, ...groups: readonly string[]): ControlClient {
  const ttlSeconds = 30 * 24 * 3600
  const token = issueControlToken(control.tokenKey, { user, groups, ttlSeconds, nowMs: Date.now() - 1000 })
  const client = new ControlClient(control, { token })
  clients.push(client)
  return client
}

function grant(name: string, spec: object = {}, more: object = {}): Json {
  return {
    apiVersion: 'portcullis.io/v1alpha1',
    kind: 'AccessGrant',
    metadata: { name },
    spec: {
      subject: { kind: 'User', name: 'alice-dev' },
      clusters: ['prod'],
      groups: ['ops-admin'],
      reason: 'INC-4711: a pod hangs',
      durationSeconds: 3600,
      ...spec,
    },
    ...more,
  }
}

async function ask(client: ControlClient, name: string, spec: object = {}): Promise<Json> {
  const { code, json, text } = await client.post(ALL, grant(name, spec))
  assert.equal(code, 201, text)
  return json
}

function approve(client: ControlClient, { metadata }: Json, uid = metadata.uid, query = ''): Promise<ControlResponse> {
  return client.post(`${ALL}/${metadata.name}/approval${query}`, { uid })
}

async function stored(name: string): Promise<Json> {
  return (await admin.get(`${ALL}/${name}`)).json
}

function refused({ code, json }: ControlResponse, expected: number, message: RegExp): void {
  assert.equal(code, expected, json?.message)
  assert.match(json.message, message)
}

describe('asking and approving', () => {
  test('one asks, another approves; the server says who and until when', async () => {
    const asked = await ask(alice, 'one')
    const time = asked.metadata.creationTimestamp
    assert.deepEqual(asked.status, { phase: 'Pending', requestedBy: { user: 'alice-dev', time } })
    const { code, json } = await approve(bob, asked)
    assert.equal(code, 201)
    const { phase, approvedBy, startsAt, endsAt } = json.status
    assert.deepEqual([phase, approvedBy.user, startsAt], ['Active', 'bob-ops', approvedBy.time])
    assert.equal(Date.parse(endsAt) - Date.parse(startsAt), HOUR_MS)
    refused(await approve(bob, asked), 409, /it is Active/)
    assert.deepEqual((await stored('one')).status, json.status)
  })

  test('it is for the user who asks, if it does not say for another', async () => {
    const asked = await ask(alice, 'own', { subject: undefined })
    assert.deepEqual(asked.spec.subject, { kind: 'User', name: 'alice-dev' })
  })

  test('its time may come later, and then begins there', async () => {
    const notBefore = new Date(Math.floor(nowMs / 1000) * 1000 + 2 * HOUR_MS).toISOString()
    const { json } = await approve(bob, await ask(alice, 'later', { notBefore }))
    assert.equal(json.status.phase, 'Approved')
    assert.deepEqual(
      [Date.parse(json.status.startsAt), Date.parse(json.status.endsAt)],
      [Date.parse(notBefore), Date.parse(notBefore) + HOUR_MS],
    )
  })

  test('a time that is over when it is approved takes nothing of how long it lasts', async () => {
    const notBefore = new Date(nowMs - 2 * HOUR_MS).toISOString()
    const { json } = await approve(bob, await ask(alice, 'over', { notBefore }))
    const { phase, approvedBy, startsAt, endsAt } = json.status
    assert.deepEqual([phase, startsAt], ['Active', approvedBy.time])
    assert.equal(Date.parse(endsAt) - Date.parse(startsAt), HOUR_MS)
  })

  test('a dry run approves nothing', async () => {
    const asked = await ask(alice, 'dry')
    assert.equal((await approve(bob, asked, undefined, '?dryRun=All')).json.status.phase, 'Active')
    assert.equal((await stored('dry')).status.phase, 'Pending')
  })

  test('an approval comes within a day', async () => {
    const asked = await ask(alice, 'late')
    nowMs += 24 * HOUR_MS
    refused(await approve(bob, asked), 409, /was not approved in time/)
  })

  test('the table has what an approver looks for', async () => {
    await ask(alice, 'one', { clusters: ['prod', 'test'] })
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const { json } = await bob.call('GET', ALL, { headers: { accept } })
    const cells = json.rows[0].cells.slice(0, 7)
    assert.deepEqual(cells, ['one', 'alice-dev', 'prod,test', 'ops-admin', 'Pending', null, 'alice-dev'])
  })
})

describe('attacks: approving', () => {
  test('an asker does not approve its own request, whatever roles it has', async () => {
    refused(
      await approve(both, await ask(both, 'own', { subject: { kind: 'User', name: 'x' } })),
      403,
      /"both" requested it/,
    )
    refused(
      await approve(admin, await ask(admin, 'admins', { subject: { kind: 'User', name: 'x' } })),
      403,
      /"alice" requested it/,
    )
    refused(await approve(alice, await ask(alice, 'plain')), 403, /cannot create resource "accessgrants\/approval"/)
  })

  test('nobody approves what is for himself, or for a group of his', async () => {
    const own = await ask(alice, 'for-bob', { subject: { kind: 'User', name: 'bob-ops' } })
    refused(await approve(bob, own), 403, /it is for "bob-ops"/)
    const oncall = userOf('carol', APPROVERS, 'oncall')
    const groups = await ask(alice, 'for-group', { subject: { kind: 'Group', name: 'oncall' } })
    refused(await approve(oncall, groups), 403, /it is for a group that "carol" is in/)
    assert.equal((await approve(bob, groups)).code, 201)
  })

  test('an administrator is not two users by --as: neither for the question nor for the approval', async () => {
    const as = { 'impersonate-user': 'somebody' }
    const other = { 'impersonate-user': 'bob-ops', 'impersonate-group': APPROVERS }
    refused(await admin.call('POST', ALL, { body: grant('as'), headers: as }), 403, /cannot create/)
    const asRoot = { 'impersonate-user': 'somebody', 'impersonate-group': 'portcullis:admins' }
    refused(await admin.call('POST', ALL, { body: grant('as'), headers: asRoot }), 403, /not with --as/)
    const asked = await ask(admin, 'one', { subject: { kind: 'User', name: 'x' } })
    const body = { uid: asked.metadata.uid }
    refused(await admin.call('POST', `${ALL}/one/approval`, { body, headers: other }), 403, /not with --as/)
    assert.equal((await stored('one')).status.phase, 'Pending')
  })

  test('an approval is for the object that was read, not for one that has its name by now', async () => {
    const read = await ask(alice, 'swapped')
    await admin.call('DELETE', `${ALL}/swapped`)
    const later = await ask(alice, 'swapped', { groups: ['more'] })
    refused(await approve(bob, later, read.metadata.uid), 409, /another grant that had this name/)
    refused(await approve(bob, later, ''), 400, /must have the uid/)
    refused(await bob.post(`${ALL}/swapped/approval`, {}), 400, /must have the uid/)
    assert.equal((await stored('swapped')).status.phase, 'Pending')
  })

  test('only approvers approve, and viewers only look', async () => {
    const asked = await ask(alice, 'one')
    const viewer = new ControlClient(control, { cert: control.viewer })
    const none = userOf('none')
    clients.push(viewer)
    assert.equal((await viewer.get(`${ALL}/one`)).code, 200)
    for (const client of [viewer, none]) {
      assert.equal((await approve(client, asked)).code, 403)
      assert.equal((await client.post(ALL, grant('two'))).code, 403)
      assert.equal((await client.post(`${ALL}/one/end`, {})).code, 403)
    }
    assert.equal((await none.get(`${ALL}/one`)).code, 403)
    assert.equal((await new ControlClient(control).post(ALL, grant('two'))).code, 403)
  })
})

describe('attacks: forging and changing', () => {
  const FORGED = {
    phase: 'Active',
    requestedBy: { user: 'somebody', time: '2026-01-01T00:00:00Z' },
    approvedBy: { user: 'boss', time: '2026-01-01T00:00:00Z' },
    startsAt: '2026-01-01T00:00:00Z',
    endsAt: '2099-01-01T00:00:00Z',
  }

  test('who asked is the user of the credential, whatever the object says', async () => {
    const created = await alice.post(ALL, grant('posted', {}, { status: FORGED }))
    assert.deepEqual([created.code, created.json.status.requestedBy.user], [201, 'alice-dev'])
    const applied = await admin.call('PATCH', `${ALL}/applied?fieldManager=x&force=true`, {
      body: grant('applied', {}, { status: FORGED }),
      contentType: APPLY,
    })
    assert.equal(applied.code, 201, applied.text)
    for (const { json } of [created, applied]) assert.deepEqual(Object.keys(json.status), ['phase', 'requestedBy'])
    assert.deepEqual([applied.json.status.phase, applied.json.status.requestedBy.user], ['Pending', 'alice'])
    // Fields of the spec that could say so are not there.
    refused(await alice.post(`${ALL}?fieldValidation=Strict`, grant('field', { requester: 'x' })), 400, /unknown field/)
  })

  test('no client writes the status, administrators included', async () => {
    const asked = await ask(alice, 'one')
    const path = `${ALL}/one`
    const whole = grant('one', {}, { status: FORGED })
    const whyNot = /the gateway alone writes its status/
    refused(await admin.call('PUT', `${path}/status`, { body: { ...asked, status: FORGED } }), 403, whyNot)
    refused(await admin.call('PATCH', `${path}/status`, { body: { status: FORGED }, contentType: MERGE }), 403, whyNot)
    const operations = [{ op: 'add', path: '/status/approvedBy', value: FORGED.approvedBy }]
    refused(await admin.call('PATCH', `${path}/status`, { body: operations, contentType: JSON_PATCH }), 403, whyNot)
    const applying = { body: whole, contentType: APPLY }
    refused(await admin.call('PATCH', `${path}/status?fieldManager=x&force=true`, applying), 403, whyNot)
    for (const answer of [
      await admin.call('PUT', path, { body: { ...asked, status: FORGED } }),
      await admin.call('PATCH', path, { body: { status: FORGED }, contentType: MERGE }),
      await admin.call('PATCH', path, { body: operations, contentType: JSON_PATCH }),
      await admin.call('PATCH', `${path}?fieldManager=x&force=true`, applying),
    ]) {
      assert.deepEqual((await stored('one')).status, asked.status, answer.text)
    }
    assert.equal((await alice.call('PATCH', path, { body: { status: FORGED }, contentType: MERGE })).code, 403)
  })

  test('what was asked for is not changed, neither before nor after the approval', async () => {
    const more: readonly object[] = [
      { durationSeconds: 43_200 },
      { clusters: ['prod', 'other'] },
      { groups: ['ops-admin', 'more'] },
      { subject: { kind: 'User', name: 'mallory' } },
      { reason: 'another' },
      { notBefore: '2026-01-01T00:00:00Z' },
    ]
    const asked = await ask(alice, 'one')
    for (const state of ['Pending', 'Active']) {
      if (state === 'Active') assert.equal((await approve(bob, asked)).code, 201)
      const now = await stored('one')
      for (const change of more) {
        const body = { ...now, spec: { ...now.spec, ...change } }
        refused(
          await admin.call('PUT', `${ALL}/one`, { body }),
          422,
          /spec: Forbidden: cannot be changed|spec.*cannot be changed/,
        )
        const patch = { body: { spec: change }, contentType: MERGE }
        refused(await admin.call('PATCH', `${ALL}/one`, patch), 422, /cannot be changed/)
        const applied = { body: grant('one', change), contentType: APPLY }
        refused(await admin.call('PATCH', `${ALL}/one?fieldManager=x&force=true`, applied), 422, /cannot be changed/)
      }
      assert.deepEqual((await stored('one')).spec, now.spec)
      assert.equal((await stored('one')).status.phase, state)
    }
    const labelled = { body: { metadata: { labels: { team: 'a' } } }, contentType: MERGE }
    assert.equal((await admin.call('PATCH', `${ALL}/one`, labelled)).code, 200)
    assert.equal((await stored('one')).status.phase, 'Active')
  })

  test('a requester deletes and changes nothing', async () => {
    await ask(alice, 'one')
    assert.equal((await alice.call('DELETE', `${ALL}/one`)).code, 403)
    assert.equal((await alice.call('DELETE', ALL)).code, 403)
    assert.equal((await alice.call('PATCH', `${ALL}/one`, { body: {}, contentType: MERGE })).code, 403)
  })

  test('the gateway itself asks for nothing', async () => {
    await assert.rejects(
      createInProcessClient(control.registry).create(ACCESS_GRANTS, grant('own')),
      /only a user can request access/,
    )
  })

  test('one user has a number of grants open at most; those that have ended do not count', async () => {
    for (let i = 0; i < MAX_OPEN_GRANTS; i++) await ask(alice, `n${i}`)
    refused(await alice.post(ALL, grant('more')), 422, /"alice-dev" has 20 open grants/)
    await ask(both, 'of-another')
    assert.equal((await alice.post(`${ALL}/n0/end`, {})).code, 201)
    await ask(alice, 'more')
  })

  test('asking and ending again and again fills nothing: what is kept for one user is limited', async () => {
    for (let i = 0; i < MAX_KEPT_GRANTS; i++) {
      await ask(alice, `n${i}`)
      assert.equal((await alice.post(`${ALL}/n${i}/end`, {})).code, 201)
    }
    refused(await alice.post(ALL, grant('more')), 422, /"alice-dev" has asked for 500 grants that are still kept/)
    await ask(both, 'of-another')
    assert.equal((await admin.call('DELETE', `${ALL}/n0`)).code, 200)
    const last = await ask(alice, 'last')
    assert.equal((await approve(bob, last)).code, 201)
  })
})

describe('ending', () => {
  test('by who asked, by the user that it is for, and by approvers; by no other requester', async () => {
    for (const [name, client] of [
      ['by-asker', both],
      ['by-subject', alice],
      ['by-approver', bob],
    ] as const) {
      const asked = await ask(both, name)
      if (name !== 'by-asker') await approve(bob, asked)
      const other = userOf('mallory', REQUESTERS)
      refused(await other.post(`${ALL}/${name}/end`, {}), 403, /a grant may be ended by its requester/)
      const { code, json } = await client.post(`${ALL}/${name}/end`, {})
      assert.deepEqual([code, json.status.phase, json.status.endReason], [201, 'Ended', 'EndedByUser'])
      refused(await client.post(`${ALL}/${name}/end`, {}), 409, /it has ended/)
      refused(await approve(bob, asked), 409, /it is Ended/)
    }
  })
})

describe('what can be asked for', () => {
  const REFUSED: readonly [what: string, spec: object, message: RegExp][] = [
    ['system:masters', { groups: ['system:masters'] }, /spec\.groups\[0\].*"system:masters" is not given by grants/],
    ['any group of Kubernetes', { groups: ['ok', 'system:nodes'] }, /spec\.groups\[1\].*not given/],
    ['groups of the gateway', { groups: ['portcullis:admins'] }, /not given by grants/],
    ['a line end in a group', { groups: ['ops\r\nImpersonate-Group: system:masters'] }, /has a control character/],
    ['a line feed in a group', { groups: ['ops\nx'] }, /has a control character/],
    ['a zero octet in a group', { groups: ['ops\0'] }, /has a control character/],
    ['a space that HTTP trims off', { groups: [' system:masters'] }, /begins or ends with a space/],
    ['a tab that HTTP trims off', { groups: ['\tsystem:masters'] }, /control character/],
    ['half a character', { groups: ['ops\ud800'] }, /is not valid Unicode|Unicode/],
    ['an empty group', { groups: [''] }, /spec\.groups\[0\].*is empty/],
    ['no group', { groups: [] }, /spec\.groups.*at least 1/],
    ['a group twice', { groups: ['a', 'a'] }, /named twice/],
    ['nine groups', { groups: 'abcdefghi'.split('') }, /Too many|at most 8/],
    ['a long group', { groups: ['x'.repeat(513)] }, /Too long|512/],
    ['text for a list', { groups: 'ops-admin', clusters: 'prod' }, /spec\.clusters.*must be of type array/],
    ['numbers for names', { groups: [1], clusters: [null], reason: 2 }, /must be of type string/],
    ['a list for the subject', { subject: [] }, /spec\.subject.*must be of type object/],
    ['text for the subject', { subject: 'alice' }, /spec\.subject.*must be of type object/],
    ['40,000 clusters', { clusters: Array.from({ length: 39_000 }, (_, n) => `c${n}`) }, /Too many: 39000/],
    ['no cluster', { clusters: [] }, /spec\.clusters.*at least 1/],
    ['all clusters', { clusters: ['*'] }, /"\*" is not a name/],
    ['a pattern', { clusters: ['prod-*'] }, /is not a name/],
    ['a cluster twice', { clusters: ['a', 'a'] }, /named twice/],
    ['everybody', { subject: { kind: 'Group', name: 'system:authenticated' } }, /a group of Kubernetes/],
    ['the anonymous user', { subject: { kind: 'User', name: 'system:anonymous' } }, /belongs to Kubernetes itself/],
    ['a node', { subject: { kind: 'User', name: 'system:node:a' } }, /belongs to Kubernetes itself/],
    ['another kind', { subject: { kind: 'ServiceAccount', name: 'a' } }, /Unsupported value/],
    ['nobody', { subject: { kind: 'User', name: '' } }, /spec\.subject\.name.*is empty/],
    ['no reason', { reason: '  ' }, /spec\.reason.*is empty/],
    ['a reason with a terminal escape', { reason: 'ok\u001b[2J' }, /spec\.reason.*control character/],
    ['a reason that turns text around', { reason: 'ok \u202e' }, /spec\.reason.*control character/],
    ['13 hours', { durationSeconds: 46_800 }, /less than or equal to 43200/],
    ['no time', { durationSeconds: 0 }, /greater than or equal to 60/],
    ['for ever', { durationSeconds: undefined }, /durationSeconds: Required/],
    ['in a month', { notBefore: new Date(Date.now() + 30 * 24 * HOUR_MS).toISOString() }, /more than 7 days ahead/],
    ['at no time', { notBefore: 'tomorrow' }, /spec\.notBefore/],
  ]
  for (const [what, spec, message] of REFUSED) {
    test(`not ${what}`, async () => refused(await alice.post(ALL, grant('bad', spec)), 422, message))
  }

  test('a service account, a group, several clusters', async () => {
    await ask(alice, 'robot', { subject: { kind: 'User', name: 'system:serviceaccount:ci:deployer' } })
    await ask(alice, 'team', { subject: { kind: 'Group', name: 'oncall' }, clusters: ['a', 'b'] })
    await ask(alice, 'umlaut', { groups: ['Größe: ja'] })
  })
})

test('the rights are what reviews say, and the audit log names who approved what', async () => {
  const can = async (client: ControlClient, resourceAttributes: object): Promise<unknown> =>
    (await client.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: { resourceAttributes } })).json
      .status.allowed
  const grants = { group: 'portcullis.io', resource: 'accessgrants' }
  assert.equal(await can(alice, { ...grants, verb: 'create' }), true)
  assert.equal(await can(alice, { ...grants, verb: 'create', subresource: 'approval' }), false)
  assert.equal(await can(bob, { ...grants, verb: 'create', subresource: 'approval' }), true)
  assert.equal(await can(bob, { ...grants, verb: 'create' }), false)
  assert.equal(await can(alice, { group: 'proxy.kubegateway.io', resource: 'upstreamclusters', verb: 'get' }), false)
  await approve(bob, await ask(alice, 'audited'))
  const line = control.audited.find(({ objectRef: ref }) => ref?.name === 'audited' && ref.subresource === 'approval')
  assert.deepEqual([line.user.username, line.verb, line.responseStatus.code], ['bob-ops', 'create', 201])
})
