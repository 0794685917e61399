import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRequestInfo, type RequestInfo, type RequestInfoFailure } from './request-info.ts'

interface TableCase {
  readonly id: number
  readonly method: string
  readonly url: string
  /** With `parts`, the segments from the resource on, which are not used here. */
  readonly expected: RequestInfo & { readonly parts: readonly string[] }
}

const table: { cases: TableCase[] } = JSON.parse(
  readFileSync(new URL('../../../../test/data/requestinfo.json', import.meta.url), 'utf8'),
)

function parsed(method: string, target: string): RequestInfo {
  const info = parseRequestInfo(method, target)
  assert.ok(!('failure' in info), target)
  return info
}

test("kube-apiserver's own table, every field", () => {
  assert.equal(table.cases.length, 61)
  for (const { id, method, url, expected } of table.cases) {
    const { parts: _, ...rest } = expected
    assert.deepEqual(parseRequestInfo(method, url), rest, `case ${id}: ${method} ${url}`)
  }
})

// [method, target, `verb namespace resource name subresource` or the code]: answers of k8s.io/apiserver v0.36 itself,
// behind Go's HTTP server.
const ANSWERS: readonly (readonly [string, string, string])[] = [
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da', 'list  pods a '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3D%3Da', 'list  pods a '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name!%3Da', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3D', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3D.', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3D..', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da%2Fb', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da%25', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Db%2Cmetadata.name%3Da', 'list  pods a '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da%5C%2Cb', 'list  pods a,b '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da%5Cb', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Da%3Db', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=x%3Dy%2Cmetadata.name%3Da', 'list  pods a '],
  ['GET', '/api/v1/pods?fieldSelector=x%2Cmetadata.name%3Da', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=%2Cmetadata.name%3Da%2C', 'list  pods a '],
  ['GET', '/api/v1/pods?fieldSelector=%20metadata.name%3Da', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name%3D%3D%3Da', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.namespace%3Da', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=5', 'list  pods q '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=x', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=9223372036854775808', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=-1', 'list  pods q '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&timeoutSeconds=1.5', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&timeoutSeconds=+5', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=1&limit=x', 'list  pods q '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&l%69mit=x', 'list  pods  '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=%zz', 'list  pods q '],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=q&limit=1;x', 'list  pods q '],
  ['GET', '/api/v1/pods?watch', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=0', 'list  pods  '],
  ['GET', '/api/v1/pods?watch=FALSE', 'list  pods  '],
  ['GET', '/api/v1/pods?watch=no', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=1&watch=0', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=0&watch=1', 'list  pods  '],
  ['GET', '/api/v1/pods?w%61tch=1', 'watch  pods  '],
  ['GET', '/api/v1/pods?Watch=1', 'list  pods  '],
  ['GET', '/api/v1/pods?watch=1;x=2', 'list  pods  '],
  ['GET', '/api/v1/pods?x=1;watch=1', 'list  pods  '],
  ['GET', '/api/v1/pods?&&watch=1', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=%zz&watch=1', 'watch  pods  '],
  ['GET', '/api/v1/pods?watch=1#', 'watch  pods  '],
  ['GET', '/api/v1/pods?wat+ch=1', 'list  pods  '],
  ['DELETE', '/api/v1/pods?fieldSelector=metadata.name%3Dq', 'deletecollection  pods  '],
  ['HEAD', '/api/v1/pods?watch=1', 'watch  pods  '],
  ['OPTIONS', '/api/v1/pods', '  pods  '],
  ['get', '/api/v1/pods', '  pods  '],
  ['POST', '/api/v1/pods?watch=1', 'create  pods  '],
  ['GET', '/api/v1/pods/a%2Fb', 'get  pods a b'],
  ['GET', '/api/v1/namespaces/x/pods/%E4%BD%A0', 'get x pods 你 '],
  ['GET', '/api/v1/pods/a+b', 'get  pods a+b '],
  ['GET', '/api/v1/pods/../secrets', 'get  pods .. secrets'],
  ['GET', '/api/v1/pods/%2e%2e/x', 'get  pods .. x'],
  ['GET', '//api//v1/pods', 'get  v1 pods '],
  ['GET', '///api/v1/pods//', 'list  pods  '],
  ['GET', '/api//v1/pods', 'get  v1 pods '],
  ['GET', '/api/v1/pods/%zz', '400'],
  ['GET', '/api/v1/pods/%4', '400'],
  ['GET', '/api/v1/watch', '500'],
  ['GET', '/api/v1/proxy/', '500'],
  ['GET', '/apis/g/v/watch', '500'],
  ['GET', '/%61pi/v1/pods', 'list  pods  '],
  ['GET', 'http://h/api/v1/pods?watch=1', 'watch  pods  '],
  ['GET', 'HTTPS://h:1', 'get    '],
  ['GET', '*', 'get    '],
  ['OPTIONS', '*', 'options    '],
  ['GET', 'api/v1/pods', '400'],
  ['GET', '/api/v1/namespaces//pods', 'list  pods  '],
  ['DELETE', '/api/v1/namespaces/x', 'delete x namespaces x '],
  ['GET', '/apis/g/v/namespaces/n/status/x', 'get n namespaces n status'],
  ['CONNECT', 'h:443', 'connect    '],
  ['GET', '/api/v1/pods/%00', 'get  pods \0 '],
]

test('what kube-apiserver makes of odd targets and queries', () => {
  for (const [method, target, expected] of ANSWERS) {
    const info = parseRequestInfo(method, target)
    const answer =
      'failure' in info
        ? String(info.code)
        : [info.verb, info.namespace, info.resource, info.name, info.subresource].join(' ')
    assert.equal(answer, expected, `${method} ${target}`)
  }
})

test('selectors are kept as asked, for list, watch and deletecollection only', () => {
  const query = '?fieldSelector=spec.nodeName%3Dn%2B1&labelSelector=a+in+(b)&labelSelector=c'
  for (const [method, path] of [
    ['GET', '/api/v1/pods'],
    ['DELETE', '/api/v1/namespaces/x/pods'],
  ] as const) {
    const info = parsed(method, path + query)
    assert.equal(info.fieldSelector, 'spec.nodeName=n+1')
    assert.equal(info.labelSelector, 'a in (b)')
  }
  for (const [method, path] of [
    ['GET', '/api/v1/pods/x'],
    ['POST', '/api/v1/pods'],
    ['GET', '/api/v1/watch/pods'],
    ['GET', '/healthz'],
  ] as const) {
    const info = parsed(method, path + query)
    assert.equal(info.fieldSelector + info.labelSelector, '', path)
  }
})

test('a target is bytes: raw and escaped UTF-8 are the same name, and invalid UTF-8 does not throw', () => {
  const raw = Buffer.from('/api/v1/pods/Grüße', 'utf8').toString('latin1')
  assert.equal(parsed('GET', raw).name, 'Grüße')
  assert.equal(parsed('GET', '/api/v1/pods/Gr%C3%BC%C3%9Fe').name, 'Grüße')
  assert.equal(parsed('GET', '/api/v1/pods/%ff').name, '\uFFFD')
  // Possible from a command line, not from a connection.
  assert.equal(parsed('GET', '/api/v1/pods/你').name, '你')
})

test('control characters and broken escapes are refused with 400', () => {
  for (const target of [
    '/api/v1/pods\n',
    '/a\x7f',
    '/\0',
    '/a?x=\t',
    '/%',
    '/%1',
    '/%g1',
    'http://h/%zz',
    'a/b',
    '?x',
  ]) {
    const info = parseRequestInfo('GET', target)
    assert.ok('failure' in info && info.code === 400, JSON.stringify(target))
  }
})

test('more than 9999 parameters are refused: some servers read none of them, others all', () => {
  const fill = '&'.repeat(9_998)
  for (const [method, path] of [
    ['GET', '/api/v1/pods'],
    ['DELETE', '/api/v1/namespaces/a/pods'],
    ['POST', '/api/v1/namespaces/a/pods/b/exec'],
    ['GET', '/version'],
    ['GET', 'https://host/api/v1/pods'],
  ] as const) {
    assert.ok(!('failure' in parseRequestInfo(method, `${path}?${fill}watch=1`)), path)
    const failure = 'the query has more than 9999 parameters'
    assert.deepEqual(parseRequestInfo(method, `${path}?${fill}&watch=1`), { failure, code: 400 })
  }
  assert.equal(parsed('GET', `/api/v1/pods?${fill}watch=1`).verb, 'watch')
  assert.equal(parsed('GET', `/api/v1/pods?b=${'b'.repeat(20_000)}&watch=1`).verb, 'watch')
  // In the path it is a character like any other.
  assert.ok(!('failure' in parseRequestInfo('GET', `/${'&'.repeat(20_000)}?a=b`)))
})

test('a broken escape in the query is not: only its pair is dropped', () => {
  assert.equal(parsed('GET', '/api/v1/pods?a=%zz&watch=1').verb, 'watch')
})

const segment = fc.constantFrom(
  ...[
    'api',
    'apis',
    'v1',
    'apps',
    'namespaces',
    'pods',
    'a',
    'status',
    'finalize',
    'watch',
    'proxy',
    'log',
    '',
    '..',
    '%2F',
    '%',
  ],
)
const path = fc.array(segment, { maxLength: 8 }).map((segments) => `/${segments.join('/')}`)
const query = fc.constantFrom('', '?', '?watch', '?watch=0', '?fieldSelector=metadata.name=a', '?fieldSelector=x')
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY')

test('never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string()), fc.string(), (target, verb) => {
      const info = parseRequestInfo(verb, target)
      assert.ok('failure' in info || typeof info.path === 'string')
    }),
  )
})

