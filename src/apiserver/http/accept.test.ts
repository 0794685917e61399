import assert from 'node:assert/strict'
import { test } from 'node:test'
import { negotiate, type OfferedForms, wantsPretty } from './accept.ts'

const KUBECTL_GET =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'
const KUBECTL_DISCOVERY =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json'

const cases: readonly [accept: string, endpoint: OfferedForms, expected: string][] = [
  ['', 'any', 'object json'],
  ['*/*', 'any', 'object json'],
  ['application/*', 'any', 'object json'],
  ['*', 'any', 'object json'],
  ['application/yaml', 'any', 'object yaml'],
  ['Application/JSON', 'any', 'object json'],
  ['application/json;pretty=1', 'any', 'object json pretty'],
  ['application/json;pretty=0', 'any', 'object json'],
  [KUBECTL_GET, 'objects', 'table json'],
  // A conversion unsupported by an endpoint is skipped, not refused.
  [KUBECTL_GET, 'discovery', 'object json'],
  [KUBECTL_DISCOVERY, 'discovery', 'discovery-v2 json'],
  [KUBECTL_DISCOVERY, 'objects', 'object json'],
  [KUBECTL_DISCOVERY, 'plain', 'object json'],
  ['application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList', 'discovery', 'discovery-v2beta1 json'],
  ['application/json;as=Table;v=v1;g=meta.k8s.io', 'plain', '406'],
  ['application/yaml;as=Table;v=v1;g=meta.k8s.io', 'objects', 'table yaml'],
  ['application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io', 'objects', 'partial json'],
  ['application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json', 'objects', 'partial json'],
  ['application/json;as=Chair;v=v1;g=meta.k8s.io', 'objects', '406'],
  ['application/json;as=Table', 'objects', '406'],
  ['application/json;stream=watch', 'objects', 'object json'],
  ['application/json;stream=river', 'objects', '406'],
  ['application/vnd.kubernetes.protobuf', 'objects', '406'],
  ['application/vnd.kubernetes.protobuf,application/json', 'objects', 'object json'],
  ['application/json;q=0.1,application/yaml;q=0.9', 'any', 'object yaml'],
  ['application/yaml;q=0,application/json;q=0.1', 'any', 'object json'],
  ['*/*,application/yaml', 'any', 'object yaml'],
  ['application/json;q="0.1", application/yaml; q=0.5', 'any', 'object yaml'],
  ['text/html', 'any', '406'],
  ['text/html,*/*;q=0.1', 'any', 'object json'],
  ['json', 'any', '406'],
  [',,;=,/', 'any', '406'],
  ['application/json;as=__proto__;v=constructor;g=toString', 'any', '406'],
]

for (const [accept, endpoint, expected] of cases) {
  test(`Accept ${JSON.stringify(accept)} at ${endpoint}: ${expected}`, () => {
    const found = negotiate(accept, endpoint)
    const shown = found === undefined ? '406' : `${found.as} ${found.format}${found.pretty ? ' pretty' : ''}`
    assert.equal(shown, expected)
  })
}

test('the query decides on indentation, and interactive programs get it by default', () => {
  assert.equal(wantsPretty('true', 'kubectl/v1.36'), true)
  assert.equal(wantsPretty('1', ''), true)
  assert.equal(wantsPretty('false', 'curl/8.0'), false)
  assert.equal(wantsPretty('nonsense', 'curl/8.0'), false)
  assert.equal(wantsPretty('', 'curl/8.0'), true)
  assert.equal(wantsPretty(undefined, 'Mozilla/5.0 (X11)'), true)
  assert.equal(wantsPretty(undefined, 'kubectl/v1.36'), false)
})
