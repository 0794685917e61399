import assert from 'node:assert/strict'
import { test } from 'node:test'
import { negotiateRead } from './accept.ts'

const PROTOBUF = 'application/vnd.kubernetes.protobuf'

test('the first clause that the resource can be answered by, in the order of kube-apiserver', () => {
  const rows: readonly (readonly [accept: string, own: string | undefined, custom: string | undefined])[] = [
    ['', 'json', 'json'],
    ['*/*', 'json', 'json'],
    ['application/json', 'json', 'json'],
    ['application/json, */*', 'json', 'json'],
    [PROTOBUF, 'protobuf', undefined],
    [`${PROTOBUF}, */*`, 'protobuf', 'json'],
    [`${PROTOBUF},application/json`, 'protobuf', 'json'],
    [`${PROTOBUF};stream=watch,application/json;stream=watch`, 'protobuf', 'json'],
    [`application/json,${PROTOBUF}`, 'json', 'json'],
    // Plain types come before wildcards, wherever they stand.
    [`*/*,${PROTOBUF}`, 'protobuf', 'json'],
    [`application/*,${PROTOBUF}`, 'protobuf', 'json'],
    [`application/json;q=0.5,${PROTOBUF}`, 'protobuf', 'json'],
    [`${PROTOBUF};q=0.9,application/json`, 'json', 'json'],
    // A clause that kube-apiserver does not know is as if it was not there.
    [`text/html,${PROTOBUF}`, 'protobuf', undefined],
    [`application/json;stream=other,${PROTOBUF}`, 'protobuf', undefined],
    [`${PROTOBUF};sv=v2,application/json`, 'json', 'json'],
    [`application,${PROTOBUF}`, 'protobuf', undefined],
    [`application/json;charset=utf-8,${PROTOBUF}`, 'json', 'json'],
    // The router wants a type by its name, or any; then the negotiation takes this one.
    ['application/*,text/html', undefined, undefined],
    ['application/*', undefined, undefined],
    // Whether one clause is before another is decided by two at a time: a wildcard never is, whatever its q.
    [`application/*,text/html,${PROTOBUF};q=0.5`, 'protobuf', 'json'],
    ['*', undefined, undefined],
    // Go compares them as they are.
    ['Application/JSON', undefined, undefined],
  ]
  for (const [accept, own, custom] of rows) {
    const found = [true, false].map((has) => negotiateRead('list', { accept, userAgent: '' }, has))
    assert.deepEqual(
      found.map((one) => one?.encoding),
      [own, custom],
      accept,
    )
    assert.ok(found.every((one) => one?.partial !== true))
  }
})

test('what is not answered here is forwarded, even if something behind it could be', () => {
  for (const accept of [
    'application/yaml,application/json',
    'application/cbor,application/json',
    'application/json;as=Table;g=meta.k8s.io;v=v1,application/json',
    'application/json;pretty=1',
    'application/json;q=yes,application/json',
    'application/json;q=1e0',
    Array(13).fill('application/json').join(','),
  ])
    assert.equal(negotiateRead('list', { accept, userAgent: '' }, true), undefined, accept)
})

test('people get indented JSON, which is not made here; Protobuf is not indented', () => {
  for (const userAgent of ['curl/8.1', 'Wget/1.2', 'Mozilla/5.0 (X11)']) {
    assert.equal(negotiateRead('list', { accept: '*/*', userAgent }, true), undefined)
    assert.equal(negotiateRead('list', { accept: PROTOBUF, userAgent }, true)?.encoding, 'protobuf')
  }
})

test('metadata alone: of one object or of a list, in both encodings, of custom resources too', () => {
  const as = (type: string, kind: string, version = 'v1'): string => `${type};as=${kind};g=meta.k8s.io;v=${version}`
  const one = 'PartialObjectMetadata'
  const list = 'PartialObjectMetadataList'
  const json = { encoding: 'json', partial: true }
  const protobuf = { encoding: 'protobuf', partial: true }
  const rows: readonly (readonly [kind: 'get' | 'list' | 'watch', accept: string, expected: object | undefined])[] = [
    ['list', as('application/json', list), json],
    // As the metadata clients of client-go ask.
    ['list', `${as(PROTOBUF, list)},${as('application/json', list)},application/json`, protobuf],
    ['watch', `${as(PROTOBUF, one)},${as('application/json', one)},application/json`, protobuf],
    ['get', as('application/json', one), json],
    ['list', as('*/*', list), json],
    ['list', `${as('application/json', list)};stream=watch`, json],
    // Refused by the cluster.
    ['list', as('application/json', one), undefined],
    ['get', as('application/json', list), undefined],
    ['watch', as('application/json', list), undefined],
    ['list', as('application/json', list, 'v1beta1'), undefined],
    // Not taken, and so the next one is.
    ['list', `${as('application/json', 'Other')},${PROTOBUF}`, { encoding: 'protobuf', partial: false }],
    ['list', `${as('application/json', list, 'v2')},${PROTOBUF}`, { encoding: 'protobuf', partial: false }],
    ['list', `${as(PROTOBUF, 'Table')},${as('application/json', list)}`, json],
    ['list', `application/json;as=${list};v=v1,${PROTOBUF}`, { encoding: 'protobuf', partial: false }],
    ['list', `${as(PROTOBUF, 'Table')},${as('application/json', 'Table')},application/json`, undefined],
  ]
  for (const [kind, accept, expected] of rows)
    assert.deepEqual(negotiateRead(kind, { accept, userAgent: '' }, true), expected, `${kind} ${accept}`)
  assert.deepEqual(negotiateRead('list', { accept: as(PROTOBUF, list), userAgent: '' }, false), protobuf)
})

test('Tables: in JSON, where they are written here', () => {
  const v1 = 'application/json;as=Table;g=meta.k8s.io;v=v1'
  const beta = 'application/json;as=Table;g=meta.k8s.io;v=v1beta1'
  const whole = { encoding: 'json', partial: false }
  const table = (version: string): object => ({ ...whole, table: `meta.k8s.io/${version}` })
  const rows: readonly (readonly [accept: string, expected: object | undefined])[] = [
    // As kubectl asks.
    [`${v1},${beta},application/json`, table('v1')],
    [`${beta},application/json`, table('v1beta1')],
    [`${v1};q=0.5,application/json`, whole],
    [`application/json,${v1}`, whole],
    [`${v1};stream=watch`, table('v1')],
    ['application/json;as=Table;g=meta.k8s.io;v=v2,application/json', whole],
    ['application/yaml;as=Table;g=meta.k8s.io;v=v1,application/json', undefined],
    [`${PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json`, whole],
    [`${v1};pretty=1`, undefined],
  ]
  for (const [accept, expected] of rows)
    for (const kind of ['get', 'list', 'watch'] as const)
      assert.deepEqual(negotiateRead(kind, { accept, userAgent: '' }, false, true), expected, accept)
  assert.equal(negotiateRead('list', { accept: `${v1},application/json`, userAgent: '' }, false), undefined)
})
