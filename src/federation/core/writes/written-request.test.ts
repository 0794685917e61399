import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRequestInfo, type RequestInfo } from '../../../gateway/core/request/request-info.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { objectPath } from '../handed-over.ts'
import { writtenQuery, writtenRequest, writtenVerbs } from './written-request.ts'

const PODS = '/api/v1/namespaces/east--default/pods'
const POD = `${PODS}/web`
const DEPLOYMENT = '/apis/apps/v1/namespaces/east--default/deployments/web'

function infoOf(method: string, target: string): RequestInfo {
  const info = parseRequestInfo(method, target)
  if ('failure' in info) throw new Error(info.failure)
  return info
}

for (const [method, target, body] of [
  ['POST', PODS, 'object'],
  ['PUT', POD, 'object'],
  ['PATCH', `${POD}?fieldManager=x`, 'patch'],
  ['DELETE', POD, 'options'],
  ['DELETE', `${PODS}?labelSelector=a`, 'options'],
  ['PUT', `${POD}/status`, 'object'],
  ['PATCH', `${POD}/resize`, 'patch'],
  ['PATCH', `${POD}/ephemeralcontainers`, 'patch'],
  ['GET', `${POD}/ephemeralcontainers`, 'none'],
  ['POST', `${POD}/eviction`, 'eviction'],
  ['GET', `${DEPLOYMENT}/scale`, 'none'],
  ['PUT', `${DEPLOYMENT}/scale`, 'object'],
  ['PATCH', `${DEPLOYMENT}/scale`, 'patch'],
  ['GET', `${DEPLOYMENT}/status`, 'none'],
  ['POST', '/api/v1/nodes', 'object'],
  ['DELETE', '/api/v1/nodes/east--n1', 'options'],
  ['PATCH', '/api/v1/nodes/east--n1/status', 'patch'],
  ['POST', '/api/v1/namespaces', 'object'],
  ['DELETE', '/api/v1/namespaces/east--a', 'options'],
  ['PUT', '/api/v1/namespaces/east--a/status', 'object'],
  ['PUT', '/apis/rbac.authorization.k8s.io/v1/clusterroles/east--system:x', 'object'],
] as const) {
  test(`${method} ${target} is a write`, () => {
    const isCollection = method === 'DELETE' && target.startsWith(`${PODS}?`)
    assert.deepEqual(writtenRequest(method, infoOf(method, target)), { body, isCollection })
  })
}

for (const [method, target] of [
  ['GET', POD],
  ['GET', PODS],
  ['HEAD', `${POD}/status`],
  ['OPTIONS', POD],
  ['constructor', POD],
  ['toString', `${DEPLOYMENT}/scale`],
  ['POST', '/apis/metrics.k8s.io/v1/namespaces/east--default/pods/web/eviction'],
  ['POST', POD],
  ['PUT', PODS],
  ['PATCH', PODS],
  ['POST', `${POD}/binding`],
  ['POST', `${POD}/exec`],
  ['POST', `${POD}/proxy`],
  ['POST', `${POD}/status`],
  ['DELETE', `${POD}/status`],
  ['DELETE', `${DEPLOYMENT}/scale`],
  ['POST', `${DEPLOYMENT}/eviction`],
  ['PUT', `${POD}/constructor`],
  ['PUT', '/api/v1/namespaces/east--a/finalize'],
  ['POST', '/api/v1/namespaces/east--default/serviceaccounts/x/token'],
  ['DELETE', '/api/v1/pods'],
  ['DELETE', '/api/v1/nodes'],
  ['DELETE', '/api/v1/namespaces'],
  ['DELETE', `${POD}/`],
  ['DELETE', `/${POD}`],
  ['DELETE', '/api/v1/watch/namespaces/east--default/pods/web'],
  ['DELETE', '/api/v1/proxy/namespaces/east--default/pods/web'],
  ['DELETE', '/api/v1/namespaces/east--default/pods/..'],
  ['DELETE', '/api/v1/namespaces/east--default/pods/%2e%2e'],
  ['DELETE', '/api/v1/namespaces/../pods/web'],
  ['DELETE', '/api/v1/namespaces/east--default/pods/web%2fstatus%2fx'],
  ['DELETE', '/api/v1/namespaces/east--default/pods/web%3fdryRun=All'],
  ['DELETE', '/api/v1/namespaces/east--default/pods/web%20'],
  ['DELETE', '/api/v1/namespaces/a/namespaces/b'],
] as const) {
  test(`${method} ${target} is not`, () => {
    assert.equal(writtenRequest(method, infoOf(method, target)), undefined)
  })
}

