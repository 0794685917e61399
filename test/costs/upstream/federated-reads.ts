// What members of a federated cluster send, and what its clients send back of it.

import { FactsReader } from '../../../src/cache/core/bytes/object-facts.ts'
import { parseContinue } from '../../../src/federation/core/continue.ts'
import { discoveryAt, joinedResources } from '../../../src/federation/core/discovery.ts'
import { readListedPage } from '../../../src/federation/core/listed-page.ts'
import { type Stamp, stampObject } from '../../../src/federation/core/objects.ts'
import type { Printer } from '../../../src/federation/core/tables/printer.ts'
import { builtInPrinter, customPrinter } from '../../../src/federation/core/tables/printers.ts'
import { TableWriter } from '../../../src/federation/core/tables/table-writer.ts'
import { parseVector } from '../../../src/federation/core/vectors.ts'
import { shownAnswer } from '../../../src/federation/core/writes/shown-answer.ts'
import type { ChangeField } from '../../../src/federation/core/writes/written-fields.ts'
import { writtenBody, writtenQuery } from '../../../src/federation/core/writes/written-request.ts'
import { originalNames, splitName } from '../../../src/gateway/core/federation/names.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { PROTOBUF_SHAPES, PROTOBUF_TOKENS, sealed } from '../bodies/protobuf.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { KIB, list, MIB, repeat } from '../shapes.ts'

const STAMP: Stamp = { member: 'east', mode: 'prefixed', areNamespaces: false, version: (own) => `10001${own}` }
const unchanged: ChangeField = (_, text) => `x${text}`
const METADATA = '{"metadata":{"name":"a"'
const PODS = [{ group: '', version: 'v1', resource: 'pods' }]
const LISTED = '{"metadata":{"resourceVersion":"1"},"items":['
const HEAD = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","resourceVersion":"1"'
const DEPLOYMENT = HEAD.replace('"Pod","apiVersion":"v1"', '"Deployment","apiVersion":"apps/v1"')
const WIDGETS = '{"metadata":{"name":"widgets"},"spec":{"versions":[{"name":"v1","additionalPrinterColumns":['

/** The row of an object in a Table, from its bytes. */
function rowBy(printer: Printer | undefined): (json: Buffer) => unknown {
  if (printer === undefined) throw new Error('there is no such printer')
  const writer = new TableWriter({ apiVersion: 'meta.k8s.io/v1', include: 'Metadata', printer, json: 'declared' })
  const facts = new FactsReader([])
  return (json) => writer.row({ content: json, facts: facts.read(json) }, 0)
}

