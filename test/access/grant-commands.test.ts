// `portcullis access`, against the embedded API server: break-glass in two commands.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  approveAccess,
  endAccess,
  listAccess,
  type RequestOptions,
  requestAccess,
} from '../../src/grants/cli/access.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { ControlClient, cluster } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { UC_PATH } from '../harness/gateways/embedded.ts'

let control: TestControl
let admin: ControlClient
/** Kubeconfigs. */
let alice: string
let bob: string
let viewer: string
let printed = ''

before(async () => {
  control = await startControl()
  admin = new ControlClient(control, { cert: control.admin })
  alice = kubeconfigOf('alice-dev', 'portcullis:access-requesters')
  viewer = kubeconfigOf('vera', 'portcullis:access-requesters', 'portcullis:viewers')
  bob = kubeconfigOf('bob-ops', 'portcullis:access-approvers')
  for (const name of ['prod-a', 'prod-b', 'test']) await admin.post(UC_PATH, cluster(name))
})
after(async () => {
  admin.close()
  await control.stop()
})

function kubeconfigOf(user: string, ...groups: readonly string[]): string {
  return control.kubeconfigFor({
    token: issueControlToken(control.tokenKey, { user, groups, ttlSeconds: 3600, nowMs: Date.now() }),
  })
}

const print = (text: string): void => {
  printed += text
}

async function told(code: number, run: Promise<number>): Promise<string> {
  printed = ''
  assert.equal(await run, code, printed)
  return printed
}

function request(kubeconfig: string, clusters: readonly string[], more: Partial<RequestOptions> = {}): Promise<number> {
  const asked = { group: ['ops-admin'], for: '1h', reason: 'INC-4711: a pod hangs' }
  return requestAccess({ kubeconfig, clusters, ...asked, out: print, err: print, ...more })
}

function nameIn(text: string): string {
  return /access-[a-z0-9]{5}/.exec(text)?.[0] ?? assert.fail(text)
}

test('two commands; a list and the end', async () => {
  const asked = await told(0, request(alice, ['prod-a']))
  const name = nameIn(asked)
  assert.equal(asked, `${name} is requested; another user must approve it: portcullis access approve ${name}\n`)
  const seen: string[] = []
  const approving = { kubeconfig: bob, name, out: print, err: print }
  const ask = async (question: string): Promise<string> => {
    seen.push(printed, question)
    return 'y'
  }
  const approved = await told(0, approveAccess({ ...approving, ask }))
  assert.match(
    seen[0] ?? '',
    /requested by {2}alice-dev, .*\nfor {11}user alice-dev\nclusters {6}prod-a\ngroups {8}ops-admin\n/,
  )
  assert.match(seen[0] ?? '', /lasts {9}1h from the approval on\nreason {8}INC-4711: a pod hangs\n$/)
  assert.equal(seen[1], `approve ${name}? [y/N] `)
  assert.match(approved, new RegExp(`${name} is approved, from .* until .*\n$`))
  const list = await told(0, listAccess({ kubeconfig: alice, out: print, err: print }))
  assert.match(
    list,
    new RegExp(`^NAME .*\n${name} +Active +alice-dev +prod-a +ops-admin .* alice-dev +bob-ops +INC-4711`),
  )
  assert.equal(await told(0, endAccess({ kubeconfig: alice, name, out: print, err: print })), `${name} has ended\n`)
  const none = await told(0, listAccess({ kubeconfig: bob, out: print, err: print }))
  assert.equal(none, 'no access is granted or requested\n')
  const all = JSON.parse(
    await told(0, listAccess({ kubeconfig: bob, ended: true, output: 'json', out: print, err: print })),
  )
  assert.equal(all[0].status.endReason, 'EndedByUser')
  assert.match(await told(1, approveAccess({ ...approving, yes: true })), /is Ended; portcullis access list/)
})

test('for others, several clusters and groups, at a time; names alone get into the object', async () => {
  const notBefore = new Date(Date.now() + 3_600_000).toISOString()
  const more = { group: ['a', 'b'], for: '90m', membersOf: 'oncall', notBefore }
  const name = nameIn(await told(0, request(viewer, ['prod-*'], more)))
  const { spec } = (await admin.get(`/apis/portcullis.io/v1alpha1/accessgrants/${name}`)).json
  assert.deepEqual(spec.clusters, ['prod-a', 'prod-b'])
  assert.deepEqual([spec.subject, spec.groups], [{ kind: 'Group', name: 'oncall' }, ['a', 'b']])
  assert.deepEqual([spec.durationSeconds, spec.notBefore], [5400, notBefore])
  const of = nameIn(await told(0, request(viewer, ['test'], { user: 'carol' })))
  const other = (await admin.get(`/apis/portcullis.io/v1alpha1/accessgrants/${of}`)).json
  assert.deepEqual(other.spec.subject, { kind: 'User', name: 'carol' })
})

test('what is wrong is said, with what to do', async () => {
  assert.match(await told(1, request(viewer, ['prd-a'])), /no UpstreamCluster "prd-a"; did you mean prod-a\?/)
  assert.match(await told(1, request(viewer, ['*'])), /'\*' is every UpstreamCluster.*--all/)
  assert.match(await told(1, request(alice, ['prod-*'])), /cannot list resource "upstreamclusters"/)
  assert.match(await told(1, request(alice, ['prod-a'], { for: 'ever' })), /--for "ever" is not a time; write --for 1h/)
  assert.match(await told(1, request(alice, ['prod-a'], { for: '13h' })), /less than or equal to 43200/)
  assert.match(
    await told(1, request(alice, ['prod-a'], { group: ['system:masters'] })),
    /bind a group of yours to a role/,
  )
  assert.match(await told(1, request(alice, ['prod-a'], { user: 'a', membersOf: 'b' })), /give one of the two/)
  assert.match(await told(1, request(bob, ['prod-a'])), /needs create of accessgrants: --access-requester/)
  const name = nameIn(await told(0, request(alice, ['prod-a'])))
  const approving = { name, out: print, err: print }
  assert.match(await told(1, approveAccess({ ...approving, kubeconfig: alice, yes: true })), /--access-approver/)
  assert.match(await told(1, approveAccess({ ...approving, kubeconfig: bob })), /no terminal.*--yes/)
  assert.match(
    await told(1, approveAccess({ ...approving, kubeconfig: bob, ask: async () => '' })),
    /nothing was changed/,
  )
  assert.match(await told(1, endAccess({ kubeconfig: bob, name: 'none', out: print, err: print })), /"none" not found/)
})
