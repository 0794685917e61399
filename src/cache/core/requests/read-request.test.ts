import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequestInfo } from '../../../gateway/core/request/request-info.ts'
import { type ReadRequest, readRequestOf } from './read-request.ts'

function read(target: string, method = 'GET'): ReadRequest | string {
  const info = parseRequestInfo(method, target)
  assert.ok(!('failure' in info), target)
  return readRequestOf(info, method, target)
}

const ALL = { labelSelector: '', fieldSelector: '' }

test('reads that may be answered', () => {
  const rows: readonly (readonly [string, ReadRequest])[] = [
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0', { kind: 'get', freshness: 'any' }],
    ['/api/v1/namespaces/a/pods/x?resourceVersion=12', { kind: 'get', freshness: { notOlderThan: '12' } }],
    ['/api/v1/namespaces/a?resourceVersion=0', { kind: 'get', freshness: 'any' }],
    ['/api/v1/pods', { kind: 'list', freshness: 'consistent', ...ALL }],
    ['/api/v1/pods?resourceVersion=0&limit=500', { kind: 'list', freshness: 'any', ...ALL }],
    [
      '/apis/apps/v1/namespaces/a/deployments?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&resourceVersion=7&limit=0',
      { kind: 'list', freshness: { notOlderThan: '7' }, labelSelector: 'a=b', fieldSelector: 'metadata.name=x' },
    ],
    [
      '/api/v1/pods?resourceVersion=7&resourceVersionMatch=NotOlderThan',
      { kind: 'list', freshness: { notOlderThan: '7' }, ...ALL },
    ],
    [
      '/api/v1/pods?watch=true&resourceVersion=7&timeoutSeconds=5&allowWatchBookmarks=true',
      { kind: 'watch', initial: undefined, after: '7', bookmarks: true, timeoutSeconds: 5, ...ALL },
    ],
    // As client-go sends it, whose clients have their timeoutSeconds as timeout too.
    [
      '/api/v1/pods?allowWatchBookmarks=true&resourceVersion=7&timeout=7m29s&timeoutSeconds=449&watch=true',
      { kind: 'watch', initial: undefined, after: '7', bookmarks: true, timeoutSeconds: 449, ...ALL },
    ],
    ['/api/v1/pods?resourceVersion=0&timeout=32s', { kind: 'list', freshness: 'any', ...ALL }],
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&timeout=1m0s', { kind: 'get', freshness: 'any' }],
    [
      '/api/v1/pods?watch=1',
      { kind: 'watch', initial: 'consistent', after: '', bookmarks: false, timeoutSeconds: 0, ...ALL },
    ],
    [
      '/api/v1/pods?watch=1&resourceVersion=9&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      { kind: 'watch', initial: { notOlderThan: '9' }, after: '', bookmarks: false, timeoutSeconds: 0, ...ALL },
    ],
    [
      '/api/v1/pods?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeout=5m12s&timeoutSeconds=312&watch=true',
      { kind: 'watch', initial: 'consistent', after: '', bookmarks: true, timeoutSeconds: 312, ...ALL },
    ],
    [
      '/api/v1/pods?watch=1&resourceVersion=7&timeout=any',
      { kind: 'watch', initial: undefined, after: '7', bookmarks: false, timeoutSeconds: 0, ...ALL },
    ],
    ...['', '5s', '1m0s', '1h', '1h1m1s'].map(
      (timeout) =>
        [`/api/v1/pods?resourceVersion=0&timeout=${timeout}`, { kind: 'list', freshness: 'any', ...ALL }] as const,
    ),
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&timeout=32s', { kind: 'get', freshness: 'any' }],
  ]
  for (const [target, expected] of rows) assert.deepEqual(read(target), expected, target)
})