/** requestinfo.go, transcribed with splits and slices. */
function simpleRequestInfo(verb: string, target: string): string {
  const [rawPath = '', ...rest] = target.split('?')
  let decoded: string
  try {
    decoded = decodeURIComponent(rawPath)
  } catch {
    return '400'
  }
  const trimmed = decoded.replace(/^\/+|\/+$/g, '')
  let parts = trimmed === '' ? [] : trimmed.split('/')
  const prefix = parts[0]
  const grouped = prefix === 'apis'
  if (parts.length < (grouped ? 4 : 3) || (prefix !== 'api' && prefix !== 'apis')) return verb.toLowerCase()
  const group = grouped ? parts[1] : ''
  parts = parts.slice(grouped ? 3 : 2)
  let special = ''
  if (parts[0] === 'watch' || parts[0] === 'proxy') {
    if (parts.length < 2) return '500'
    special = parts[0]
    parts = parts.slice(1)
  }
  let namespace = ''
  if (parts[0] === 'namespaces' && parts.length > 1) {
    namespace = parts[1] ?? ''
    if (parts.length > 2 && !['status', 'finalize'].includes(parts[2] ?? '')) parts = parts.slice(2)
  }
  let name = parts[1] ?? ''
  const verbs = new Map(
    Object.entries({ GET: 'get', HEAD: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }),
  )
  let kubeVerb = special === '' ? (verbs.get(verb) ?? '') : special
  const subresource = special === 'proxy' ? '' : (parts[2] ?? '')
  if (name === '' && kubeVerb === 'get') {
    const parameters = new URLSearchParams(rest.join('?'))
    const watch = parameters.get('watch')
    kubeVerb = watch === null || watch === '0' ? 'list' : 'watch'
    if (parameters.get('fieldSelector')?.startsWith('metadata.name=') === true) name = 'a'
  }
  if (name === '' && kubeVerb === 'delete') kubeVerb = 'deletecollection'
  return [kubeVerb, group, namespace, parts[0], name, subresource].join(' ')
}

