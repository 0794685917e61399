// Metadata, schemas and checks of the objects of the embedded API server and of the admission webhook.

import { shape } from '../../../src/apiserver/objects/write-object-decode.ts'
import { UPSTREAM_CLUSTERS } from '../../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { apiVersionOf, type ResourceKind } from '../../../src/kube/api/resource-kind.ts'
import { shapeMetadata } from '../../../src/kube/core/objects/metadata-shape.ts'
import { validateShape } from '../../../src/kube/core/objects/structural-schema.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../../src/program/api/scheme.ts'
import { JSON_TOKENS } from '../bodies/json.ts'
import { type Parser, parser } from '../parser.ts'
import { list, MIB, nested, repeat, type Shape } from '../shapes.ts'

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  return value as JsonObject
}

/** A PEM block in JSON. */
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\\nMAAA\\n-----END CERTIFICATE-----\\n'
const POLICY =
  '{"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"userAgents":["a*"]}],"strategy":"RoundRobin"}'

/** `spec` of an UpstreamCluster. */
const SPECS: Readonly<Record<string, Shape>> = {
  'servers of a wrong type': list('1', '{"servers":[', ']}'),
  'servers without an endpoint': list('{}', '{"servers":[', ']}'),
  'servers that differ': list('{"endpoint":"https://a{n}:6443"}', '{"servers":[', ']}'),
  'servers that are the same': list('{"endpoint":"https://a:6443"}', '{"servers":[', ']}'),
  'an endpoint of colons': repeat(':', '{"servers":[{"endpoint":"https://', '"}]}'),
  'an endpoint of at signs': repeat('@', '{"servers":[{"endpoint":"https://', '"}]}'),
  'an endpoint of dots': repeat('a.', '{"servers":[{"endpoint":"https://', 'a:1"}]}'),
  'names that are there twice': list('"a"', '{"secureServing":{"serverNames":[', ']}}'),
  'names that differ': list('"a{n}"', '{"secureServing":{"serverNames":[', ']}}'),
  'a name of dots': repeat('a.', '{"secureServing":{"serverNames":["', 'a"]}}'),
  'a name of hyphens': repeat('-', '{"secureServing":{"serverNames":["a', '"]}}'),
  'addresses that are none': list('"1.2.3.{n}"', '{"addresses":{"ips":[', ']}}'),
  'an address of colons': repeat(':', '{"addresses":{"ips":["1', '"]}}'),
  'an address of digits': repeat('1', '{"addresses":{"ips":["1', '"]}}'),
  ports: list('{n}', '{"addresses":{"ports":[', ']}}'),
  'unknown fields': list('"k{n}":1', '{', '}'),
  'unknown fields of servers': list('{"endpoint":"https://a","b":1}', '{"servers":[', ']}'),
  'policies with unknown limits': list('{"flowControlSchemaName":"b{n}"}', '{"dispatchPolicies":[', ']}'),
  policies: list(POLICY, '{"servers":[{"endpoint":"https://a"}],"dispatchPolicies":[', ']}'),
  'servers and subsets': (length) => {
    const few = Math.floor(length / 120)
    const named = Array.from({ length: few }, (_, n) => `{"endpoint":"https://server-${n}:6443"}`)
    const subset = Array.from({ length: few }, (_, n) => `"https://server${n}:6443"`)
    return `{"servers":[${named.join(',')}],"dispatchPolicies":[{"upstreamSubset":[${subset.join(',')}]}]}`
  },
  'limits that are there twice': list('{"name":"a"}', '{"flowControl":{"flowControlSchemas":[', ']}}'),
  'limits that differ': list('{"name":"a{n}","exempt":{}}', '{"flowControl":{"flowControlSchemas":[', ']}}'),
  'resources of a rule': list('"a{n}/b"', '{"dispatchPolicies":[{"rules":[{"resources":[', ']}]}]}'),
  'users of a rule': list('"-a{n}*"', '{"dispatchPolicies":[{"rules":[{"users":[', ']}]}]}'),
  'addresses of a rule': list('"10.0.0.{n}/8"', '{"accessControl":{"deny":[{"sourceIPs":[', ']}]}}'),
  'path of a health check': repeat('/', '{"healthCheck":{"path":"/', '"}}'),
  'a duration of digits': repeat('1', '{"degrade":{"recovery":{"hold":"', 's"}}}'),
  'a duration of units': repeat('1h', '{"degrade":{"recovery":{"hold":"', '"}}}'),
  'a time of digits': repeat('1', '{"degrade":{"expiresAt":"', '"}}'),
  'audiences that are empty': list('""', '{"authentication":{"audiences":[', ']}}'),
  'revoked users': list('{"user":"a{n}"}', '{"authentication":{"revoked":[', ']}}'),
  certificates: repeat(CERTIFICATE, '{"clientConfig":{"caData":"', '"}}'),
  'beginnings of certificates': repeat('-----BEGIN CERTIFICATE-----', '{"clientConfig":{"caData":"', '"}}'),
  'a certificate of hyphens': repeat('-', '{"clientConfig":{"caData":"', '"}}'),
  'a certificate of blanks': repeat(' ', '{"clientConfig":{"caData":"-----BEGIN CERTIFICATE-----', '"}}'),
  'a key of blanks': repeat(' ', '{"clientConfig":{"keyData":"-----BEGIN PRIVATE KEY-----', '"}}'),
  'objects in objects': nested('{"servers":[', ']}', '1'),
}