test('all others are forwarded, and why', () => {
  const rows: readonly (readonly [string, string, string?])[] = [
    ['/api/v1/namespaces/a/pods/x', 'consistent'],
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&pretty=true', 'parameters'],
    ['/api/v1/namespaces/a/pods/x/status?resourceVersion=0', 'parameters'],
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&watch=1', 'parameters'],
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&timeout=x', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&timeout=1s', 'parameters'],
    ['/api/v1/namespaces/./pods?resourceVersion=0', 'parameters'],
    ['/api/v1/namespaces/../pods?resourceVersion=0', 'parameters'],
    ['/api/v1/pods?limit=5', 'pages'],
    ['/api/v1/pods?resourceVersion=5&limit=5', 'pages'],
    ['/api/v1/pods?continue=abc', 'pages'],
    ['/api/v1/pods?resourceVersion=0&continue=', 'pages'],
    ['/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact', 'exact'],
    ['/api/v1/pods?resourceVersionMatch=NotOlderThan', 'parameters'],
    ['/api/v1/pods?resourceVersion=abc', 'parameters'],
    ['/api/v1/pods?resourceVersion=01', 'parameters'],
    ['/api/v1/pods?resourceVersion=-1', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&resourceVersion=5', 'parameters'],
    ['/api/v1/pods?resourceVersion=0;limit=5', 'parameters'],
    ['/api/v1/pods?resourceVersion=%zz', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&limit=-1', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&shardSelector=x', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&sendInitialEvents=true', 'parameters'],
    ['/api/v1/watch/pods?resourceVersion=5', 'parameters'],
    ['/api/v1/pods/?resourceVersion=0', 'parameters'],
    ['//api/v1/pods?resourceVersion=0', 'parameters'],
    ['/apis//v1/pods?resourceVersion=0', 'parameters'],
    ['/apis//v1/namespaces/a/pods/x?resourceVersion=0', 'parameters'],
    ['/api/v1/namespaces//pods?resourceVersion=0', 'parameters'],
    ['/api/v1/namespaces/a%2fpods?resourceVersion=0', 'parameters'],
    ['/api/v1/namespaces/a/namespaces?resourceVersion=0', 'parameters'],
    ['/api/v1/%70ods?resourceVersion=0', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&labelSelector=a&labelSelector=b', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&label%53elector=a&labelSelector=b', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&FieldSelector=a', 'parameters'],
    ['/api/v1/pods?resourceVersion=0&limit=', 'parameters'],
    ['/api/v1/pods?watch=1&timeoutSeconds=-1', 'parameters'],
    ['/api/v1/pods?watch=1&timeoutSeconds=9999999999', 'parameters'],
    ['/api/v1/pods?resourceVersion=1000000000000000000', 'parameters'],
    ['/api/v1/watch/namespaces/a/pods?resourceVersion=0', 'parameters'],
    ['/api/v1/pods?watch=1&resourceVersion=5&resourceVersionMatch=NotOlderThan', 'parameters'],
    ['/api/v1/pods?watch=1&sendInitialEvents=true', 'parameters'],
    ['/api/v1/pods?watch=1&sendInitialEvents=false&resourceVersion=5', 'parameters'],
    ['/api/v1/pods?watch=1&timeoutSeconds=x', 'parameters'],
    ['/api/v1/pods?watch=1&allowWatchBookmarks=yes', 'parameters'],
    ['/api/v1/pods?watch=1&limit=5', 'parameters'],
    ...['1s', '4s', '0s', '4500ms', '10', 'x', '-5s', '1.5h', '5s1m', '99999s'].map(
      (timeout) => [`/api/v1/pods?resourceVersion=0&timeout=${timeout}`, 'parameters'] as const,
    ),
    ['/api/v1/namespaces/a/pods/x?resourceVersion=0&timeout=1s', 'parameters'],
    ['/api/v1/pods?resourceVersion=0', 'parameters', 'HEAD'],
  ]
  for (const [target, reason, method] of rows) assert.equal(read(target, method), reason, target)
})
