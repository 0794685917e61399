// Compares the rights that are checked with those granted by deploy/rbac.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import {
  CACHE_USER,
  type GatewayRight,
  gatewayRights,
  MOST_CACHE_RIGHTS,
  missingRightsMessage,
  requestsStillPass,
  reviewAttributes,
} from './gateway-rights.ts'

const TRIGGER = 'portcullis-update-trigger'
const NEVER = { auto: undefined, recovery: undefined }
const withProtection = (updateTrigger?: { namespace: string }) => ({
  protection: { aggregation: { updateTrigger } },
  degrade: NEVER,
})

interface Role {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules: readonly { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[]
}

/** `verb group/resource namespace name` of all rules of one role in a file. */
function granted(file: string, name: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, '../../../..', file), 'utf8')
  const roles = parseAllDocuments(text).map((document) => document.toJS() as Role)
  const role = roles.find(({ kind, metadata }) => /Role$/.test(kind) && metadata.name === name)
  assert.ok(role, `${file} has no role ${name}`)
  const { namespace = '' } = role.metadata
  return role.rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [''] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => resourceNames.map((one) => `${verb} ${group}/${resource} ${namespace} ${one}`)),
      ),
    ),
  )
}

function same(rights: readonly GatewayRight[], ...roles: (readonly string[])[]): void {
  assert.deepEqual(new Set(asked(rights)), new Set(roles.flat()))
}

function asked(rights: readonly GatewayRight[]): string[] {
  return rights.map(
    ({ verb, group, resource, namespace, name = '' }) => `${verb} ${group}/${resource} ${namespace} ${name}`,
  )
}

test('the recommended user may read the CA of client certificates, without which import makes a cluster that accepts none', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../../deploy/rbac/upstream-gateway-user.yaml'), 'utf8')
  const bindings = parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(({ kind }) => kind === 'RoleBinding' || kind === 'ClusterRoleBinding')
  const names = bindings.map(({ kind, metadata, roleRef }) => `${kind} ${metadata.namespace ?? ''}: ${roleRef.name}`)
  const reader = 'RoleBinding kube-system: extension-apiserver-authentication-reader'
  assert.deepEqual(names, ['ClusterRoleBinding : portcullis-gateway', reader])
  for (const { subjects } of bindings) assert.deepEqual(subjects, bindings[0]?.subjects)
})

test('every right that deploy/rbac gives is asked, and no other', () => {
  const user = granted('deploy/rbac/upstream-gateway-user.yaml', 'portcullis-gateway')
  same(gatewayRights({ protection: undefined, degrade: NEVER }), user)
  const nodes = granted('deploy/rbac/degrade-nodes.yaml', 'portcullis-nodes')
  same(gatewayRights({ protection: undefined, degrade: { ...NEVER, auto: {} } }), user, nodes)
  same(gatewayRights({ protection: undefined, degrade: { ...NEVER, recovery: {} } }), user, nodes)
  const worker = granted('deploy/rbac/protection-worker.yaml', 'portcullis-protection')
  same(gatewayRights(withProtection()), user, worker)
  const trigger = granted('deploy/rbac/protection-worker.yaml', TRIGGER)
  same(gatewayRights(withProtection({ namespace: TRIGGER })), user, worker, trigger)
  const scale = granted('deploy/rbac/scale-worker.yaml', 'portcullis-scale')
  same(gatewayRights({ protection: undefined, scaleProtection: {} }), user, scale)
  const slices = granted('deploy/rbac/endpoint-slices.yaml', 'portcullis-endpoint-slices')
  same(gatewayRights({ protection: undefined, followsSlice: true }), user, slices)
  const cached = granted('deploy/rbac/read-cache.yaml', 'portcullis-read-cache')
  const cache = [{ group: '', resource: 'pods', namespaces: [''] }]
  const forCache = gatewayRights({ protection: undefined, cache })
  same(forCache, user, cached)
  assert.deepEqual(
    new Set(forCache.filter(({ file }) => file.includes('cache')).map((one) => one.user)),
    new Set([CACHE_USER]),
  )
  const autoscaler = { namespace: 'kube-system', name: 'cluster-autoscaler-status' }
  const role = granted('deploy/rbac/autoscaler-status.yaml', 'portcullis-autoscaler-status')
  same(gatewayRights({ protection: undefined, autoscaler }), user, role)
  for (const { file } of gatewayRights({ ...withProtection({ namespace: TRIGGER }), autoscaler })) {
    assert.ok(readFileSync(join(import.meta.dirname, '../../../..', file)).length > 0)
  }
})

