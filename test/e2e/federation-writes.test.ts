// Writes through a federated cluster, with kubectl and byte for byte, on real clusters: the member gets them with its own names and versions, decides about
// them by its own rules, and what it answers has the names and versions that reads have.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { SHAPES } from '../../src/federation/core/writes/written-fields.ts'
import { writtenProtobuf } from '../../src/federation/core/writes/written-protobuf.ts'
import { prefixedNamespace } from '../../src/gateway/core/federation/names.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeRequest, KubeResponse } from '../harness/clusters/kube-request.ts'
import { kubeconfigThrough } from '../harness/clusters/upstream-cluster.ts'
import {
  alice,
  federatedClusters,
  federatedUsersCA,
  readThrough,
  userNamed,
  watchThrough,
} from '../harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import type { KubectlResult } from '../harness/kubectl/kubectl.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const NAMESPACE = ['-n', 'east--default']
const PODS = '/api/v1/namespaces/east--default/pods'
const MERGE = 'application/merge-patch+json'
const bob = userNamed('bob')
const RESOURCES = [
  { version: 'v1', resource: 'pods' },
  { version: 'v1', resource: 'configmaps' },
  { version: 'v1', resource: 'namespaces' },
  { version: 'v1', resource: 'nodes' },
  { group: 'apps', version: 'v1', resource: 'deployments' },
  { group: 'example.com', version: 'v1', resource: 'widgets' },
]
const RBAC = 'rbac.authorization.k8s.io'
/** alice may do everything, bob may read pods, and the cache all that is federated. */
const PREPARED = [
  ...[
    ['alice', 'cluster-admin'],
    ['bob', 'pod-reader'],
    ['portcullis-cache', 'all-reader'],
  ].map(([name, role]) => ({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: RBAC, kind: 'User', name }],
  })),
  ...[
    ['pod-reader', 'pods'],
    ['all-reader', '*'],
  ].map(([name, resource]) => ({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: { name },
    rules: [{ apiGroups: ['*'], resources: [resource], verbs: ['get', 'list', 'watch'] }],
  })),
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  },
]

const folder = mkdtempSync(join(tmpdir(), 'federation-writes-'))
let east: TestCluster
let west: TestCluster
let gateway: TestGateway
let kubeconfig = ''

before(async () => {
  const start = (name: string, more: object): Promise<TestCluster> =>
    startCluster({ name, clientCA: federatedUsersCA, ...more })
  ;[east, west] = await Promise.all([
    start('east', { nodes: 1, controllerManager: true, kwok: true, scheduler: true }),
    start('west', {}),
  ])
  await Promise.all(
    [east, west].map((cluster) => cluster.apply(PREPARED.map((object) => `---\n${JSON.stringify(object)}\n`).join(''))),
  )
  const all = federatedClusters([east, west], { resources: RESOURCES })
  gateway = await startGateway({
    clusters: all.map(({ spec, ...one }) => ({
      ...one,
      spec: { ...spec, ...(spec.cache !== undefined && { cache: RESOURCES }) },
    })),
  })
  kubeconfig = await kubeconfigThrough(gateway, east, alice, { name: 'all' })
  for (const path of [
    '/api/v1/pods',
    '/api/v1/configmaps',
    '/api/v1/namespaces',
    '/api/v1/nodes',
    '/apis/apps/v1/deployments',
    '/apis/example.com/v1/widgets',
  ])
    await waitFor(path, async () => (await ask(path)).status === 200)
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
  rmSync(folder, { recursive: true })
})

function ask(path: string, more: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  return readThrough(gateway, path, more)
}

/** @param body bytes or a text are sent as they are */
function write(method: string, path: string, body?: object | string, type?: string): Promise<KubeResponse> {
  const raw = typeof body === 'string' || Buffer.isBuffer(body) ? { raw: body } : { body }
  return ask(path, {
    method,
    ...(body !== undefined && raw),
    ...(type !== undefined && { headers: { 'content-type': type } }),
  })
}

/** As the member's administrator. */
function direct(path: string): Promise<KubeResponse> {
  return east.request(path.replace('east--', ''))
}

