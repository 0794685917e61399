import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FederatedRead, federatedReadOf } from './federated-read.ts'

const V = '1000703123'
const VECTOR = { epoch: 7, versions: ['123'] }

interface Row {
  readonly kind: FederatedRead['kind']
  readonly query: string
  /** Absent = it is refused. */
  readonly read?: object
}

const ROWS: readonly Row[] = [
  { kind: 'get', query: '', read: { freshness: 'consistent' } },
  { kind: 'get', query: `resourceVersion=${V}`, read: { freshness: { notOlderThan: VECTOR } } },
  { kind: 'list', query: '', read: { freshness: 'consistent', limit: 0, continue: '' } },
  { kind: 'list', query: 'resourceVersion=0', read: { freshness: 'any' } },
  // Reflectors send both; a kube-apiserver answers with all.
  { kind: 'list', query: 'resourceVersion=0&limit=500', read: { freshness: 'any', limit: 0 } },
  { kind: 'list', query: 'limit=500', read: { freshness: 'consistent', limit: 500 } },
  { kind: 'list', query: `resourceVersion=${V}`, read: { freshness: { notOlderThan: VECTOR } } },
  { kind: 'list', query: `resourceVersion=${V}&limit=5`, read: { freshness: { exactly: VECTOR }, limit: 5 } },
  {
    kind: 'list',
    query: `resourceVersion=${V}&resourceVersionMatch=Exact`,
    read: { freshness: { exactly: VECTOR } },
  },
  {
    kind: 'list',
    query: `resourceVersion=${V}&resourceVersionMatch=NotOlderThan&limit=5`,
    read: { freshness: { notOlderThan: VECTOR }, limit: 5 },
  },
  {
    kind: 'list',
    query: 'labelSelector=a%3Db&fieldSelector=c%3Dd',
    read: { labelSelector: 'a=b', fieldSelector: 'c=d' },
  },
  { kind: 'list', query: 'continue=x&limit=5', read: { freshness: 'any', continue: 'x', limit: 5 } },
  { kind: 'list', query: `continue=x&resourceVersion=${V}` },
  { kind: 'list', query: 'continue=x&resourceVersionMatch=Exact' },
  { kind: 'list', query: 'resourceVersionMatch=NotOlderThan' },
  { kind: 'list', query: 'resourceVersion=0&resourceVersionMatch=Exact' },
  { kind: 'list', query: `resourceVersion=${V}&resourceVersionMatch=Sometimes` },
  { kind: 'list', query: 'resourceVersion=abc' },
  { kind: 'list', query: `resourceVersion=1${'0'.repeat(4000)}` },
  { kind: 'list', query: 'resourceVersion=0123' },
  { kind: 'list', query: 'limit=-1' },
  { kind: 'list', query: 'limit=1&limit=2' },
  { kind: 'list', query: 'labelSelector=%zz' },
  { kind: 'watch', query: `resourceVersion=${V}`, read: { initial: undefined, after: VECTOR, bookmarks: false } },
  { kind: 'watch', query: '', read: { initial: 'consistent', after: undefined } },
  { kind: 'watch', query: 'resourceVersion=0&allowWatchBookmarks=true', read: { initial: 'any', bookmarks: true } },
  {
    kind: 'watch',
    query: `resourceVersion=${V}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
    read: { initial: { notOlderThan: VECTOR }, after: undefined },
  },
  { kind: 'watch', query: 'sendInitialEvents=true' },
  { kind: 'watch', query: `resourceVersion=${V}&resourceVersionMatch=NotOlderThan` },
  { kind: 'watch', query: 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan' },
  { kind: 'watch', query: 'resourceVersion=abc' },
  { kind: 'watch', query: `resourceVersion=${V}&timeoutSeconds=x` },
]

for (const { kind, query, read } of ROWS) {
  test(`${kind} ${query.slice(0, 80)}`, () => {
    const found = federatedReadOf(kind, query)
    if (read === undefined) assert.ok('invalid' in found && found.invalid.length < 300, JSON.stringify(found))
    else assert.deepEqual({ ...found, ...read }, found)
  })
}
