// The rights of the gateway in a cluster behind it: when they are asked, what a refusal leads to, and what the user reads. The
// upstream is a stub; a kube-apiserver with RBAC is in test/e2e/control/gateway-rights.test.ts.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, test } from 'node:test'
import { gatewayRights } from '../../src/gateway/core/identity/gateway-rights.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import {
  reply,
  replyReview,
  type SeenReview,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
const QUESTIONS = gatewayRights({ protection: undefined }).length
let stub: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session
let asked: SeenReview[] = []

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([])
  session = h2Connect({ port: gateway.port, certificate: alice })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await stub.stop()
})
beforeEach(() => {
  asked = []
  answer(() => true)
  stub.answer = (request) => reply(request, 200, '{}')
  gateway.apply([])
})

function attributesOf({ spec }: SeenReview): Readonly<Record<string, string>> {
  return (spec['resourceAttributes'] ?? {}) as Readonly<Record<string, string>>
}

/** How the stub answers what the gateway asks for itself. */
function answer(allows: (attributes: Readonly<Record<string, string>>) => boolean): void {
  stub.answerRights = (seen) => {
    if (seen.request.path.endsWith('/selfsubjectreviews')) {
      replyReview(seen, { userInfo: { username: 'gw' } })
      return
    }
    asked.push(seen)
    replyReview(seen, { allowed: allows(attributesOf(seen)) })
  }
}

function apply(token = 'gateway-token'): void {
  const clientConfig = { bearerToken: base64(token), caData: base64(stub.caPem) }
  gateway.apply([clusterObject([stub], { clientCA, spec: { clientConfig } })])
}

async function credential(): Promise<string> {
  return /^portcullis_upstream_credential_valid\S* (\d)$/m.exec(await gateway.metrics())?.[1] ?? 'none'
}

function told(message: RegExp): Record<string, unknown>[] {
  return gateway.logged.filter((line) => message.test(line.message)).map(({ fields }) => fields)
}

test('each right is asked once, as the gateway itself; a change of something else asks nothing, of the credential all', async () => {
  apply()
  await waitFor('the answer', async () => (await credential()) === '1')
  assert.equal(asked.length, QUESTIONS)
  for (const { request } of asked) {
    assert.deepEqual(request.values('authorization'), ['Bearer gateway-token'])
    assert.deepEqual(request.values('impersonate-user'), [])
  }
  apply()
  apply('other-token')
  await waitFor('all of them again', () => asked.length >= 2 * QUESTIONS)
  assert.equal(asked.length, 2 * QUESTIONS)
  assert.deepEqual(asked.at(-1)?.request.values('authorization'), ['Bearer other-token'])
  gateway.apply([])
  await waitFor('the metric to go', async () => (await credential()) === 'none')
})

test('what is missing is logged once with the file; the user reads it beside the 403 of the cluster, and no other answer changes', async () => {
  answer(({ verb, resource }) => verb !== 'impersonate' || resource === 'groups')
  apply()
  await waitFor('the answer', async () => (await credential()) === '0')
  const warnings = told(/lacks rights/)
  assert.equal(warnings.length, 1)
  assert.equal(
    warnings[0]?.['why'],
    'the gateway\'s user "gw" may not impersonate users, serviceaccounts, *.authentication.k8s.io: ' +
      'apply deploy/rbac/upstream-gateway-user.yaml to the cluster, with this user in place of portcullis',
  )
  const refusal = '{"kind":"Status","code":403}'
  stub.answer = (request) => reply(request, 403, refusal)
  const refused = await h2Request(session, [])
  assert.equal(refused.status, 403)
  assert.equal(refused.body.toString(), refusal)
  assert.match(
    valuesOf(refused.head, 'warning').join(),
    /^299 - "cluster \\"prod.example.com\\" refuses the gateway, not you: the gateway's user .*apply deploy\/rbac/,
  )
  // A refusal of the user's own: it has passed priority and fairness.
  stub.answer = (request) => reply(request, 403, refusal, ['x-kubernetes-pf-flowschema-uid', 'u'])
  assert.deepEqual(valuesOf((await h2Request(session, [])).head, 'warning'), [])
  // A pod behind proxy says what it wants, and requests like it do not go through priority and fairness; watches do.
  stub.answer = (request) => reply(request, 403, refusal)
  for (const [path, warnings] of [
    ['/api/v1/namespaces/a/pods/p/proxy/', 0],
    ['/api/v1/namespaces/a/pods/p/log', 0],
    ['/api/v1/pods?watch=true', 1],
  ] as const) {
    assert.equal(valuesOf((await h2Request(session, [':path', path])).head, 'warning').length, warnings, path)
  }
  stub.answer = (request) => reply(request, 200, '{}')
  assert.deepEqual(valuesOf((await h2Request(session, [])).head, 'warning'), [])
})

test('what only pod protection lacks is told as such, and not to a user whose request the cluster refuses', async () => {
  answer(({ resource }) => resource !== 'events')
  const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(stub.caPem) }
  gateway.apply([clusterObject([stub], { clientCA, spec: { clientConfig, podProtection: {} } })])
  const before = told(/lacks rights/).length
  await waitFor('the answer', async () => (await credential()) === '0')
  await waitFor('the log', () => told(/lacks rights that pod protection needs/).length === 1)
  assert.equal(told(/lacks rights/).length, before + 1)
  stub.answer = (request) => reply(request, 403, '{"kind":"Status","code":403}')
  const refused = await h2Request(session, [])
  assert.equal(refused.status, 403)
  assert.deepEqual(valuesOf(refused.head, 'warning'), [])
})

test('a role that names the uids and extra keys of Kubernetes one by one is enough', async () => {
  answer(({ resource }) => resource !== '*')
  apply()
  await waitFor('the answer', async () => (await credential()) === '1')
  const subresources = asked.map(attributesOf).filter(({ resource }) => resource === 'userextras')
  assert.ok(subresources.some(({ subresource }) => subresource === 'authentication.kubernetes.io/credential-id'))
})

test('a cluster that does not say, refuses to be asked, or does not know the credential: each its own', async () => {
  for (const [status, expected] of [
    [401, /does not accept the credential/],
    [403, /lacks rights/],
    [404, /are unknown/],
  ] as const) {
    stub.answerRights = (seen) => reply(seen.request, status, '{"kind":"Status"}')
    apply(`token-${status}`)
    await waitFor(`the answer to ${status}`, async () =>
      told(expected).some(({ why }) => String(why).includes(`${status}`)),
    )
    assert.equal(await credential(), '0')
    gateway.apply([])
  }
})