async function run(args: readonly string[], stdin?: object): Promise<string> {
  const { code, stdout, stderr }: KubectlResult = await east.kubectl(args, {
    kubeconfig,
    // One, so that discovery is asked for once.
    home: folder,
    ...(stdin !== undefined && { stdin: JSON.stringify(stdin) }),
  })
  assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

function pod(name: string, metadata: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'c', image: 'c:1' }], terminationGracePeriodSeconds: 0 },
  }
}

function deployment(name: string, image = 'c:1'): object {
  const labels = { app: name }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'east--default', labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'c', image }], terminationGracePeriodSeconds: 0 },
      },
    },
  }
}

function configMap(name: string, more: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...more }, data: { a: '1' } }
}

describe('kubectl', () => {
  const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'

  test('apply, again, scale, rollout and delete of a deployment', PATIENT, async () => {
    assert.match(await run(['apply', '-f', '-'], deployment('web')), /deployment.apps\/web created/)
    assert.match(await run(['apply', '-f', '-'], deployment('web')), /unchanged/)
    assert.match(await run(['apply', '-f', '-'], deployment('web', 'c:2')), /configured/)
    await run(['rollout', 'status', ...NAMESPACE, 'deployment/web', '--timeout=50s'])
    await run(['scale', ...NAMESPACE, 'deployment/web', '--replicas=2'])
    await run(['scale', ...NAMESPACE, 'deployment/web', '--current-replicas=2', '--replicas=3'])
    assert.equal((await direct(`${DEPLOYMENTS}/web`)).json().spec.replicas, 3)
    await run(['rollout', 'restart', ...NAMESPACE, 'deployment/web'])
    await run(['rollout', 'status', ...NAMESPACE, 'deployment/web', '--timeout=50s'])
    await run(['set', 'image', ...NAMESPACE, 'deployment/web', 'c=c:3'])
    await run(['label', ...NAMESPACE, 'deployment/web', 'tier=front'])
    await run(['annotate', ...NAMESPACE, 'deployment/web', 'note=x'])
    const { metadata, spec } = (await direct(`${DEPLOYMENTS}/web`)).json()
    assert.equal(spec.template.spec.containers[0].image, 'c:3')
    assert.deepEqual([metadata.namespace, metadata.labels.tier, metadata.annotations.note], ['default', 'front', 'x'])
    assert.equal(metadata.annotations['portcullis.io/cluster'], undefined)
    await run(['delete', ...NAMESPACE, 'deployment/web', '--timeout=50s'])
    assert.equal((await direct(`${DEPLOYMENTS}/web`)).status, 404)
  })

  test('apply on the server, conflicts between managers, and what is applied from what was read', PATIENT, async () => {
    const apply = ['apply', '--server-side', '-f', '-']
    await run([...apply, '--field-manager=one'], deployment('ssa'))
    const { code, stderr } = await east.kubectl([...apply, '--field-manager=two'], {
      kubeconfig,
      home: folder,
      stdin: JSON.stringify(deployment('ssa', 'c:2')),
    })
    assert.notEqual(code, 0)
    assert.match(stderr, /conflict with "one"/)
    await run([...apply, '--field-manager=two', '--force-conflicts'], deployment('ssa', 'c:2'))
    const read = async () => JSON.parse(await run(['get', ...NAMESPACE, 'deployment/ssa', '-o', 'json']))
    // Its controller may have written a status since it was read: a conflict, upon which clients read again.
    await waitFor('an apply of what was read', async () => {
      const shown = await read()
      assert.equal(shown.metadata.annotations['portcullis.io/cluster'], 'east')
      delete shown.metadata.managedFields
      return await run([...apply, '--field-manager=three', '--force-conflicts'], shown)
    })
    await waitFor('a replacement by what was read', async () => await run(['replace', '-f', '-'], await read()))
    const stored = (await direct(`${DEPLOYMENTS}/ssa`)).json()
    assert.equal(stored.metadata.annotations?.['portcullis.io/cluster'], undefined)
    assert.ok(!JSON.stringify(stored.metadata.managedFields).includes('portcullis.io/cluster'))
    await run(['delete', ...NAMESPACE, 'deployment/ssa'])
  })

  test('edit, and patches of all kinds', PATIENT, async () => {
    await run(['create', ...NAMESPACE, '-f', '-'], configMap('edited'))
    const edited = await east.kubectl(['edit', ...NAMESPACE, 'configmap/edited'], {
      kubeconfig,
      home: folder,
      env: { KUBE_EDITOR: 'sed -i "s/a: .1./a: \\"2\\"/"' },
    })
    assert.match(edited.stdout, /edited/, edited.stderr)
    const patch = (type: string, body: string): Promise<string> =>
      run(['patch', ...NAMESPACE, 'configmap/edited', `--type=${type}`, '-p', body])
    await patch('merge', '{"metadata":{"namespace":"east--default"},"data":{"b":"1"}}')
    await patch('strategic', '{"metadata":{"annotations":{"portcullis.io/cluster":"x"}},"data":{"c":"1"}}')
    await patch(
      'json',
      '[{"op":"test","path":"/metadata/namespace","value":"east--default"},{"op":"add","path":"/data/d","value":"1"}]',
    )
    const { data, metadata } = (await direct('/api/v1/namespaces/east--default/configmaps/edited')).json()
    assert.deepEqual(data, { a: '2', b: '1', c: '1', d: '1' })
    assert.equal(metadata.annotations?.['portcullis.io/cluster'], undefined)
  })

  test('explain, and what is as in the member', PATIENT, async () => {
    assert.match(await run(['explain', 'configmaps.data']), /FIELD: data/)
    await run(['create', ...NAMESPACE, 'configmap', 'plain'])
    const add = '[{"op":"add","path":"/metadata/annotations/a","value":"b"}]'
    const path = '/api/v1/namespaces/east--default/configmaps/plain'
    const patched = await write('PATCH', path, add, 'application/json-patch+json')
    assert.equal(patched.status, 422, patched.text)
    assert.equal((await write('PATCH', path, { metadata: { annotations: { a: 'b' } } }, MERGE)).status, 200)
    assert.equal((await write('PATCH', path, add, 'application/json-patch+json')).status, 200)
  })

  test('namespaces are made and go with what is in them; nodes are cordoned', PATIENT, async () => {
    await run(['create', 'namespace', 'east--shop'])
    await waitFor(
      'its account',
      async () => (await east.request('/api/v1/namespaces/shop/serviceaccounts/default')).status === 200,
    )
    await run(['create', '-n', 'east--shop', 'configmap', 'c', '--from-literal=a=1'])
    assert.equal((await east.request('/api/v1/namespaces/shop/configmaps/c')).status, 200)
    await run(['delete', 'namespace', 'east--shop', '--timeout=50s'])
    assert.equal((await east.request('/api/v1/namespaces/shop')).status, 404)
    await run(['cordon', 'east--node-0'])
    assert.equal((await east.request('/api/v1/nodes/node-0')).json().spec.unschedulable, true)
    await run(['uncordon', 'east--node-0'])
  })

  test('custom resources', PATIENT, async () => {
    const widget = {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'w', namespace: 'west--default' },
      spec: { replicas: 1, big: 1.5 },
    }
    await run(['apply', '-f', '-'], widget)
    await run(['apply', '-f', '-'], { ...widget, spec: { replicas: 2 } })
    await run(['scale', '-n', 'west--default', 'widgets.example.com/w', '--replicas=4'])
    await run([
      'patch',
      '-n',
      'west--default',
      'widgets.example.com/w',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"x":1}}',
    ])
    const stored = (await west.request('/apis/example.com/v1/namespaces/default/widgets/w')).json()
    assert.deepEqual([stored.spec, stored.status], [{ replicas: 4 }, { x: 1 }])
    await run(['delete', '-n', 'west--default', 'widgets.example.com/w', '--timeout=50s'])
  })

  test('a debug container, a deletion with its wait, and all of a label', PATIENT, async () => {
    for (const name of ['one', 'two'])
      await run(['create', ...NAMESPACE, '-f', '-'], pod(name, { labels: { of: 'two' } }))
    await run([
      'debug',
      ...NAMESPACE,
      'one',
      '--image=d:1',
      '--container=debugger',
      '--attach=false',
      '--profile=general',
    ])
    assert.equal((await direct(`${PODS}/one`)).json().spec.ephemeralContainers[0].name, 'debugger')
    await run(['delete', ...NAMESPACE, 'pod', '-l', 'of=two', '--timeout=50s'])
    assert.equal((await direct(`${PODS}/one`)).status, 404)
  })
})