function summary(info: RequestInfo | RequestInfoFailure): string {
  if ('failure' in info) return String(info.code)
  if (!info.isResourceRequest) return info.verb
  const { verb, apiGroup, namespace, resource, name, subresource } = info
  return [verb, apiGroup, namespace, resource, name, subresource].join(' ')
}

test('equals a plain transcription of requestinfo.go', () => {
  fc.assert(
    fc.property(method, path, query, (verb, rawPath, rawQuery) => {
      const info = parseRequestInfo(verb, rawPath + rawQuery)
      assert.equal(summary(info), simpleRequestInfo(verb, rawPath + rawQuery))
    }),
    { numRuns: 2000 },
  )
})

test('resource, name and subresource are segments of the path, in this order', () => {
  fc.assert(
    fc.property(method, path, (verb, rawPath) => {
      const info = parseRequestInfo(verb, rawPath)
      if ('failure' in info || !info.isResourceRequest) return
      const trimmed = info.path.replace(/^\/+|\/+$/g, '')
      assert.ok(trimmed.startsWith(`${info.apiPrefix}/`))
      const said = [info.resource, info.name, info.subresource].filter((part) => part !== '').join('/')
      assert.ok(`/${trimmed}/`.includes(`/${said}`) || rawPath.includes('proxy') || trimmed.includes('//'), said)
    }),
  )
})
