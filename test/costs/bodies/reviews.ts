// Bodies that ask: AdmissionReviews of both webhooks, reviews about oneself, writes of replicas; and what is recorded of bodies.

import { decodeSmallBody } from '../../../src/apiserver/http/read-body.ts'
import { accessAsked } from '../../../src/apiserver/self-reviews.ts'
import { reviewAdmission } from '../../../src/apiserver/webhooks/webhook.ts'
import { recordObject } from '../../../src/audit/core/recorded-body.ts'
import { readReplicas } from '../../../src/gateway/core/policy/read-replicas.ts'
import { dependsOnMoment, mayChange } from '../../../src/gateway/core/policy/write-body.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../../src/program/api/scheme.ts'
import { reviewSubject } from '../../../src/protection/core/quota/review-subject.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { KIB, list, MIB, repeat, type Shape } from '../shapes.ts'
import { JSON_SHAPES, JSON_TOKENS } from './json.ts'
import { PROTOBUF_SHAPES, PROTOBUF_TOKENS, sealed } from './protobuf.ts'
import { YAML_SHAPES, YAML_TOKENS } from './yaml.ts'

const REVIEW = '"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"'
const DELETION =
  `{${REVIEW},"request":{"uid":"1","operation":"DELETE","resource":{"group":"","version":"v1","resource":"pods"},` +
  '"oldObject":{"metadata":{"name":"a","uid":"b"'
const WRITE =
  `{${REVIEW},"request":{"uid":"1","operation":"UPDATE",` +
  '"resource":{"group":"proxy.kubegateway.io","version":"v1alpha1","resource":"upstreamclusters"},' +
  '"object":{"metadata":{"name":"a"},"spec":'

const PODS: Readonly<Record<string, Shape>> = {
  labels: list('"k{n}":"v"', `${DELETION},"labels":{`, '}}}}}'),
  annotations: list('"k{n}":"v"', `${DELETION},"annotations":{`, '}}}}}'),
  'managed fields': list(
    '{"time":"2026-01-01T00:00:00Z","subresource":"status"}',
    `${DELETION},"managedFields":[`,
    ']}}}}',
  ),
  conditions: list('{"type":"a{n}","status":"True"}', `${DELETION}},"status":{"conditions":[`, ']}}}}'),
  groups: list('"a{n}"', `{${REVIEW},"request":{"uid":"1","operation":"DELETE","userInfo":{"groups":[`, ']}}}'),
  'extra keys': list(
    '"a{n}":["b"]',
    `{${REVIEW},"request":{"uid":"1","operation":"DELETE","userInfo":{"extra":{`,
    '}}}}',
  ),
  'a time of digits': repeat('1', `${DELETION},"creationTimestamp":"2026-01-01T00:00:00.`, 'Z"}}}}'),
}

const CLUSTERS: Readonly<Record<string, Shape>> = {
  'servers of a wrong type': list('1', `${WRITE}{"servers":[`, ']}}}}'),
  'servers that differ': list('{"endpoint":"https://a{n}:1"}', `${WRITE}{"servers":[`, ']}}}}'),
  'unknown fields': list('"k{n}":1', `${WRITE}{`, '}}}}'),
  'names that differ': list('"a{n}"', `${WRITE}{"secureServing":{"serverNames":[`, ']}}}}}'),
  'addresses that differ': list('"10.0.0.{n}"', `${WRITE}{"addresses":{"ips":[`, ']}}}}}'),
  'ports that differ': list('{n}', `${WRITE}{"addresses":{"ports":[`, ']}}}}}'),
  'limits that are not known': list('{"flowControlSchemaName":"b{n}"}', `${WRITE}{"dispatchPolicies":[`, ']}}}}'),
}

/** Other objects that a review is compared with: the client pays for none of them. */
const OTHERS = Array.from({ length: 500 }, (_, n) => ({
  metadata: { name: `other-${n}` },
  spec: {
    secureServing: { serverNames: [`other-${n}.example.com`] },
    addresses: { ips: [`10.1.${n >> 8}.${n & 255}`] },
  },
}))

const REPLICAS: Readonly<Record<string, Shape>> = {
  ...JSON_SHAPES,
  operations: list('{"op":"test","path":"/a","value":1}', '[', ']'),
  'operations on lists': list('{"op":"add","path":"/spec/a/{n}","value":1}', '[', ']'),
  'members beside the replicas': list('"k{n}":1', '{"spec":{"replicas":1,', '}}'),
  directives: list('"$setElementOrder/a{n}":[]', '{"spec":{', '}}'),
  'digits of the replicas': repeat('1', '{"spec":{"replicas":', '}}'),
}