describe('versions', () => {
  const CONFIGMAPS = '/api/v1/namespaces/east--default/configmaps'

  test('an answer has the version that reads have, and a list can wait for it', async () => {
    const watch = watchThrough(
      gateway,
      `${CONFIGMAPS}?watch=true&resourceVersion=${(await ask(CONFIGMAPS)).json().metadata.resourceVersion}`,
    )
    const created = (await write('POST', CONFIGMAPS, configMap('v'))).json()
    assert.deepEqual(
      [created.metadata.namespace, created.metadata.annotations],
      ['east--default', { 'portcullis.io/cluster': 'east' }],
    )
    const { resourceVersion } = created.metadata
    const listed = (await ask(`${CONFIGMAPS}?resourceVersion=${resourceVersion}`)).json()
    assert.deepEqual(
      listed.items
        .filter(({ metadata }: { metadata: { name: string } }) => metadata.name === 'v')
        .map(({ metadata }: { metadata: object }) => metadata),
      [created.metadata],
    )
    await waitFor('the event', () =>
      watch.events.some(({ object }) => object.metadata.resourceVersion === resourceVersion),
    )
    watch.stop()
    const updated = await write('PUT', `${CONFIGMAPS}/v`, { ...created, data: { a: '2' } })
    assert.equal(updated.status, 200, updated.text)
    const stale = await write('PUT', `${CONFIGMAPS}/v`, { ...created, data: { a: '3' } })
    assert.deepEqual([stale.status, stale.json().reason], [409, 'Conflict'])
    const from = (version: string): object => ({ metadata: { resourceVersion: version }, data: { a: '4' } })
    const versions = [updated.json().metadata.resourceVersion, resourceVersion]
    const patches = await Promise.all(
      versions.map((version) => write('PATCH', `${CONFIGMAPS}/v`, from(version), MERGE)),
    )
    assert.deepEqual(
      patches.map(({ status }) => status),
      [200, 409],
    )
    const remove = (version: string): Promise<KubeResponse> =>
      write('DELETE', `${CONFIGMAPS}/v`, { preconditions: { resourceVersion: version } })
    assert.equal((await remove(resourceVersion)).status, 409)
    assert.equal((await remove(patches[0]?.json().metadata.resourceVersion)).status, 200)
  })

  /** On a busy machine the proof that what is known is current may take longer than a read waits: then it is 503, or has a Warning. */
  const told = async (path: string): Promise<number> =>
    await waitFor(`a proved answer for ${path}`, async () => {
      const { status, headers } = await ask(path)
      return status !== 503 && headers['warning'] === undefined && status
    })

  test('a write is there for whoever reads next', PATIENT, async () => {
    for (let round = 0; round < 50; round++) {
      const name = `next-${round}`
      assert.equal((await write('POST', CONFIGMAPS, configMap(name))).status, 201)
      assert.equal(await told(`${CONFIGMAPS}/${name}`), 200)
      assert.equal((await write('DELETE', `${CONFIGMAPS}/${name}`)).status, 200)
      assert.equal(await told(`${CONFIGMAPS}/${name}`), 404)
    }
  })

  test('that of a list of all members is one, too', async () => {
    assert.equal((await write('POST', CONFIGMAPS, configMap('listed'))).status, 201)
    const { items } = (await ask('/api/v1/configmaps')).json()
    const listed = items.find(({ metadata }: { metadata: { name: string } }) => metadata.name === 'listed')
    const updated = await write('PUT', `${CONFIGMAPS}/listed`, { ...listed, data: { a: '2' } })
    assert.equal(updated.status, 200, updated.text)
    const stale = await write('PUT', `${CONFIGMAPS}/listed`, { ...listed, data: { a: '3' } })
    assert.equal(stale.status, 409)
  })

  test('what is only tried has no version, and is not there', async () => {
    const tried = await write('POST', `${CONFIGMAPS}?dryRun=All`, configMap('tried'))
    assert.equal(tried.status, 201, tried.text)
    assert.deepEqual(
      [tried.json().metadata.resourceVersion, tried.json().metadata.namespace],
      [undefined, 'east--default'],
    )
    assert.equal((await ask(`${CONFIGMAPS}/tried`)).status, 404)
  })
})

