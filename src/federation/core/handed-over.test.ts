import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRequestInfo, type RequestInfo } from '../../gateway/core/request/request-info.ts'
import { handedOverVerbs, isApiDescription, isHandedOver, targetInMember } from './handed-over.ts'

const POD = '/api/v1/namespaces/east--default/pods/web'

function infoOf(method: string, target: string): RequestInfo {
  const info = parseRequestInfo(method, target)
  if ('failure' in info) throw new Error(info.failure)
  return info
}

for (const [method, target, isIt] of [
  ['GET', `${POD}/log`, true],
  ['GET', `${POD}/log?container=c&follow=true`, true],
  ['GET', `${POD}/exec?command=sh`, true],
  ['POST', `${POD}/exec?command=sh`, true],
  ['POST', `${POD}/attach`, true],
  ['GET', `${POD}/portforward?ports=80`, true],
  // An encoded letter is the same path.
  ['GET', '/api/v1/namespaces/%65ast--default/pods/web/log', true],
  ['POST', `${POD}/log`, false],
  ['HEAD', `${POD}/log`, false],
  ['DELETE', `${POD}/exec`, false],
  ['PUT', `${POD}/attach`, false],
  ['GET', POD, false],
  ['GET', `${POD}/proxy`, false],
  ['GET', `${POD}/proxy/log`, false],
  ['PUT', `${POD}/ephemeralcontainers`, false],
  ['GET', `${POD}/log/`, false],
  ['GET', `${POD}/log/more`, false],
  ['GET', `/${POD}/log`, false],
  ['GET', '/api/v1//namespaces/east--default/pods/web/log', false],
  ['GET', '/api/v1/watch/namespaces/east--default/pods/web/log', false],
  ['GET', '/api/v1/proxy/namespaces/east--default/pods/web/log', false],
  ['GET', '/api/v1/pods/web/log', false],
  ['GET', '/api/v2/namespaces/east--default/pods/web/log', false],
  ['GET', '/apis/v1/v1/namespaces/east--default/pods/web/log', false],
  ['GET', '/api/v1/namespaces/east--default/services/web/log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/../log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/./log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/%2e%2e/log', false],
  ['GET', '/api/v1/namespaces/../pods/web/log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/web%2flog', true],
  ['GET', '/api/v1/namespaces/east--default/pods/web%2fx/log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/web%20/log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/web%3fx/log', false],
  ['GET', '/api/v1/namespaces/east--default/pods/WEB/log', false],
  ['GET', '/api/v1/namespaces/east--default%00/pods/web/log', false],
] as const) {
  test(`${method} ${target} ${isIt ? 'is' : 'is not'} handed over`, () => {
    assert.equal(isHandedOver(method, infoOf(method, target)), isIt)
  })
}

test('the member gets the same request for its own namespace, and its query as it came', () => {
  const of = (target: string, namespace: string): string | undefined =>
    targetInMember(target, infoOf('GET', target), namespace)
  assert.equal(of(`${POD}/log`, 'default'), '/api/v1/namespaces/default/pods/web/log')
  const query = '?command=%2Fbin%2Fsh&command=a%20b&command=?&x=/../'
  assert.equal(of(POD.concat('/exec', query), 'kube-system'), `/api/v1/namespaces/kube-system/pods/web/exec${query}`)
  assert.equal(of(`${POD.replace('web', '%77eb')}/log`, 'default'), '/api/v1/namespaces/default/pods/web/log')
  for (const namespace of ['', '..', '.', 'a/b', '-a', 'A', 'a?b', 'a%2fb'])
    assert.equal(of(`${POD}/log`, namespace), undefined)
})

test('whatever is handed over, the member reads what was meant', () => {
  const odd = fc.string({ unit: fc.constantFrom('a', '-', '.', '/', '%', '2', 'f', 'e', '?', '#', ';', 'A', ' ') })
  const part = fc.oneof(fc.constantFrom('a', 'east--a', 'a.b', '%61'), odd)
  let handedOver = 0
  fc.assert(
    fc.property(
      part,
      part,
      fc.oneof(fc.constantFrom('', '?x=/..'), odd),
      fc.constantFrom('log', 'exec', 'attach'),
      (namespace, name, more, subresource) => {
        const target = `/api/v1/namespaces/${namespace}/pods/${name}/${subresource}${more}`
        const info = parseRequestInfo('GET', target)
        if ('failure' in info || !isHandedOver('GET', info)) return
        handedOver++
        const inMember = targetInMember(target, info, 'default')
        assert.ok(inMember !== undefined)
        const read = infoOf('GET', inMember)
        assert.deepEqual({ ...read, path: '' }, { ...info, path: '', namespace: 'default' })
        assert.equal(inMember.slice(read.path.length), target.includes('?') ? target.slice(target.indexOf('?')) : '')
      },
    ),
  )
  assert.ok(handedOver > 0)
})

test('discovery has the verbs of what is handed over', () => {
  assert.deepEqual(handedOverVerbs('v1', 'pods/log'), ['get'])
  assert.deepEqual(handedOverVerbs('v1', 'pods/exec'), ['create', 'get'])
  for (const other of ['pods', 'pods/proxy', 'pods/log/x', 'services/log', 'log'])
    assert.equal(handedOverVerbs('v1', other), undefined, other)
  assert.equal(handedOverVerbs('apps/v1', 'pods/log'), undefined)
})

test('what describes the API', () => {
  for (const [target, isIt] of [
    ['/openapi/v2', true],
    ['/openapi/v3', true],
    ['/openapi/v3?timeout=32s', true],
    ['/openapi/v3/apis/apps/v1?hash=ABC', true],
    ['/openapi/v3/', false],
    ['/openapi/v3/../x', false],
    ['/openapi/v3/a//b', false],
    ['/openapi/v%33', false],
    ['//openapi/v3', false],
    ['/openapi', false],
    ['/openapi/v2/x', false],
    ['/openapi/v3x', false],
    ['/version', false],
  ] as const)
    assert.equal(isApiDescription('GET', target, infoOf('GET', target).path), isIt, target)
  assert.equal(isApiDescription('POST', '/openapi/v3', '/openapi/v3'), false)
})
