import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import { ProtobufReader } from '../../kit/core/text/protobuf-reader.ts'
import { SCHEME } from '../../program/api/scheme.ts'
import type { HttpAnswer } from '../http/answer.ts'
import { apiResources } from '../objects/api-resources.ts'
import { OBJECT_META_SCHEMA } from '../objects/object-meta-schema.ts'
import { SELF_REVIEW_KINDS } from '../objects/self-review-kinds.ts'
import { META_SCHEMAS } from './meta-schemas.ts'
import { OpenApi } from './openapi.ts'
import { encodeV2Document } from './v2-protobuf.ts'

const KUBECTL_V2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
const UC = '/openapi/v3/apis/proxy.kubegateway.io/v1alpha1'
const UC_PATH = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'

const API_RESOURCES = apiResources(SCHEME, SELF_REVIEW_KINDS)
const openApi = new OpenApi(API_RESOURCES)

function get(path: string, query = '', accept = '', ifNoneMatch = ''): HttpAnswer {
  const answer = openApi.answer(path, query, accept, ifNoneMatch)
  assert.ok(answer !== undefined, `${path} is not an OpenAPI path`)
  return answer
}

function header({ headers }: HttpAnswer, name: string): string {
  const at = headers.indexOf(name)
  return at < 0 ? '' : (headers[at + 1] ?? '')
}

// biome-ignore lint/suspicious/noExplicitAny: documents are looked at by their fields
const json = (answer: HttpAnswer): any => JSON.parse(answer.body.toString())

test('the index leads to documents that never change', () => {
  const { paths } = json(get('/openapi/v3'))
  assert.ok('api/v1' in paths && 'apis/coordination.k8s.io/v1' in paths)
  const url: string = paths['apis/proxy.kubegateway.io/v1alpha1'].serverRelativeURL
  const [path = '', query = ''] = url.split('?')
  assert.equal(path, UC)
  const document = get(path, query)
  assert.equal(document.code, 200)
  assert.match(header(document, 'cache-control'), /immutable/)
  assert.doesNotMatch(header(get(path), 'cache-control'), /immutable/)
  const old = get(path, 'hash=OLD')
  assert.equal(old.code, 301)
  assert.equal(header(old, 'location'), url)
  assert.equal(get(path, '', '', header(document, 'etag')).code, 304)
})

test('kubectl finds that the server validates fields, and which patches it accepts', () => {
  const item = json(get(UC)).paths[`${UC_PATH}/{name}`]
  const names = item.patch.parameters.map(({ name }: { name: string }) => name)
  assert.deepEqual(names, ['dryRun', 'fieldManager', 'fieldValidation', 'force'])
  assert.deepEqual(Object.keys(item.patch.requestBody.content), [
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/apply-patch+yaml',
  ])
  const mark = { group: 'proxy.kubegateway.io', version: 'v1alpha1', kind: 'UpstreamCluster' }
  assert.deepEqual(item.patch['x-kubernetes-group-version-kind'], mark)
  assert.equal(item.patch['x-kubernetes-action'], 'patch')
  assert.deepEqual(
    item.parameters.map(({ name }: { name: string }) => name),
    ['name', 'pretty'],
  )
})

test('paths of cluster-scoped, namespaced and unstored kinds', () => {
  const paths = (document: string): string[] => Object.keys(json(get(document)).paths)
  assert.deepEqual(paths(UC), [UC_PATH, `${UC_PATH}/{name}`, `${UC_PATH}/{name}/status`])
  const leases = '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases'
  assert.deepEqual(paths('/openapi/v3/apis/coordination.k8s.io/v1'), [
    leases,
    '/apis/coordination.k8s.io/v1/leases',
    `${leases}/{name}`,
  ])
  const reviews = json(get('/openapi/v3/apis/authentication.k8s.io/v1')).paths
  const operations = reviews['/apis/authentication.k8s.io/v1/selfsubjectreviews']
  assert.deepEqual(Object.keys(operations), ['parameters', 'post'])
})