describe('bodies', () => {
  const CONFIGMAPS = '/api/v1/namespaces/east--default/configmaps'
  const stored = async (name: string): Promise<{ metadata: Record<string, unknown>; data: object }> =>
    (await direct(`${CONFIGMAPS}/${name}`)).json()

  test('Protobuf, made and updated', async () => {
    await write('POST', CONFIGMAPS, configMap('bytes'))
    const { resourceVersion } = (await ask(`${CONFIGMAPS}/bytes`)).json().metadata
    const answer = await east.request('/api/v1/namespaces/default/configmaps/bytes', {
      headers: { accept: 'application/vnd.kubernetes.protobuf' },
    })
    const named = (name: string, version: string): Buffer =>
      writtenProtobuf(
        answer.bytes,
        SHAPES.object,
        (field, text) => ({ namespace: 'east--default', name, resourceVersion: version, generateName: text })[field],
      )
    const type = 'application/vnd.kubernetes.protobuf'
    const updated = await write('PUT', `${CONFIGMAPS}/bytes`, named('bytes', resourceVersion), type)
    assert.equal(updated.status, 200, updated.text)
    assert.equal(updated.json().metadata.namespace, 'east--default')
    const created = await write('POST', CONFIGMAPS, named('more-bytes', ''), type)
    assert.equal(created.status, 201, created.text)
    assert.deepEqual((await stored('more-bytes')).data, { a: '1' })
  })

  test('YAML', async () => {
    const text =
      'kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: yaml\n  namespace: east--default\n  annotations:\n    portcullis.io/cluster: east\n    a: b\ndata: {mode: "0644"}\n'
    const created = await write('POST', CONFIGMAPS, text, 'application/yaml')
    assert.equal(created.status, 201, created.text)
    const { data, metadata } = await stored('yaml')
    assert.deepEqual([data, metadata['annotations'], metadata['namespace']], [{ mode: '0644' }, { a: 'b' }, 'default'])
    const applied = await write(
      'PATCH',
      `${CONFIGMAPS}/yaml?fieldManager=x&force=true`,
      text.replace('0644', '0600'),
      'application/apply-patch+yaml',
    )
    assert.equal(applied.status, 200, applied.text)
    assert.deepEqual((await stored('yaml')).data, { mode: '0600' })
  })

  test('whatever names another namespace stays outside', async () => {
    const smuggled = [
      '{"metadata":{"name":"x","namespace":"kube-system"}}',
      '{"metadata":{"name":"x","namespace":"default"}}',
      '{"metadata":{"name":"x","namespace":"west--default"}}',
      '{"metadata":{"name":"x"},"metadata":{"namespace":"kube-system"}}',
      '{"metadata":{"name":"x","namespace":"east--default","namespace":"kube-system"}}',
      '{"metadata":{"name":"x","namesp\\u0061ce":"kube-system"}}',
    ]
    for (const body of smuggled)
      assert.equal((await write('POST', CONFIGMAPS, body, 'application/json')).status, 400, body)
    // As at any kube-apiserver, these are fields that it does not know.
    for (const body of [
      '{"metadata":{"name":"case","Namespace":"kube-system"}}',
      '{"Metadata":{"namespace":"kube-system"},"metadata":{"name":"case"}}',
    ]) {
      const answer = await write('POST', `${CONFIGMAPS}?dryRun=All`, body, 'application/json')
      assert.deepEqual([answer.status, answer.json().metadata?.namespace], [201, 'east--default'], answer.text)
      assert.match(String(answer.headers['warning']), /unknown field/)
    }
    assert.equal((await east.request('/api/v1/namespaces/kube-system/configmaps/x')).status, 404)
  })

  test('however YAML is written, what is made is made in the namespace of the path', async () => {
    const outcomes = new Map<number, number>()
    for (const metadata of [
      'metadata: {name: x}',
      'metadata: {name: x, namespace: east--default}',
      'metadata: {name: x, namespace: kube-system}',
      'metadata:{name: x, namespace: kube-system}',
      'metadata: {"namespace":"kube-system", "name":"x"}',
      'metadata: {name: x, "namesp\\x61ce": kube-system}',
      '"met\\x61data": {name: x, namespace: kube-system}',
      '"metadata" : {name: x, namespace : kube-system}',
      "'metadata': {name: x, namespace: kube-system}",
      '? metadata\n: {name: x, namespace: kube-system}',
      '? metadata\n: ? namespace\n  : kube-system\n  ? name\n  : x',
      'metadata:\n  name: x\n  namespace: >-\n    kube-system',
      'metadata:\n  name: x\n  namespace: kube-\n    system',
      'metadata:\n  name: x\n  namespace: "kube-\\\n    system"',
      'metadata:\n  name: x\nmetadata:\n  namespace: kube-system',
      'metadata: &m {name: x, namespace: kube-system}\nother: *m',
      'metadata:\n  <<: {namespace: kube-system}\n  name: x',
      'metadata: {"<<": {namespace: kube-system}, name: x}',
      'metadata: !!map {name: x, namespace: kube-system}',
      'metadata: {name: x}\n---\nmetadata: {namespace: kube-system}',
      'metadata: {name: x}\n...\nmetadata: {namespace: kube-system}',
      'metadata: {name: x, # }\n  namespace: kube-system}',
      'metadata:\n  name: x # \u2028  namespace: kube-system',
      'metadata:\n\tname: x\n\tnamespace: kube-system',
      'metadata: {name: x,}',
      'metadata: {name: x, Namespace: kube-system}',
      'metadata: {name: x, namespace: }',
      'metadata: {name: x, namespace: ~}',
      'metadata: {name: x, namespace: [kube-system]}',
      'metadata: {name: x, namespace: 7}',
      'metadata: [{name: x, namespace: kube-system}]',
    ]) {
      for (const body of [
        `kind: ConfigMap\napiVersion: v1\n${metadata}\n`,
        `${metadata}\nkind: ConfigMap\napiVersion: v1\n`,
      ]) {
        const answer = await write('POST', `${CONFIGMAPS}?dryRun=All`, body, 'application/yaml')
        outcomes.set(answer.status, (outcomes.get(answer.status) ?? 0) + 1)
        if (answer.status === 400) continue
        assert.equal(answer.status, 201, `${body}: ${answer.text}`)
        assert.equal(answer.json().metadata.namespace, 'east--default', body)
      }
    }
    assert.ok((outcomes.get(201) ?? 0) >= 8 && (outcomes.get(400) ?? 0) >= 30, JSON.stringify([...outcomes]))
  })

  test('a large object, whose answer kube-apiserver would compress', async () => {
    const large = { ...configMap('large'), data: { a: 'é"'.repeat(200_000) } }
    const created = await ask(CONFIGMAPS, { method: 'POST', body: large, headers: { 'accept-encoding': 'gzip' } })
    assert.equal(created.status, 201, created.text.slice(0, 200))
    assert.deepEqual([created.json().metadata.namespace, created.json().data], ['east--default', large.data])
  })

  test('in a namespace that ends in a hash, what is there', PATIENT, async () => {
    const long = `long-${'n'.repeat(56)}`
    const own = `/api/v1/namespaces/${long}/configmaps`
    await east.request('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: long } } })
    assert.equal((await east.request(own, { method: 'POST', body: configMap('there') })).status, 201)
    const shown = `/api/v1/namespaces/${prefixedNamespace('east', long)}/configmaps`
    const there = await waitFor('it to be shown', async () => {
      const answer = await ask(`${shown}/there`)
      return answer.status === 200 && answer
    })
    const updated = await write('PUT', `${shown}/there`, { ...there.json(), data: { a: '2' } })
    assert.deepEqual([updated.status, updated.json().metadata.namespace], [200, there.json().metadata.namespace])
    assert.deepEqual((await east.request(`${own}/there`)).json().data, { a: '2' })
    assert.equal((await write('POST', shown, configMap('new'))).status, 404)
    assert.equal((await write('DELETE', `${shown}/there`)).status, 200)
  })

  test('what an object is, is what it would be written directly', async () => {
    const bodies = [
      { data: { a: 'é\u2028"\\' }, immutable: true },
      {
        binaryData: { b: 'AAEC' },
        metadata: {
          labels: { l: 'x' },
          annotations: { 'a.b/c': '{"namespace":"default"}' },
          finalizers: ['example.com/x'],
        },
      },
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-0', uid: '0' }] } },
    ]
    // Nothing collects there what belongs to nothing.
    const shown = CONFIGMAPS.replace('east', 'west')
    const own = shown.replace('west--', '')
    for (const [index, body] of bodies.entries()) {
      const of = (name: string): object => ({ ...body, metadata: { ...body.metadata, name } })
      const names = [`through-${index}`, `own-${index}`] as const
      assert.equal((await write('POST', shown, of(names[0]))).status, 201)
      assert.equal((await west.request(own, { method: 'POST', body: of(names[1]) })).status, 201)
      const [one, other] = await Promise.all(
        names.map(async (name) => {
          const { metadata, ...rest } = (await west.request(`${own}/${name}`)).json()
          const { name: _, uid, resourceVersion, creationTimestamp, managedFields, ...more } = metadata
          return { ...rest, metadata: more }
        }),
      )
      assert.deepEqual(one, other)
      assert.equal(one?.kind, 'ConfigMap')
    }
  })
})

describe('pods', () => {
  test('an eviction, a deletion of several, and their answers', PATIENT, async () => {
    for (const name of ['e1', 'e2', 'e3'])
      assert.equal((await write('POST', PODS, pod(name, { labels: { of: 'e' } }))).status, 201)
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'e1', namespace: 'east--default' } }
    const evicted = await write('POST', `${PODS}/e1/eviction`, eviction)
    assert.deepEqual([evicted.status, evicted.json().status], [201, 'Success'], evicted.text)
    const removed = await write('DELETE', `${PODS}?labelSelector=of%3De&fieldSelector=metadata.name!%3De3`, {
      gracePeriodSeconds: 0,
    })
    assert.equal(removed.status, 200, removed.text)
    const names = removed
      .json()
      .items.map(
        ({ metadata }: { metadata: { namespace: string; name: string } }) => `${metadata.namespace}/${metadata.name}`,
      )
    assert.ok(names.includes('east--default/e2') && !names.includes('east--default/e3'), String(names))
    await waitFor('both to be gone', async () => (await ask(`${PODS}?labelSelector=of%3De`)).json().items.length === 1)
  })
})