const WIDGET_PRINTER = customPrinter(
  Buffer.from(
    `${WIDGETS}{"name":"A","type":"string","jsonPath":".spec"},{"name":"B","type":"string","jsonPath":".spec[?(@.a==\\"b\\")].c"}]}]}}`,
  ),
  'v1',
)

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'write for a member, JSON',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => writtenBody('object', '', body, unchanged),
    tokens: [...JSON_TOKENS, '"metadata":', '"annotations":', '"portcullis.io/cluster":'],
    shapes: {
      ...JSON_SHAPES,
      annotations: list('"k{n}":"v"', `${METADATA},"annotations":{`, '}}}'),
      'annotations behind the one that goes': list(
        '"z{n}":"v"',
        `${METADATA},"annotations":{"portcullis.io/cluster":"",`,
        '}}}',
      ),
      'other metadata': list('"k{n}":"v"', METADATA.concat(','), '}}'),
      'a long name': repeat('a', '{"metadata":{"name":"', '"}}'),
    },
  }),
  parserOf({
    name: 'write for a member, JSON patch',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => writtenBody('patch', 'application/json-patch+json', body, unchanged),
    tokens: [...JSON_TOKENS, '"path":"/metadata/name"', '"op":"test"', '"value":'],
    shapes: {
      operations: list('{"path":"/a"}'),
      names: list('{"path":"/metadata/name","value":"x"}'),
      'operations that go': list('{"path":"/metadata/annotations/portcullis.io~1cluster"}'),
      'a long path': repeat('/a', '[{"path":"/metadata', '"}]'),
      'a path of escapes': repeat('~1', '[{"path":"/', '"}]'),
      'other keys': list('"k{n}":1', '[{"path":"/a",', '}]'),
      'annotations in a value': list('"k{n}":1', '[{"path":"/metadata/annotations","value":{', '}}]'),
    },
  }),
  parserOf({
    name: 'write for a member, YAML',
    limit: 32 * KIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => writtenBody('object', 'application/yaml', body, unchanged),
    tokens: ['metadata:', '\n', '  ', 'name: a', '{', '}', '"'],
    shapes: {
      annotations: repeat('    k{n}: v\n', 'metadata:\n  annotations:\n'),
      'other metadata': repeat('  k{n}: v\n', 'metadata:\n'),
      'other fields': repeat('k{n}: v\n'),
      'maps in maps': repeat('{a: ', 'metadata: '),
      'lines of a text': repeat('  a\n', 'a: |\n'),
    },
  }),
  parserOf({
    name: 'write for a member, Protobuf',
    limit: 2 * MIB - 1,
    prepare: sealed,
    read: (body) => writtenBody('object', 'application/vnd.kubernetes.protobuf', body, unchanged),
    tokens: PROTOBUF_TOKENS,
    shapes: PROTOBUF_SHAPES,
  }),
  parser({
    name: 'write for a member, its query',
    limit: 256 * KIB,
    read: (text) => writtenQuery(text, true, { resourceVersion: String, fieldSelector: String }),
    tokens: ['&', '=', ';', '%', 'resourceVersion=', 'fieldSelector='],
    shapes: {
      pairs: repeat('a=b&'),
      ampersands: repeat('&'),
      semicolons: repeat(';', 'a=b&'),
      'equals signs': repeat('='),
      'a long value': repeat('%41', 'resourceVersion='),
    },
  }),
  parserOf({
    name: 'answer of a member to a write',
    // Lists: objects have one metadata.
    limit: MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => shownAnswer(body, { ...STAMP, isNamespaced: true, isList: true }),
    tokens: [...JSON_TOKENS, '"metadata":', '"items":', '"kind":"Status"'],
    shapes: {
      items: list('{"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}}', '{"metadata":{},"items":[', ']}'),
      'other fields': list('"k{n}":1', '{"metadata":{"namespace":"b"},', '}'),
      'other metadata': list('"k{n}":1', '{"metadata":{"namespace":"b",', '}}'),
      details: list('"k{n}":1', '{"kind":"Status","details":{', '}}'),
    },
  }),
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
  parserOf({
    name: 'row of a Table, a pod',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: rowBy(builtInPrinter({ group: '', resource: 'pods' })),
    tokens: JSON_TOKENS,
    shapes: {
      annotations: list('"k{n}":"v"', `${HEAD},"annotations":{`, '}}}'),
      containers: list('{"name":"c{n}"}', `${HEAD}},"spec":{"containers":[`, ']}}'),
      'statuses of containers': list(
        '{"name":"c{n}","restartCount":1,"state":{"waiting":{"reason":"a"}}}',
        `${HEAD}},"status":{"containerStatuses":[`,
        ']}}',
      ),
      'statuses of init containers': list(
        '{"name":"c{n}","state":{"terminated":{"exitCode":1}}}',
        `${HEAD}},"spec":{"initContainers":[{"name":"c0"}]},"status":{"initContainerStatuses":[`,
        ']}}',
      ),
      conditions: list('{"type":"Ready","status":"True"}', `${HEAD}},"status":{"conditions":[`, ']}}'),
      'readiness gates': list('{"conditionType":"a{n}"}', `${HEAD}},"spec":{"readinessGates":[`, ']}}'),
      'a long reason': repeat('a', `${HEAD}},"status":{"reason":"`, '"}}'),
    },
  }),
  parserOf({
    name: 'row of a Table, a deployment',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: rowBy(builtInPrinter({ group: 'apps', resource: 'deployments' })),
    tokens: JSON_TOKENS,
    shapes: {
      containers: list(
        '{"name":"c{n}","image":"i"}',
        `${DEPLOYMENT}},"spec":{"template":{"spec":{"containers":[`,
        ']}}}}',
      ),
      labels: list('"k{n}":"v"', `${DEPLOYMENT}},"spec":{"selector":{"matchLabels":{`, '}}}}'),
      expressions: list(
        '{"key":"k{n}","operator":"In","values":["a"]}',
        `${DEPLOYMENT}},"spec":{"selector":{"matchExpressions":[`,
        ']}}}',
      ),
    },
  }),
  parserOf({
    name: 'row of a Table, a custom resource',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: rowBy(WIDGET_PRINTER),
    tokens: JSON_TOKENS,
    shapes: {
      'a long text': repeat('a', `${HEAD}},"spec":"`, '"}'),
      lists: list('{"a":"b","c":{n}}', `${HEAD}},"spec":[`, ']}'),
      maps: list('"k{n}":"v"', `${HEAD}},"spec":{`, '}}'),
    },
  }),
  parserOf({
    name: 'columns of a CustomResourceDefinition',
    limit: 3 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (definition) => customPrinter(definition, 'v1'),
    tokens: [...JSON_TOKENS, '"jsonPath":".a"', '"additionalPrinterColumns":['],
    shapes: {
      columns: list('{"name":"c{n}","type":"string","jsonPath":".a"}', WIDGETS, ']}]}}'),
      'other versions': list('{"name":"w{n}"}', '{"spec":{"versions":[', ']}}'),
      'a long path': repeat('.a', `${WIDGETS}{"jsonPath":"`, '"}]}]}}'),
      'a long schema': repeat('a', '{"spec":{"versions":[{"name":"v1","schema":"', '"}]}}'),
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
    name: 'list of a member, for a page',
    limit: MIB,
    fillsMaps: true,
    read: (text) => readListedPage(text, { version: '', limit: 100_000 }),
    tokens: JSON_TOKENS,
    shapes: {
      objects: list('{"metadata":{"name":"n{n}","uid":"{n}","resourceVersion":"1"}}', LISTED, ']}'),
      'what is no object': list('[]', LISTED, ']}'),
      'a long version': repeat('1', '{"metadata":{"resourceVersion":"', '"}}'),
      'a long token': repeat('a', '{"metadata":{"resourceVersion":"1","continue":"', '"}}'),
      'other fields': list('"k{n}":1', '{', '}'),
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
    fillsMaps: true,
    read: (text) => joinedResources([JSON.parse(text)], 'v1', ['pods'], () => ['get']),
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