test('every operation has an id of its own, and every reference leads somewhere', () => {
  for (const path of ['/openapi/v2', ...Object.keys(json(get('/openapi/v3')).paths).map((p) => `/openapi/v3/${p}`)]) {
    const document = json(get(path))
    const ids = [...JSON.stringify(document).matchAll(/"operationId":"([^"]*)"/g)].map(([, id]) => id)
    assert.ok(ids.length > 0)
    assert.equal(new Set(ids).size, ids.length, path)
    const schemas = document.definitions ?? document.components.schemas
    for (const [, name = ''] of JSON.stringify(document).matchAll(
      /"\$ref":"#\/(?:definitions|components\/schemas)\/([^"]*)"/g,
    )) {
      assert.ok(Object.hasOwn(schemas, name), `${path}: ${name}`)
    }
  }
})

test('the schema of a kind has its group, version and kind, the real metadata, and a list schema', () => {
  const { schemas } = json(get(UC)).components
  const kind = schemas['io.kubegateway.proxy.v1alpha1.UpstreamCluster']
  const mark = { group: 'proxy.kubegateway.io', version: 'v1alpha1', kind: 'UpstreamCluster' }
  assert.deepEqual(kind['x-kubernetes-group-version-kind'], [mark])
  const meta = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
  assert.deepEqual(kind.properties.metadata.allOf, [{ $ref: meta }])
  assert.equal(schemas['io.kubegateway.proxy.v1alpha1.UpstreamClusterList'].properties.items.type, 'array')
  assert.ok('io.k8s.api.core.v1.Secret' in json(get('/openapi/v3/api/v1')).components.schemas)
})

test('every field of every kind is documented', () => {
  const missing: string[] = []
  const visit = (schema: JsonSchema, path: string): void => {
    // The metadata of a kind is replaced by ObjectMeta.
    if ((schema.description ?? '') === '' && !path.endsWith('.metadata')) missing.push(path)
    for (const [name, child] of Object.entries(schema.properties ?? {})) visit(child, `${path}.${name}`)
    if (schema.items !== undefined) visit(schema.items, `${path}[]`)
    if (schema.additionalProperties !== undefined) visit(schema.additionalProperties, `${path}{}`)
  }
  for (const { kind, schema } of API_RESOURCES) visit(schema, kind)
  for (const [name, schema] of Object.entries(META_SCHEMAS)) visit(schema, name)
  assert.deepEqual(missing, [])
  assert.ok(Object.keys(OBJECT_META_SCHEMA.properties ?? {}).includes('managedFields'))
})

