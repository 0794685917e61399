import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SCHEME } from '../program/api/scheme.ts'
import { Discovery } from './discovery.ts'
import type { HttpAnswer } from './http/answer.ts'
import { apiGroups, apiResources } from './objects/api-resources.ts'
import { SELF_REVIEW_KINDS } from './objects/self-review-kinds.ts'

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

const discovery = new Discovery(apiGroups(apiResources(SCHEME, SELF_REVIEW_KINDS)))

function get(path: string, accept = '', ifNoneMatch = ''): HttpAnswer {
  const answer = discovery.answer(path, accept, ifNoneMatch)
  assert.ok(answer !== undefined, `${path} is not a discovery path`)
  return answer
}

function header({ headers }: HttpAnswer, name: string): string {
  return headers[headers.indexOf(name) + 1] ?? ''
}

// biome-ignore lint/suspicious/noExplicitAny: documents are looked at by their fields
const json = (answer: HttpAnswer): any => JSON.parse(answer.body.toString())

test('aggregated: all groups in one document, and the core group in its own', () => {
  for (const version of ['v2', 'v2beta1']) {
    const accept = AGGREGATED.replace('v=v2', `v=${version}`)
    const core = get('/api', accept)
    assert.equal(
      header(core, 'content-type'),
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    )
    assert.equal(header(core, 'vary'), 'Accept')
    assert.equal(json(core).apiVersion, `apidiscovery.k8s.io/${version}`)
    assert.equal(json(core).items.length, 1)
    assert.deepEqual(json(core).items[0].metadata, {})
    const named = json(get('/apis', accept)).items
    const names = named.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
    assert.ok(names.includes('proxy.kubegateway.io') && names.includes('coordination.k8s.io') && !names.includes(''))
  }
})

test('a resource has its names, verbs, scope and subresources', () => {
  const groups = json(get('/apis', AGGREGATED)).items
  const group = groups.find((item: { metadata: { name: string } }) => item.metadata.name === 'proxy.kubegateway.io')
  assert.deepEqual(group.versions[0].resources[0], {
    resource: 'upstreamclusters',
    responseKind: { group: 'proxy.kubegateway.io', version: 'v1alpha1', kind: 'UpstreamCluster' },
    scope: 'Cluster',
    singularResource: 'upstreamcluster',
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['uc'],
    subresources: [
      {
        subresource: 'status',
        responseKind: { group: 'proxy.kubegateway.io', version: 'v1alpha1', kind: 'UpstreamCluster' },
        verbs: ['get', 'patch', 'update'],
      },
    ],
  })
})

test('legacy: a document each', () => {
  assert.deepEqual(json(get('/api')).versions, ['v1'])
  const list = json(get('/apis'))
  assert.equal(list.kind, 'APIGroupList')
  const group = list.groups.find(({ name }: { name: string }) => name === 'coordination.k8s.io')
  const version = { groupVersion: 'coordination.k8s.io/v1', version: 'v1' }
  assert.deepEqual(group, { name: 'coordination.k8s.io', versions: [version], preferredVersion: version })
  assert.deepEqual(json(get('/apis/coordination.k8s.io')), { kind: 'APIGroup', apiVersion: 'v1', ...group })
  const resources = json(get('/apis/proxy.kubegateway.io/v1alpha1')).resources
  assert.deepEqual(
    resources.map(({ name, singularName }: { name: string; singularName: string }) => [name, singularName]),
    [
      ['upstreamclusters', 'upstreamcluster'],
      ['upstreamclusters/status', ''],
    ],
  )
  assert.equal(json(get('/api/v1')).groupVersion, 'v1')
  // These have no such conversion and answer with the plain document.
  assert.equal(json(get('/api/v1', AGGREGATED)).kind, 'APIResourceList')
})

test('self reviews can only be created', () => {
  const [review] = json(get('/apis/authentication.k8s.io/v1')).resources
  assert.deepEqual([review.name, review.verbs], ['selfsubjectreviews', ['create']])
})

test('each form has an entity tag of its own, and is sent once', () => {
  const legacy = get('/apis')
  const aggregated = get('/apis', AGGREGATED)
  assert.notEqual(header(legacy, 'etag'), header(aggregated, 'etag'))
  assert.match(header(aggregated, 'etag'), /^"[0-9A-F]{128}"$/)
  for (const ifNoneMatch of [header(aggregated, 'etag'), `"x", W/${header(aggregated, 'etag')}`, '*']) {
    const again = get('/apis', AGGREGATED, ifNoneMatch)
    assert.deepEqual([again.code, again.body.length], [304, 0])
    assert.equal(header(again, 'etag'), header(aggregated, 'etag'))
  }
  assert.equal(get('/apis', AGGREGATED, header(legacy, 'etag')).code, 200)
})

test('YAML, a trailing slash, and unacceptable media types', () => {
  assert.match(get('/apis', 'application/yaml').body.toString(), /^kind: APIGroupList\n/)
  assert.equal(json(get('/apis/')).kind, 'APIGroupList')
  assert.equal(get('/apis', 'text/html').code, 406)
  assert.equal(json(get('/apis', 'text/html')).reason, 'NotAcceptable')
})

test('other paths are not discovery', () => {
  for (const path of ['/', '', '/api/v2', '/apis/none', '/apis/apps/v1', '/apis/__proto__', '/version', '/apis//v1']) {
    assert.equal(discovery.answer(path, '', ''), undefined, path)
  }
})
