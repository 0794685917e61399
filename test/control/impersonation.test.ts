// `kubectl --as` against the embedded API server: what is asked for with less power is not done with more.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

let control: TestControl
before(async () => {
  control = await startControl()
})
after(() => control.stop())

function ask(headers: Record<string, string>, method = 'GET', body?: object): Promise<KubeResponse> {
  const { server, caPem: ca, admin: cert } = control
  const path = '/api/v1/namespaces/default/secrets'
  return kubeRequest({ server, ca, user: { cert }, path, method, headers, ...(body && { body }) })
}

test('an administrator who impersonates a user without a role is refused', async () => {
  assert.equal((await ask({})).status, 200)
  const as = await ask({ 'Impersonate-User': 'vera' })
  assert.equal(as.status, 403)
  assert.match(as.json().message, /User "vera" cannot list resource "secrets"/)
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } }
  assert.equal((await ask({ 'Impersonate-User': 'vera' }, 'POST', secret)).status, 403)
  assert.equal((await ask({ 'IMPERSONATE-user': 'vera' })).status, 403)
})

test('a member of a group may do what that group may', async () => {
  const headers = { 'Impersonate-User': 'vera', 'Impersonate-Group': 'portcullis:admins' }
  assert.equal((await ask(headers)).status, 200)
})

test('a viewer may not impersonate any user; a group without a user makes no sense', async () => {
  const { server, caPem: ca, viewer: cert } = control
  const common = { server, ca, user: { cert }, path: '/api/v1/namespaces' }
  assert.equal((await kubeRequest({ ...common, headers: { 'Impersonate-User': 'alice' } })).status, 403)
  assert.equal((await ask({ 'Impersonate-Group': 'portcullis:admins' })).status, 400)
})
