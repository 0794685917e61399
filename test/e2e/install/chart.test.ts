// The Helm chart on a real cluster: every object by a server-side dry run, both shapes installed until all pods are Ready, upgrades,
// uninstalling, and the container itself as a process, with exactly what a pod of the cluster says.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { kubeRequest } from '../../harness/clusters/kube-request.ts'
import { crdsOf } from '../../harness/clusters/third-party-crds.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { runCli } from '../../harness/gateways/embedded.ts'
import { runContainer, startContainer } from '../../harness/install/container.ts'
import {
  API_VERSIONS,
  CHART,
  helm,
  type KubeObject,
  nameOf,
  objectsOf,
  podOf,
  render,
} from '../../harness/install/helm.ts'
import { gatewayCA, LOOPBACK_ADDRESSES, serverCertificate } from '../../harness/pki.ts'
import { freePorts } from '../../harness/ports.ts'
import { waitFor } from '../../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const EVERYTHING = ['--values', join(ROOT, 'test/chart/values/everything.yaml'), ...API_VERSIONS]
const EMBEDDED_EVERYTHING = ['--values', join(ROOT, 'test/chart/values/embedded-everything.yaml'), ...API_VERSIONS]
const SYSTEM = 'portcullis-system'
const EDGE = 'edge'

let cluster: TestCluster
let folder: string

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-chart-'))
  cluster = await startCluster({ name: 'chart', controllerManager: true, scheduler: true, kwok: true, nodes: 2 })
  const monitoring = /_(podmonitors|servicemonitors|prometheusrules)\.yaml$/
  const crds = [
    join(crdsOf('cert-manager'), 'cert-manager.io_certificates.yaml'),
    ...readdirSync(crdsOf('prometheus-operator'))
      .filter((name) => monitoring.test(name))
      .map((name) => join(crdsOf('prometheus-operator'), name)),
  ]
  await cluster.apply(crds.map((file) => readFileSync(file, 'utf8')).join('\n---\n'), ['--server-side'])
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  const namespaces = [SYSTEM, EDGE].map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: restricted },
  }))
  // Without it the ServiceAccount admission plugin refuses a Pod; an installation makes it.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'probe', namespace: SYSTEM } }
  await cluster.apply([...namespaces, account].map((object) => JSON.stringify(object)).join('\n---\n'))
})

after(async () => {
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** kube-apiserver's answer, without what is not about the objects. */
async function dryRun(objects: readonly KubeObject[]): Promise<string> {
  const args = ['apply', '--dry-run=server', '--validate=strict', '--server-side', '-f', '-']
  const { code, stderr } = await cluster.kubectl(args, {
    stdin: objects.map((object) => JSON.stringify(object)).join('\n---\n'),
  })
  return code === 0 ? stderr : `exit code ${code}: ${stderr}`
}

const RENDERS: readonly (readonly [name: string, args: readonly string[]])[] = [
  ['kubernetes', []],
  ['embedded', ['--set=shape=embedded']],
  ['everything', EVERYTHING],
  ['embedded with everything', EMBEDDED_EVERYTHING],
]

for (const [name, args] of RENDERS) {
  test(`kube-apiserver accepts every object of ${name}, and its pods under PodSecurity restricted`, async () => {
    const objects = await render(args)
    const pod = podOf(objects)
    pod['spec'].serviceAccountName = 'probe'
    // Admission would look for them.
    delete pod['spec'].imagePullSecrets
    assert.equal(await dryRun([...objects.filter(({ kind }) => kind !== 'Pod'), pod]), '')
    const tests = objects.filter(({ kind }) => kind === 'Pod')
    assert.equal(tests.length, 1)
    assert.equal(await dryRun(tests), '')
  })
}

test('what is not right is refused by these checks', async () => {
  const objects = await render()
  const pod = podOf(objects)
  pod['spec'].serviceAccountName = 'probe'
  assert.match(
    await dryRun([{ ...pod, spec: { ...pod['spec'], hostNetwork: true } }]),
    /violates PodSecurity "restricted/,
  )
  const deployment = objects.find(({ kind }) => kind === 'Deployment') ?? assert.fail()
  assert.match(await dryRun([{ ...deployment, spec: { ...deployment['spec'], replica: 2 } }]), /replica/)
})

for (const shape of ['kubernetes', 'embedded']) {
  test(`kube-apiserver accepts the Kustomize base ${shape}`, async () => {
    const built = await cluster.kubectl(['kustomize', join(ROOT, 'deploy/kustomize', shape)])
    assert.equal(built.code, 0, built.stderr)
    // Applied before by this test, without Server-Side Apply.
    const objects = objectsOf(built.stdout).filter(({ kind }) => kind !== 'Namespace')
    assert.equal(await dryRun(objects), '')
  })
}

/** As an administrator; its output. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await helm(args, cluster.adminKubeconfig)
  assert.equal(code, 0, `helm ${args.join(' ')}: ${stdout}${stderr}`)
  assert.doesNotMatch(stderr, /warning/i)
  return stdout
}

async function get(...args: readonly string[]): Promise<KubeObject> {
  const { code, stdout, stderr } = await cluster.kubectl(['get', ...args, '-o', 'json'])
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

/** What `kubectl get` finds, by name, with their uids. */
async function uids(...what: readonly string[]): Promise<Map<string, string>> {
  const { items } = await get(...what)
  return new Map(items.map((object: KubeObject) => [nameOf(object), object['metadata'].uid]))
}

/** Ports of this machine as the ports of the container. */
async function ports(): Promise<{ flags: string[]; gateway: number; control: number; health: number }> {
  const [gateway = 0, control = 0, health = 0, admin = 0] = await freePorts(4)
  const numbers = Object.entries({ gateway, control, health, admin }).map(([name, port]) => `ports.${name}=${port}`)
  // The cluster that the gateway serves is on this machine, too.
  numbers.push('settings.allowLocalServers[0]=127.0.0.0/8')
  return { flags: [`--set=${numbers.join(',')}`], gateway, control, health }
}

async function podsReady(namespace: string, count: number): Promise<KubeObject[]> {
  const selector = 'app.kubernetes.io/name=portcullis'
  return waitFor(`${count} pods in ${namespace} to be Ready`, async () => {
    const { items } = await get('pods', '-n', namespace, '-l', selector)
    const ready = items.filter(({ status, metadata }: KubeObject) => {
      const { conditions = [] } = status
      return (
        metadata.deletionTimestamp === undefined &&
        conditions.some((one: KubeObject) => one['type'] === 'Ready' && one['status'] === 'True')
      )
    })
    return ready.length === count && ready
  })
}

async function secret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
  const metadata = { name, namespace: EDGE }
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, stringData }))
}

