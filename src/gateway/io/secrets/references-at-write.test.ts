import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { statusError } from '../../../kube/api/status.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../../pki/io/pki.ts'
import { upstreamClusterKind } from '../../api/upstream-cluster-kind.ts'
import { resolveAtWrite, type SecretAtWrite, SecretsAtWrite } from './references-at-write.ts'

const ca = createCA({ commonName: 'ca' })
const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** @param usableBy value of the annotation; undefined = none */
function secret(namespace: string, labels: JsonObject = {}, usableBy: unknown = 'prod'): JsonObject {
  const annotations = usableBy === undefined ? {} : { 'portcullis.io/usable-by': usableBy }
  const data = { 'tls.crt': base64(pair.certPem), 'tls.key': base64(pair.keyPem), 'ca.crt': base64(ca.certPem) }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'prod', namespace, labels, annotations }, data }
}

function withoutAnnotation(made: JsonObject): JsonObject {
  return { ...made, metadata: { ...recordOf(made['metadata']), annotations: {} } } as JsonObject
}

function cluster(references: JsonObject, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: references,
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
  }
}

const at = (key: string, namespace = 'portcullis-system', name = 'prod'): JsonObject => ({ namespace, name, key })
const good = { caRef: at('ca.crt'), certRef: at('tls.crt'), keyRef: at('tls.key') }

const LABEL = { 'portcullis.io/usable-by-gateway': 'true' }
const store = new Map<string, JsonObject>([
  ['portcullis-system/prod', secret('portcullis-system')],
  ['kube-system/prod', withoutAnnotation(secret('kube-system'))],
  ['team-a/prod', secret('team-a')],
])
const stored = (namespace: string, name: string): SecretAtWrite => store.get(`${namespace}/${name}`)

function problems(
  object: JsonObject,
  before?: JsonObject,
  secretOf: (namespace: string, name: string) => SecretAtWrite = stored,
): string[] {
  const kind = upstreamClusterKind({
    resolve: (written) => resolveAtWrite(written, secretOf, ['portcullis-system']),
  })
  return kind
    .check(object, before, nodePemChecks)
    .map(({ severity, path, message }) => `${severity} ${path} ${message}`)
}

test('the content of Secrets is checked like inline data', () => {
  assert.deepEqual(problems(cluster(good)), [])
  const swapped = problems(cluster({ ...good, keyRef: at('tls.crt') }))
  assert.equal(swapped.length, 1)
  assert.match(swapped[0] ?? '', /^error spec\.clientConfig\.keyRef holds no PEM private key/)
  const [missing] = problems(cluster({ ...good, caRef: at('ca.pem') }))
  assert.match(
    missing ?? '',
    /^error spec\.clientConfig\.caRef\.key Secret portcullis-system\/prod has no key "ca\.pem"/,
  )
})

test('a Secret that is not there yet is a warning, one that cannot be read nothing', () => {
  const [absent, ...more] = problems(cluster({ ...good, keyRef: at('tls.key', 'portcullis-system', 'later') }))
  assert.deepEqual(more, [])
  assert.match(absent ?? '', /^warning spec\.clientConfig\.keyRef Secret portcullis-system\/later does not exist yet/)
  assert.deepEqual(
    problems(cluster(good), undefined, () => 'unknown'),
    [],
  )
})

test('a Secret that names UpstreamClusters is refused to all others, in every namespace', () => {
  for (const namespace of ['portcullis-system', 'team-a']) {
    for (const labels of [{}, LABEL]) {
      const object = cluster({
        caRef: at('ca.crt', namespace),
        certRef: at('tls.crt', namespace),
        keyRef: at('tls.key', namespace),
      })
      const told = (names: unknown): string[] => problems(object, undefined, () => secret(namespace, labels, names))
      const name = nameOf(object)
      for (const good of [name, `other,${name}`, `other, ${name} `, `\n${name}\t,,`, `,${name}`]) {
        assert.deepEqual(told(good), [], good)
      }
      const others = ['', ' ', ',', 'other', `${name}.other`, `x${name}`, `${name} other`, `"${name}"`, `${name};`]
      const wildcards = ['*', 'pro*', '**', 'p?od', '.*', '[a-z]*', '%']
      for (const bad of [...others, ...wildcards, name.toUpperCase(), `prоd`, `${name}\0`, null, [name], { 0: name }]) {
        const found = told(bad)
        assert.equal(found.length, 3, `${JSON.stringify(bad)}: ${found.join('\n')}`)
        for (const problem of found) assert.match(problem, /^error .* may not be used/)
      }
    }
  }
})

test('a Secret that is released to every UpstreamCluster is used, and each is named once, with its end and the annotation', () => {
  const shared = withoutAnnotation(secret('portcullis-system'))
  for (const [namespace, labels] of [
    ['portcullis-system', {}],
    ['team-a', LABEL],
  ] as const) {
    const refs = [at('ca.crt', namespace), at('tls.crt', namespace), at('tls.key', namespace)]
    const object = cluster({ caRef: refs[0], certRef: refs[1], keyRef: refs[2] })
    const old = withoutAnnotation(secret(namespace, labels))
    const kind = upstreamClusterKind({
      resolve: (written) => resolveAtWrite(written, () => old, ['portcullis-system']),
    })
    const [problem, ...more] = kind.check(object, undefined, nodePemChecks)
    assert.deepEqual(more, [])
    assert.equal(problem?.severity, 'warning')
    assert.match(problem?.path ?? '', /^spec\.clientConfig\.\w+Ref$/)
    assert.equal(
      problem?.message,
      `Secret ${namespace}/prod is released to all UpstreamClusters, which ends with the next minor version`,
    )
    assert.match(problem?.fix ?? '', /annotate it for all that use it, with commas: portcullis\.io\/usable-by=prod$/)
    // A write that keeps them, such as the degrade switch, reports it, too.
    assert.deepEqual(kind.check(object, object, nodePemChecks), [problem])
  }
  // Nothing is claimed about what is unknown.
  for (const found of [undefined, 'unknown'] as const) {
    assert.doesNotMatch(problems(cluster(good), undefined, () => found).join(), /released to all/)
  }
  const two = cluster({ ...good, caRef: at('ca.crt', 'portcullis-system', 'other') })
  assert.equal(problems(two, undefined, () => shared).length, 2)
})