function checkObject(kind: ResourceKind, parts: JsonObject): void {
  const head = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name: 'a' } }
  const shaped = shape(kind, { ...head, ...parts })
  validateShape(kind.schema, shaped.object)
  kind.check(shaped.object, undefined, nodePemChecks)
}

const METADATA: Readonly<Record<string, Shape>> = {
  'owners that all control': list('{"controller":true}', '{"ownerReferences":[', ']}'),
  'owners that differ': list('{"uid":"{n}"}', '{"ownerReferences":[', ']}'),
  labels: list('"k{n}":"v"', '{"labels":{', '}}'),
  'labels that are none': list('"-{n}":"-"', '{"labels":{', '}}'),
  'a long label': repeat('a', '{"labels":{"', '":"b"}}'),
  'a label of dots': repeat('a.', '{"labels":{"', '/a":"b"}}'),
  'a label of hyphens': repeat('-', '{"labels":{"a":"a', '"}}'),
  'a label of slashes': repeat('/', '{"labels":{"a', '":"b"}}'),
  annotations: list('"k{n}":"v"', '{"annotations":{', '}}'),
  'finalizers that are none': list('"-"', '{"finalizers":[', ']}'),
  'finalizers that differ': list('"a/b{n}"', '{"finalizers":[', ']}'),
  'unknown fields': list('"k{n}":1', '{', '}'),
  'unknown fields of owners': list('{"k{n}":1}', '{"ownerReferences":[', ']}'),
  'values of wrong types': list('1', '{"finalizers":[', ']}'),
  'a long name': repeat('a', '{"name":"', '"}'),
  'a name of dots': repeat('a.', '{"name":"', 'a"}'),
  'a name of hyphens': repeat('-', '{"generateName":"a', '"}'),
  'a time of digits': repeat('1', '{"creationTimestamp":"2001-', '"}'),
}

/** Fields of kinds beside UpstreamCluster that are long. */
const OF_KINDS: Readonly<Record<string, Shape>> = {
  'a selector of labels': list('"k{n}":"v"', '{"spec":{"selector":{"matchLabels":{', '}}}}'),
  'labels that are none': list('"-{n}":"-"', '{"spec":{"selector":{"matchLabels":{', '}}}}'),
  expressions: list(
    '{"key":"k{n}","operator":"In","values":["a"]}',
    '{"spec":{"selector":{"matchExpressions":[',
    ']}}}',
  ),
  'expressions of the same key': list(
    '{"key":"k","operator":"NotIn","values":["a{n}"]}',
    '{"spec":{"selector":{"matchExpressions":[',
    ']}}}',
  ),
  'values of an expression': list(
    '"v{n}"',
    '{"spec":{"selector":{"matchExpressions":[{"key":"k","operator":"In","values":[',
    ']}]}}}',
  ),
  data: list('"k{n}":"eA=="', '{"data":{', '}}'),
  'data that is no base64': list('"k{n}":"?"', '{"data":{', '}}'),
  'line ends in data': repeat('\\n', '{"data":{"a":"', '?"}}'),
  'equals signs in data': repeat('=', '{"data":{"a":"', '"}}'),
  'long data': repeat('eA==', '{"data":{"a":"', '"}}'),
  stringData: list('"k{n}":"v"', '{"stringData":{', '}}'),
  'unknown fields of the status': list('"k{n}":"v"', '{"status":{', '}}'),
  'clusters of the status': list('{"cellId":"a{n}"}', '{"status":{"cells":[', ']}}'),
  'conditions of the status': list('{"type":"a{n}","status":"True"}', '{"status":{"conditions":[', ']}}'),
  groups: list('{"name":"a{n}"}', '{"spec":{"groups":[', ']}}'),
  'names of clusters': list('"c{n}"', '{"spec":{"clusters":[', ']}}'),
  'names of groups': list('"g{n}"', '{"spec":{"groups":[', ']}}'),
  'a long reason': repeat('a', '{"spec":{"reason":"', '"}}'),
  metrics: list('{"metric":"a{n}"}', '{"spec":{"metrics":[', ']}}'),
}

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'metadata',
    limit: MIB,
    fillsMaps: true,
    read: (text) => shapeMetadata(parsed(text)),
    tokens: JSON_TOKENS,
    shapes: METADATA,
  }),
  parser({
    name: UPSTREAM_CLUSTERS.kind,
    limit: MIB,
    fillsMaps: true,
    read: (text) => checkObject(UPSTREAM_CLUSTERS, { spec: parsed(text) }),
    tokens: JSON_TOKENS,
    shapes: SPECS,
  }),
  ...SCHEME.filter((kind) => kind !== UPSTREAM_CLUSTERS).map((kind) =>
    parser({
      name: kind.kind,
      limit: MIB,
      fillsMaps: true,
      read: (text) => checkObject(kind, parsed(text)),
      tokens: JSON_TOKENS,
      shapes: OF_KINDS,
    }),
  ),
]
