// What members of a federated cluster send, and what its clients send back of it.

import { FactsReader } from '../../../src/cache/core/bytes/object-facts.ts'
import { parseContinue } from '../../../src/federation/core/continue.ts'
import { discoveryAt, joinedResources } from '../../../src/federation/core/discovery.ts'
import { type Stamp, stampObject } from '../../../src/federation/core/objects.ts'
import { parseVector } from '../../../src/federation/core/vectors.ts'
import { originalNames, splitName } from '../../../src/gateway/core/federation/names.ts'
import { JSON_TOKENS } from '../bodies/json.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { KIB, list, MIB, repeat } from '../shapes.ts'

const STAMP: Stamp = { member: 'east', mode: 'prefixed', areNamespaces: false, version: (own) => `10001${own}` }
const PODS = [{ group: '', version: 'v1', resource: 'pods' }]
const HEAD = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","resourceVersion":"1"'

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'object of a member',
    limit: 3 * MIB,
    heap: 200,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => stampObject({ json: body, facts: new FactsReader([]).read(body) }, 'declared', STAMP),
    tokens: JSON_TOKENS,
    shapes: {
      annotations: list('"k{n}":"v"', `${HEAD},"annotations":{`, '}}}'),
      'annotations behind': list('"z{n}":"v"', `${HEAD},"annotations":{`, '}}}'),
      'other metadata': list('"k{n}":"v"', HEAD.concat(','), '}}'),
      'a long name': repeat('a', '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1","name":"', '"}}'),
      'a long spec': repeat('a', `${HEAD}},"spec":"`, '"}'),
    },
  }),
  parser({
    name: 'resourceVersion of a federated cluster',
    limit: 64 * KIB,
    read: (text) => parseVector(text),
    tokens: ['1', '0', '10001', '0011', '99'],
    shapes: { zeros: repeat('0', '10001'), nines: repeat('9', '10001'), slots: repeat('011', '10001') },
  }),
  parserOf({
    name: 'token of a continued federated list',
    limit: 64 * KIB,
    prepare: (text) => Buffer.from(text).toString('base64url'),
    read: (text) => parseContinue(text),
    tokens: ['{', '"v":', '"portcullis.io/v1"', '"rv":"10001"', ','],
    shapes: {
      'a long token': repeat('a', '{"v":"portcullis.io/v1","rv":"10001","slot":0,"token":"', '"}'),
      maps: repeat('{"a":'),
    },
  }),
  parser({
    name: 'discovery of a federated cluster, its path',
    limit: 64 * KIB,
    read: (path) => discoveryAt(path, PODS),
    tokens: ['/', 'api', 'apis', 'v1'],
    shapes: { slashes: repeat('/', '/api'), 'many parts': repeat('/a', '/apis'), 'a long part': repeat('a', '/apis/') },
  }),
  parser({
    name: 'discovery of a federated cluster, as a member answers',
    limit: MIB,
    read: (text) => joinedResources([JSON.parse(text)], 'v1', ['pods']),
    tokens: JSON_TOKENS,
    shapes: {
      resources: list('{"name":"r{n}"}', '{"resources":[', ']}'),
      'the same resource': list('{"name":"pods"}', '{"resources":[', ']}'),
      'other fields': list('"k{n}":1', '{', '}'),
    },
  }),
  parser({
    name: 'name of an object of a member',
    limit: 64 * KIB,
    read: (text) => {
      const name = splitName(text)
      return name && originalNames(name, [text])
    },
    tokens: ['-', '--', 'a'],
    shapes: {
      hyphens: repeat('-', 'a'),
      'a long name': repeat('a', 'east--'),
      'a long member': repeat('a', '', '--x'),
    },
  }),
]