const TARGET = { isScale: false, builtIn: true }

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'review of a deletion',
    limit: 3 * MIB,
    fillsMaps: true,
    read: (text) => reviewSubject(JSON.parse(text)),
    tokens: JSON_TOKENS,
    shapes: PODS,
  }),
  parser({
    name: 'review of a write',
    limit: 3 * MIB,
    fillsMaps: true,
    read: (text) => reviewAdmission(JSON.parse(text), { scheme: SCHEME, pem: nodePemChecks }, OTHERS),
    tokens: JSON_TOKENS,
    shapes: CLUSTERS,
  }),
  parser({
    name: 'review about oneself',
    limit: 16 * KIB,
    fillsMaps: true,
    read: (text) =>
      accessAsked({ group: 'authorization.k8s.io', kind: 'SelfSubjectAccessReview' }, decodeSmallBody(text, 'json')),
    tokens: JSON_TOKENS,
    shapes: {
      'unknown fields': list('"k{n}":1', '{"spec":{"resourceAttributes":{', '}}}'),
      'neither of the two': list('"k{n}":1', '{"spec":{', '}}'),
      'both of the two': list('"k{n}":1', '{"spec":{"nonResourceAttributes":{},"resourceAttributes":{', '}}}'),
    },
  }),
  ...(['application/json', 'application/merge-patch+json', 'application/json-patch+json'] as const).map((contentType) =>
    parserOf({
      name: `replicas, ${contentType}`,
      limit: 1536 * KIB,
      fillsMaps: true,
      prepare: (text: string) => Buffer.from(text),
      read: (body) =>
        readReplicas({
          verb: contentType === 'application/json' ? 'update' : 'patch',
          contentType,
          body,
          target: TARGET,
        }),
      tokens: JSON_TOKENS,
      shapes: REPLICAS,
    }),
  ),
  parserOf({
    name: 'replicas, YAML',
    limit: 32 * KIB,
    prepare: (text) => Buffer.from(text),
    read: (body) => readReplicas({ verb: 'patch', contentType: 'application/apply-patch+yaml', body, target: TARGET }),
    tokens: YAML_TOKENS,
    shapes: YAML_SHAPES,
  }),
  parserOf({
    name: 'write that may end pods, JSON patch',
    limit: 256 * KIB,
    prepare: (text) => Buffer.from(text),
    read: (body) => dependsOnMoment(['/spec/taints'], 'application/json-patch+json', body),
    tokens: JSON_TOKENS,
    shapes: {
      ...JSON_SHAPES,
      copies: list('{"op":"copy","from":"/a","path":"/b"}', '[', ']'),
      'a long path': repeat('/a', '[{"op":"copy","from":"/a","path":"', '"}]'),
      'slashes at the end': repeat('/', '[{"op":"move","from":"/a","path":"/b', '"}]'),
      'escapes in a path': repeat('~1', '[{"op":"move","from":"/a","path":"/', '"}]'),
    },
  }),
  parserOf({
    name: 'write that may end pods, Protobuf',
    limit: 3 * MIB,
    prepare: sealed,
    read: (body) =>
      mayChange(
        { words: ['activeDeadlineSeconds'], byAbsence: false, places: [], protobuf: [2, 5] },
        'application/vnd.kubernetes.protobuf',
        body,
      ),
    tokens: PROTOBUF_TOKENS,
    shapes: { ...PROTOBUF_SHAPES, specs: repeat('\x12\x02\x08\x01') },
  }),
  parserOf({
    name: 'replicas, Protobuf',
    limit: 1536 * KIB,
    prepare: sealed,
    read: (body) =>
      readReplicas({ verb: 'update', contentType: 'application/vnd.kubernetes.protobuf', body, target: TARGET }),
    tokens: PROTOBUF_TOKENS,
    shapes: {
      ...PROTOBUF_SHAPES,
      specs: repeat('\x12\x02\x08\x01'),
      replicas: (length) =>
        `\x12${String.fromCharCode((length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14)}${'\x08\x01'.repeat(length / 2)}`,
    },
  }),
  parserOf({
    name: 'body of an audit event',
    limit: MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => recordObject(body, { apiGroup: '', resource: 'secrets', subresource: '' }, true, false),
    tokens: JSON_TOKENS,
    shapes: {
      ...JSON_SHAPES,
      'line ends': repeat('\n', '{', '}'),
      'line ends and blanks': repeat('\r\n ', '{', '}'),
      'items that are redacted': list('{"data":{"a":"b"}}', '{"items":[', ']}'),
    },
  }),
]