test('the member reads what was meant', () => {
  const odd = fc.string({ unit: fc.constantFrom('a', '-', '.', '/', '%', '2', 'f', 'e', '?', '#', ';', 'A', ':', ' ') })
  const part = fc.oneof(fc.constantFrom('a', 'east--a', 'a.b', '%61', 'namespaces', 'status'), odd)
  let writes = 0
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 6 }),
      fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'),
      (parts, method) => {
        const info = parseRequestInfo(method, `/api/v1/${parts.join('/')}`)
        if ('failure' in info || writtenRequest(method, info) === undefined) return
        writes++
        const selectors = { fieldSelector: '', labelSelector: '' }
        const isNamespace = info.resource === 'namespaces'
        const inMember = {
          ...info,
          namespace: info.namespace && 'other',
          name: isNamespace ? info.namespace && 'other' : info.name,
        }
        const path = objectPath(inMember)
        assert.deepEqual({ ...infoOf(method, path), ...selectors }, { ...inMember, path, ...selectors })
      },
    ),
    { numRuns: 2000 },
  )
  assert.ok(writes > 0)
})

test('discovery has the verbs of what is written', () => {
  assert.deepEqual(writtenVerbs('v1', 'pods', true), ['create', 'delete', 'patch', 'update', 'deletecollection'])
  assert.deepEqual(writtenVerbs('v1', 'nodes', false), ['create', 'delete', 'patch', 'update'])
  assert.deepEqual(writtenVerbs('v1', 'pods/eviction', true), ['create'])
  assert.deepEqual([...writtenVerbs('apps/v1', 'deployments/scale', true)].sort(), ['get', 'patch', 'update'])
  for (const none of ['pods/log', 'pods/binding', 'pods/status/x', 'services/resize'])
    assert.deepEqual(writtenVerbs('v1', none, true), [], none)
})

const changes = {
  resourceVersion: (shown: string) => (shown === '' ? '' : `rv ${shown}`),
  fieldSelector: (shown: string) => `fields ${shown}`,
}

for (const [before, after] of [
  ['dryRun=All&dryRun=All&fieldManager=a%20b&&x', 'dryRun=All&dryRun=All&fieldManager=a%20b&&x'],
  ['resourceVersion=7&uid=u', 'resourceVersion=rv%207&uid=u'],
  ['resource%56ersion=%37', 'resourceVersion=rv%207'],
  ['resourceVersion=', 'resourceVersion='],
  ['fieldSelector=a%3Db&labelSelector=a%3Db', 'fieldSelector=fields%20a%3Db&labelSelector=a%3Db'],
  // Go does not read these.
  ['resourceVersion=%zz&resourceVersion=7;x=1', 'resourceVersion=%zz&resourceVersion=7;x=1'],
  ['ResourceVersion=7&limit=5', 'ResourceVersion=7&limit=5'],
] as const)
  test(before, () => {
    assert.equal(writtenQuery(before, false, changes), after)
  })

test('what is there twice, and pages of what is deleted, are refused', () => {
  assert.throws(() => writtenQuery('resourceVersion=7&x&resource%56ersion=8', false, changes), UnreadableBody)
  assert.throws(() => writtenQuery('fieldSelector=a&fieldSelector=', true, changes), UnreadableBody)
  for (const query of ['continue=x', 'limit=5', 'resourceVersionMatch=Exact'])
    assert.throws(() => writtenQuery(query, true, changes), UnreadableBody)
  assert.equal(writtenQuery('continue=&limit=', true, changes), 'continue=&limit=')
})