/** A GET through the gateway as an administrator of the cluster behind it. */
async function throughGateway(port: number, ca: string): Promise<number> {
  const server = `https://127.0.0.1:${port}/clusters/${cluster.name}`
  return (await kubeRequest({ server, ca, user: cluster.admin, path: '/api/v1/namespaces/default' })).status
}

/** Prometheus may read metrics once its ServiceAccount has the chart's role; no other client may. */
async function metricsForPrometheus(port: number): Promise<void> {
  const metadata = { name: 'prometheus', namespace: EDGE }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata }
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'prometheus' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'portcullis-metrics-reader' },
    subjects: [{ kind: 'ServiceAccount', ...metadata }],
  }
  await cluster.apply([account, binding].map((object) => JSON.stringify(object)).join('\n---\n'))
  const { stdout } = await cluster.kubectl(['create', 'token', 'prometheus', '-n', EDGE])
  const url = `http://127.0.0.1:${port}/metrics`
  assert.equal((await fetch(url)).status, 401)
  const headers = { authorization: `Bearer ${stdout.trim()}` }
  const text = await waitFor('the rights of Prometheus', async () => {
    const response = await fetch(url, { headers })
    return response.ok && response.text()
  })
  assert.match(text, /^portcullis_build_info\{/m)
}

test('shape kubernetes: installed, served, tested, upgraded and uninstalled; CRDs and their objects stay', async () => {
  const { flags, gateway, health } = await ports()
  const install = ['portcullis', CHART, '--namespace', SYSTEM, ...flags, '--set=shutdown.delaySeconds=1']
  const notes = await run('install', ...install)
  for (const [file] of notes.matchAll(/\b(?:deploy|config)\/[\w./-]+\.yaml/g))
    assert.ok(existsSync(join(ROOT, file)), file)
  assert.match(notes, /1\. .*\n.*rollout status deploy\/portcullis\n2\. .*\n.*\n3\. /)
  const [pod = {}] = await podsReady(SYSTEM, 2)
  const names = (await render())
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .map(({ metadata }) => metadata.name)
  const crds = (): Promise<Map<string, string>> => uids('crd', ...names)
  const crdsBefore = await crds()
  assert.equal(crdsBefore.size, 5)

  const container = await startContainer({ cluster, pod })
  try {
    await cluster.apply(JSON.stringify(upstreamClusterFor(cluster)))
    const ready = ['wait', '--for=condition=Ready', `uc/${cluster.name}`, '--timeout=30s']
    const waited = await cluster.kubectl(ready)
    assert.equal(waited.code, 0, waited.stderr)
    const { status } = await get('uc', cluster.name)
    assert.deepEqual(
      status.gateways.map(({ name }: KubeObject) => name),
      [pod['metadata'].name],
    )
    const serving = await get('secret', 'portcullis-serving-ca', '-n', SYSTEM)
    // For cert-manager's CA injector.
    const { metadata, data } = await get('secret', 'portcullis-control-ca', '-n', SYSTEM)
    assert.equal(metadata.annotations['cert-manager.io/allow-direct-injection'], 'true')
    assert.equal(data['ca.crt'], data['tls.crt'])
    assert.equal(await throughGateway(gateway, Buffer.from(serving['data']['tls.crt'], 'base64').toString()), 200)

    await metricsForPrometheus(health)
    assert.doesNotMatch(container.process.log(), /forbidden/i, 'the chart gives every right that is needed')

    // `helm test`, as its pod would do it.
    const hooks = objectsOf(await run('get', 'hooks', 'portcullis', '--namespace', SYSTEM))
    const [hook = {}] = hooks.filter(({ kind }) => kind === 'Pod')
    const hosts = [`portcullis-internal.${SYSTEM}.svc`]
    const probed = await runContainer({ cluster, pod: hook, hosts })
    assert.equal(probed.code, 0, probed.log)

    await run('upgrade', ...install, '--set=podAnnotations.changed=yes')
    assert.deepEqual(await crds(), crdsBefore)
  } finally {
    assert.equal(await container.stop(), 0)
  }

  await run('uninstall', 'portcullis', '--namespace', SYSTEM, '--wait')
  assert.deepEqual(await crds(), crdsBefore)
  assert.equal((await get('uc', cluster.name))['metadata'].name, cluster.name)
  // And again: Helm takes over what it has left.
  await run('install', ...install)
  await podsReady(SYSTEM, 2)
  await run('uninstall', 'portcullis', '--namespace', SYSTEM, '--wait')
})