test('v2 is JSON or protobuf, as requested', () => {
  assert.equal(header(get('/openapi/v2'), 'content-type'), 'application/json')
  const protobuf = get('/openapi/v2', '', KUBECTL_V2)
  assert.equal(header(protobuf, 'content-type'), 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
  assert.equal(get('/openapi/v2', '', KUBECTL_V2, header(protobuf, 'etag')).code, 304)
  assert.notEqual(header(protobuf, 'etag'), header(get('/openapi/v2'), 'etag'))
  assert.equal(get('/openapi/v2', '', 'text/html').code, 406)
  assert.equal(get(UC, '', 'text/html').code, 406)
})

test('v2 lists no fields where unknown ones are kept: old kubectls would refuse these', () => {
  const kind = json(get('/openapi/v2')).definitions['io.kubegateway.proxy.v1alpha1.UpstreamCluster']
  const open = API_RESOURCES[0]?.schema.properties?.['status']?.['x-kubernetes-preserve-unknown-fields']
  assert.equal(open, true, 'the status of UpstreamCluster keeps unknown fields')
  assert.equal(kind.properties.status.properties, undefined)
  assert.equal(kind.properties.status.type, undefined)
  assert.ok(kind.properties.spec.properties.servers.items.properties.endpoint.description !== '')
  assert.match(kind.properties.metadata.$ref, /ObjectMeta$/)
})

interface Field {
  readonly number: number
  readonly bytes: Buffer
}

/** All length-delimited fields. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = []
  const reader = new ProtobufReader(message)
  while (reader.next()) fields.push({ number: reader.number, bytes: reader.bytes() })
  return fields
}

/** Follows field numbers into embedded messages: the first occurrence of each. */
function at(bytes: Buffer, ...path: readonly number[]): Buffer {
  let here = bytes
  for (const number of path) {
    const reader = new ProtobufReader(here)
    while (reader.next() && reader.number !== number);
    assert.equal(reader.number, number, `field ${number} of ${path.join('.')}`)
    here = reader.bytes()
  }
  return here
}

/** The entry of a map of named values: { name = 1, value = 2 }. */
function namedValue(map: Buffer, entries: number, name: string): Buffer {
  for (const { number, bytes } of fieldsOf(map)) {
    if (number === entries && at(bytes, 1).toString() === name) return at(bytes, 2)
  }
  return assert.fail(`no entry ${name}`)
}

test('the field numbers of protocol buffers are those of gnostic openapi.v2', () => {
  const body = get('/openapi/v2', '', KUBECTL_V2).body
  assert.equal(at(body, 1).toString(), '2.0')
  assert.equal(at(body, 2, 1).toString(), 'Portcullis')
  const path = namedValue(at(body, 8), 2, `${UC_PATH}/{name}`)
  const patch = at(path, 8)
  assert.match(at(patch, 5).toString(), /^patch.*UpstreamCluster$/)
  assert.equal(at(patch, 7).toString(), 'application/json-patch+json')
  const parameters = fieldsOf(patch).filter(({ number }) => number === 8)
  // The body first: ParametersItem.parameter.body_parameter.name.
  assert.equal(at(parameters[0]?.bytes ?? Buffer.alloc(0), 1, 1, 2).toString(), 'body')
  const queries = parameters.slice(1).map(({ bytes }) => at(bytes, 1, 2, 3, 4).toString())
  assert.ok(queries.includes('fieldValidation'))
  const mark = namedValue(patch, 13, 'x-kubernetes-group-version-kind')
  assert.deepEqual(JSON.parse(at(mark, 2).toString()), {
    group: 'proxy.kubegateway.io',
    version: 'v1alpha1',
    kind: 'UpstreamCluster',
  })
  assert.match(at(namedValue(at(patch, 9), 1, '200'), 1, 2, 1, 1).toString(), /UpstreamCluster$/)
  const schema = namedValue(at(body, 9), 1, 'io.kubegateway.proxy.v1alpha1.UpstreamCluster')
  assert.equal(at(schema, 22, 1).toString(), 'object')
  const servers = namedValue(at(namedValue(at(schema, 25), 1, 'spec'), 25), 1, 'servers')
  assert.equal(at(servers, 22, 1).toString(), 'array')
  assert.match(at(namedValue(at(servers, 23, 1, 25), 1, 'endpoint'), 4).toString(), /^URL/)
})

test('every keyword of a schema has its field; one that is not known is an error, not silence', () => {
  const schema = (content: object): Buffer => at(encodeV2Document({ definitions: { x: content } }), 9, 1, 2)
  const numbers = (content: object): number[] => {
    const reader = new ProtobufReader(schema(content))
    const found: number[] = []
    while (reader.next()) found.push(reader.number)
    return found
  }
  assert.deepEqual(
    numbers({
      format: 'f',
      description: 'd',
      default: 1,
      maximum: 2,
      minimum: 1.5,
      maxLength: 300,
      minLength: 1,
      pattern: 'p',
      maxItems: 1,
      minItems: 1,
      maxProperties: 1,
      required: ['a', 'b'],
      enum: ['a', ''],
      'x-any': true,
    }),
    [2, 4, 5, 7, 9, 11, 12, 13, 14, 15, 17, 19, 19, 20, 20, 31],
  )
  const longest = new ProtobufReader(schema({ maxLength: 300 }))
  assert.deepEqual([longest.next(), longest.number, longest.integer()], [true, 11, 300])
  assert.equal(at(schema({ minimum: 1.5 }), 9).readDoubleLE(), 1.5)
  assert.equal(at(schema({ enum: ['True'] }), 20, 2).toString(), '"True"')
  assert.equal(at(schema({ additionalProperties: { type: 'string' } }), 21, 1, 22, 1).toString(), 'string')
  assert.throws(() => encodeV2Document({ definitions: { x: { oneOf: [] } } }), TypeError)
})

test('other paths are not OpenAPI', () => {
  for (const path of [
    '/openapi',
    '/openapi/v4',
    '/openapi/v3/apis/none/v1',
    '/openapi/v3/__proto__',
    '/openapi/v2/x',
  ]) {
    assert.equal(openApi.answer(path, '', '', ''), undefined, path)
  }
})