test('a right to one object is asked with its name, and lacking it stops no request', () => {
  const scope = { protection: undefined, autoscaler: { namespace: 'kube-system', name: 'a' } }
  const missing = gatewayRights(scope).filter(({ resource }) => resource === 'configmaps')
  assert.deepEqual(missing.map(reviewAttributes), [
    { verb: 'list', group: '', resource: 'configmaps', namespace: 'kube-system', name: 'a' },
    { verb: 'watch', group: '', resource: 'configmaps', namespace: 'kube-system', name: 'a' },
  ])
  assert.match(missingRightsMessage(missing, ''), /may not list configmaps a in namespace kube-system; may not watch/)
  assert.ok(requestsStillPass(missing))
  assert.ok(!requestsStillPass(gatewayRights(scope)))
})

test('a subresource is asked as RBAC writes it', () => {
  const key = 'userextras/authentication.kubernetes.io/pod-name'
  const right = { verb: 'impersonate', group: 'authentication.k8s.io', resource: key, namespace: '', file: '' }
  assert.deepEqual(reviewAttributes(right), {
    verb: 'impersonate',
    group: 'authentication.k8s.io',
    resource: 'userextras',
    subresource: 'authentication.kubernetes.io/pod-name',
  })
})

test('what is missing is said by verb, with the file that gives it', () => {
  const all = gatewayRights(withProtection({ namespace: 'x' }))
  const missing = all.filter(({ verb, namespace }) => verb !== 'get' && verb !== 'list' && namespace !== 'y')
  assert.equal(
    missingRightsMessage(missing, 'gw'),
    'the gateway\'s user "gw" may not impersonate users, groups, serviceaccounts, *.authentication.k8s.io; ' +
      'may not create tokenreviews.authentication.k8s.io, subjectaccessreviews.authorization.k8s.io: ' +
      'apply deploy/rbac/upstream-gateway-user.yaml to the cluster; it may not watch pods; may not create events; ' +
      'may not patch events; may not create pods in namespace x; may not patch pods in namespace x: ' +
      'apply deploy/rbac/protection-worker.yaml to the cluster, with this user in place of portcullis',
  )
  assert.match(
    missingRightsMessage(all.slice(0, 1), ''),
    /^the user of the gateway may not impersonate users: apply [^,]*$/,
  )
})

test('the user that the read cache reads as needs each resource, in each namespace that is named, once', () => {
  const pods = { group: '', resource: 'pods', namespaces: ['a', 'b'] }
  const deployments = { group: 'apps', resource: 'deployments', namespaces: [''] }
  const scope = { protection: undefined, cache: [pods, deployments, deployments] }
  const missing = gatewayRights(scope).filter(({ user }) => user !== undefined)
  assert.deepEqual(asked(missing), [
    'list /pods a ',
    'watch /pods a ',
    'list /pods b ',
    'watch /pods b ',
    'list apps/deployments  ',
    'watch apps/deployments  ',
  ])
  assert.equal(
    missingRightsMessage(missing.slice(2), 'gw'),
    'the user portcullis-cache, as which the read cache reads, may not list pods in namespace b; may not watch pods in namespace b; ' +
      'may not list deployments.apps; may not watch deployments.apps: name them in deploy/rbac/read-cache.yaml and apply it to the cluster',
  )
  assert.ok(requestsStillPass(missing))
  const both = missingRightsMessage([...gatewayRights(scope).slice(0, 1), ...missing.slice(4)], 'portcullis')
  assert.match(both, /^the gateway's user "portcullis" may not impersonate users: apply .*; the user portcullis-cache,/)
  const namespaces = Array.from({ length: 500 }, (_, i) => `ns-${i}`)
  const many = gatewayRights({ protection: undefined, cache: [{ ...pods, namespaces }] })
  assert.equal(many.filter(({ user }) => user !== undefined).length, MOST_CACHE_RIGHTS)
})