test('shape embedded: installed, served; the volume stays, keys on it stay of their owner alone', async () => {
  const { flags, gateway, control, health } = await ports()
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'edge' },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      hostPath: { path: '/nowhere' },
      persistentVolumeReclaimPolicy: 'Retain',
    },
  }
  await cluster.apply(JSON.stringify(volume))
  const serving = serverCertificate(gatewayCA(), ['localhost'], LOOPBACK_ADDRESSES)
  await secret('edge-tls', { 'tls.crt': serving.certPem, 'tls.key': serving.keyPem })
  await secret('edge-store', { 'store.key': `${randomBytes(32).toString('base64')}\n` })
  await secret('edge-metrics', { token: 'metrics-token\n' })
  const shape = [
    '--set=shape=embedded,persistence.storageClassName=-,shutdown.delaySeconds=1,tls.secretName=edge-tls',
    '--set=store.keySecret.name=edge-store,metrics.tokenSecret.name=edge-metrics',
  ]
  const install = ['edge', CHART, '--namespace', EDGE, ...flags, ...shape]
  await run('install', ...install, '--set=fullnameOverride=portcullis')
  const [pod = {}] = await podsReady(EDGE, 1)
  const claims = await uids('pvc', '-n', EDGE)
  assert.equal(claims.size, 1)

  const disk = join(folder, 'disk')
  const [claimName = ''] = [...claims.keys()].map((name) => name.split('/').at(-1) ?? '')
  const container = await startContainer({ cluster, pod, claims: { [claimName]: disk } })
  try {
    // The second of the three commands that the installation prints.
    const args = ['control', 'kubeconfig', '--data-dir', join(disk, 'data'), '--server', `https://localhost:${control}`]
    const made = await runCli([...args, '--user', 'admin', '--group', 'portcullis:admins'])
    const kubeconfig = join(folder, 'edge.kubeconfig')
    assert.equal(made.code, 0, made.stderr)
    writeFileSync(kubeconfig, made.stdout)
    const applied = await cluster.kubectl(['apply', '-f', '-'], {
      kubeconfig,
      stdin: JSON.stringify(upstreamClusterFor(cluster)),
    })
    assert.equal(applied.code, 0, applied.stderr)
    const ready = ['wait', '--for=condition=Ready', `uc/${cluster.name}`, '--timeout=30s']
    assert.equal((await cluster.kubectl(ready, { kubeconfig })).code, 0)
    assert.equal(await throughGateway(gateway, gatewayCA().certPem), 200)
    const metrics = `http://127.0.0.1:${health}/metrics`
    assert.equal((await fetch(metrics)).status, 401)
    assert.equal((await fetch(metrics, { headers: { authorization: 'Bearer metrics-token' } })).status, 200)
    // OnRootMismatch goes by the root of the volume: as long as it is as the kubelet left it, no key changes its mode.
    assert.equal((statSync(disk).mode & 0o7777).toString(8), '2775')
    for (const key of ['data/control/pki/ca.key', 'data/control/pki/token.key'])
      assert.equal((statSync(join(disk, key)).mode & 0o7777).toString(8), '600', key)
  } finally {
    assert.equal(await container.stop(), 0)
  }

  await run('upgrade', ...install, '--set=fullnameOverride=portcullis', '--set=podAnnotations.changed=yes')
  await podsReady(EDGE, 1)
  assert.deepEqual(await uids('pvc', '-n', EDGE), claims)
  await run('uninstall', 'edge', '--namespace', EDGE, '--wait')
  assert.deepEqual(await uids('pvc', '-n', EDGE), claims)
})