test('a name that no Secret can have is in no command that an operator may copy', () => {
  const kind = upstreamClusterKind({ resolve: (written) => resolveAtWrite(written, () => undefined, []) })
  for (const name of ['x;reboot', '$(reboot)', '`reboot`', 'x -n kube-system', 'a\nb', "x'y"]) {
    const token = { insecure: true, bearerTokenRef: at('token', 'kube-system', name) }
    const [problem] = kind.check(cluster(token), undefined, nodePemChecks)
    assert.match(problem?.fix ?? '', /let the owner of this one name it, in its annotation portcullis\.io\/usable-by; /)
  }
})

test('a Secret of another namespace is refused, there or not, unless its owner has released it', () => {
  const refused = (name: string): string[] =>
    problems(cluster({ insecure: true, bearerTokenRef: at('token', 'kube-system', name) }))
  const [first] = refused('prod')
  assert.match(first ?? '', /^error spec\.clientConfig\.bearerTokenRef Secret kube-system\/prod may not be used/)
  assert.deepEqual(
    refused('nothing').map((text) => text.replaceAll('nothing', 'prod')),
    refused('prod'),
  )
  const named = { caRef: at('ca.crt', 'team-a'), certRef: at('tls.crt', 'team-a'), keyRef: at('tls.key', 'team-a') }
  assert.deepEqual(problems(cluster(named)), [])
})

test("the gateway's own Secrets may not be named: not by their namespace, nor with the label", () => {
  for (const own of ['portcullis-serving-ca', 'portcullis-control-ca']) {
    const labelled = secret('portcullis-system', LABEL)
    const token = { insecure: true, bearerTokenRef: at('tls.key', 'portcullis-system', own) }
    for (const found of [labelled, undefined, 'unknown'] as const) {
      const [problem, ...more] = problems(cluster(token), undefined, () => found)
      assert.deepEqual(more, [])
      assert.match(
        problem ?? '',
        /^error spec\.clientConfig\.bearerTokenRef Secret \S+ may not be used: it is the gateway's own/,
      )
    }
  }
})

test('a write that keeps the references is not refused because of the Secrets', () => {
  const broken = cluster({ ...good, keyRef: at('tls.crt') })
  const frozen = cluster({ ...good, keyRef: at('tls.crt') }, { degrade: { mode: 'Freeze' } })
  const [problem, ...more] = problems(frozen, broken)
  assert.deepEqual(more, [])
  assert.match(problem ?? '', /^warning spec\.clientConfig\.keyRef /)
})

test('errors of the write itself are refused, even where the references stay: a token that would be sent in clear', () => {
  const token = { insecure: true, bearerTokenRef: at('tls.crt') }
  const servers = (endpoint: string): JsonObject => ({ servers: [{ endpoint }] })
  const secretOf = (): SecretAtWrite => ({ ...secret('portcullis-system'), data: { 'tls.crt': base64('a-token') } })
  const inClear = cluster(token, servers('http://10.0.0.1:8080'))
  const [problem, ...more] = problems(inClear, cluster(token), secretOf)
  assert.deepEqual(more, [])
  assert.match(problem ?? '', /^error spec\.clientConfig\.bearerTokenRef would be sent in clear/)
  // If it was already stored like that, unrelated writes are not blocked.
  const frozen = cluster(token, { ...servers('http://10.0.0.1:8080'), degrade: { mode: 'Freeze' } })
  assert.match(problems(frozen, inClear, secretOf).join(), /^warning spec\.clientConfig\.bearerTokenRef/)
})

test('for a webhook each Secret is read once, in time or not at all', async () => {
  const asked: string[] = []
  const client = {
    get: async (_kind: unknown, { namespace, name }: { namespace: string; name: string }) => {
      asked.push(`${namespace}/${name}`)
      if (name === 'gone') throw statusError('NotFound', 'not found')
      if (namespace === 'kube-system') throw statusError('Forbidden', 'forbidden')
      return secret(namespace)
    },
  } as unknown as ObjectClient
  const references = {
    ...good,
    keyRef: at('tls.key', 'portcullis-system', 'gone'),
    bearerTokenRef: at('t', 'kube-system'),
  }
  const secretOf = await new SecretsAtWrite(client).read(cluster(references))
  assert.equal(asked.length, 3)
  assert.deepEqual(new Set(asked), new Set(['kube-system/prod', 'portcullis-system/gone', 'portcullis-system/prod']))
  assert.equal(secretOf('portcullis-system', 'gone'), undefined)
  assert.equal(secretOf('kube-system', 'prod'), 'unknown')
  assert.deepEqual(secretOf('portcullis-system', 'prod'), secret('portcullis-system'))
})