describe('who may', () => {
  test('one without rights in the member gets the answer of the member, in its words', async () => {
    const answer = await ask(`${PODS}/x`, { method: 'DELETE', user: bob })
    assert.equal(answer.status, 403)
    assert.match(
      answer.json().message,
      /User "bob" cannot delete resource "pods" in API group "" in the namespace "default"/,
    )
    const system = await ask(`${PODS}/x`, { method: 'DELETE', user: userNamed('system:admin', ['system:masters']) })
    assert.match(system.json().message, /in cluster "east"/)
  })

  test('discovery has the verbs, and what is not handed over says where it is taken', async () => {
    const { resources } = (await ask('/api/v1')).json()
    const verbs = Object.fromEntries(
      resources.map((one: { name: string; verbs: string[] }) => [one.name, [...one.verbs].sort().join()]),
    )
    assert.equal(verbs['pods'], 'create,delete,deletecollection,get,list,patch,update,watch')
    assert.equal(verbs['nodes'], 'create,delete,get,list,patch,update,watch')
    assert.deepEqual(
      [verbs['pods/eviction'], verbs['pods/status'], verbs['pods/binding']],
      ['create', 'get,patch,update', undefined],
    )
    for (const [method, path] of [
      ['POST', `${PODS}/x/binding`],
      ['DELETE', '/api/v1/nodes'],
      ['POST', '/api/v1/namespaces/east--default/secrets'],
    ] as const) {
      const answer = await write(method, path, {})
      assert.equal(answer.status, 405, answer.text)
      assert.match(answer.json().message, /write at \/clusters\/(east|MEMBER)/)
    }
  })
})
