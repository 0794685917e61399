// kubectl through the gateway equals kubectl direct: what it prints and its exit code, command by command.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { kubeconfigThrough, type ThroughOptions, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { kubectl } from '../harness/kubectl/kubectl.ts'
import { assertParity, normalise, type Scenario, Side } from '../harness/kubectl/parity.ts'
import { clientCertificate } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const FIXTURE = 'fixture'
/** Commands at once in the parallel test. */
const PARALLEL = 40
/** A kubectl that is older than the cluster, where the machine has one. */
const OLDER_KUBECTL = '/usr/bin/kubectl'

let cluster: TestCluster
let gateway: TestGateway
let olga: Credentials
let rightless: Credentials
let robot: Credentials
/** Direct and through the gateway: a certificate by host name, a ServiceAccount's token by path. */
const sides: Side[] = []
let pairs: readonly (readonly [Side, Side])[]

before(async () => {
  const components = { controllerManager: true, scheduler: true, kwok: true, kubelet: true }
  cluster = await startCluster({ apiservers: 2, nodes: 2, ...components })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
  olga = { cert: cluster.clientCertificate('olga', ['site reliability', 'team b']) }
  await cluster.apply(fixture())
  await succeed('-n', FIXTURE, 'rollout', 'status', 'deployment/web')
  robot = { token: (await succeed('-n', FIXTURE, 'create', 'token', 'robot')).trim() }
  rightless = { cert: cluster.clientCertificate('rightless <&> "ü"', ['nothing']) }
  pairs = [await pairOf('a', olga, {}), await pairOf('b', robot, { path: true })]
})
after(async () => {
  for (const side of sides) side.forget()
  await gateway?.stop()
  await cluster?.stop()
})

async function succeed(...args: string[]): Promise<string> {
  const result = await cluster.kubectl(args)
  assert.equal(result.code, 0, `kubectl ${args.join(' ')}: ${result.stderr}`)
  return result.stdout
}

/** Two sides of one user, each with a namespace of its own. */
async function pairOf(
  name: string,
  user: Credentials,
  way: ThroughOptions,
  program?: string,
): Promise<readonly [Side, Side]> {
  const how = program === undefined ? {} : { program }
  const direct = new Side({ name: `side-${name}0`, kubeconfig: cluster.kubeconfigFor(user), ...how })
  const kubeconfig = await kubeconfigThrough(gateway, cluster, user, way)
  const through = new Side({ name: `side-${name}1`, kubeconfig, ...how })
  for (const side of [direct, through]) await succeed('create', 'namespace', side.name)
  sides.push(direct, through)
  return [direct, through]
}

function fixture(): string {
  const configMaps = Array.from({ length: 10 }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `map-${i}`, namespace: FIXTURE, labels: { half: i < 5 ? 'first' : 'second' } },
    data: { index: String(i), text: 'jürgen ☃\n' },
  }))
  const meta = (name: string, more: object = {}): object => ({ name, namespace: FIXTURE, ...more })
  const labels = { app: 'web' }
  const container = { name: 'web', image: 'web:1', ports: [{ containerPort: 80 }] }
  const bind = (name: string, subject: object): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [subject],
  })
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: FIXTURE } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta('robot') },
    bind('olga', { kind: 'Group', name: 'site reliability' }),
    bind('robot', { kind: 'ServiceAccount', name: 'robot', namespace: FIXTURE }),
    ...configMaps,
    { apiVersion: 'v1', kind: 'Secret', metadata: meta('secret'), stringData: { password: 'x' } },
    { apiVersion: 'v1', kind: 'Service', metadata: meta('web'), spec: { selector: labels, ports: [{ port: 80 }] } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: meta('web', { labels }),
      spec: {
        replicas: 3,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    },
  ]
  return objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('')
}

/** Reads of what does not change. */
const READS: readonly string[] = [
  'version',
  'version -o yaml',
  'cluster-info',
  'api-versions',
  'api-resources',
  'api-resources -o wide --sort-by=name',
  'api-resources --namespaced=false --api-group=rbac.authorization.k8s.io',
  'get pods',
  'get pods -o wide',
  'get pods -o yaml',
  'get pods -o json',
  'get pods -o name',
  'get pods -o jsonpath={.items[*].spec.nodeName}',
  'get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName',
  'get pods --show-labels --sort-by=.metadata.name',
  'get pods,services,deployments,replicasets -l app=web',
  'get pods --field-selector=status.phase=Pending',
  'get pods -A',
  'get all',
  'get configmaps -l half=second,!app',
  'get configmaps -l half!=second',
  'get configmaps --chunk-size=3',
  'get configmaps --chunk-size=3 -o yaml',
  'get configmap map-3 -o yaml --show-managed-fields',
  'get configmaps map-1 map-2 map-9 -o json',
  'get deployment/web service/web -o yaml',
  'get deployment web --subresource=scale -o yaml',
  'get endpoints',
  'get componentstatuses etcd-0',
  'get nodes -o wide',
  'get namespaces',
  'get crd',
  'get --raw /version',
  'get --raw /api/v1/namespaces/fixture/configmaps/map-1',
  'get --raw /api/v1/namespaces/fixture/configmaps?limit=2',
  'get --raw /readyz?verbose',
  'get --raw /openapi/v3',
  'describe deployment web',
  'describe pods --show-events=false',
  'describe configmap map-3',
  'describe service,secret',
  'describe namespace fixture',
  'describe node --show-events=false',
  'explain pods.spec.containers.ports',
  'explain deployments --recursive',
  'explain hpa --api-version=autoscaling/v2 --output=plaintext-openapiv2',
  'rollout status deployment/web',
  'rollout history deployment/web',
  'wait pod --for=condition=Ready -l app=web --timeout=30s',
  'wait deployment/web --for=jsonpath={.status.readyReplicas}=3',
  'logs deployment/web',
  'auth whoami',
  'auth whoami -o yaml',
  'auth can-i create pods',
  'auth can-i --list',
]

/** Reads that end in an error. */
const REFUSED_READS: readonly string[] = [
  'get configmap missing',
  'get pods missing missing-too map-1',
  'get nothings',
  'get pods --field-selector=spec.color=red',
  'get pods -l !!',
  'get --raw /api/v1/nothings',
  'get --raw /apis/nobody.example.com/v1',
  'get --raw /api/v1/namespaces/fixture/configmaps?limit=2&continue=broken',
  'explain pods.spec.color',
  'describe configmap missing',
  'logs missing',
  'top pods',
  'auth can-i create pods --as=somebody',
  'wait deployment/web --for=condition=Unheard --timeout=0',
]

const MINIMAL_NODE = { apiVersion: 'v1', kind: 'Node' }

function configMap(data: Record<string, string>, more: object = {}): { stdin: string } {
  const metadata = { name: 'kept', ...more }
  return { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }) }
}

const writes: Scenario = async (side) => {
  await side.ok('create configmap plain --from-literal=a=1')
  await side.fails('create configmap plain --from-literal=a=1')
  await side.ok('create configmap dry --from-literal=a=1 --dry-run=server -o yaml')
  await side.fails('get configmap dry')
  await side.fails('create -f -', configMap({}, { name: 'Not A Name' }))
  await side.fails('create -f -', {
    stdin: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"color":"red"}',
  })
  await side.fails('create -f -', { stdin: '{"apiVersion":"v1","kind":"Unheard","metadata":{"name":"x"}}' })

  await side.ok('apply -f -', configMap({ a: '1' }))
  await side.ok('diff -f -', configMap({ a: '1' }))
  await side.ok('diff -f -', configMap({ a: '2' }))
  await side.ok('apply -f -', configMap({ a: '2', b: '2' }))
  await side.ok('apply -f -', configMap({ a: '2', b: '2' }))
  await side.ok('apply -f - --dry-run=server -o yaml', configMap({ b: '3' }))
  await side.ok('apply view-last-applied configmap kept')
  await side.ok('apply --server-side --field-manager=first -f -', configMap({ c: '3' }))
  await side.fails('apply --server-side --field-manager=second -f -', configMap({ c: '4' }))
  await side.ok('apply --server-side --field-manager=second --force-conflicts -f -', configMap({ c: '4' }))
  await side.fails('apply -f -', configMap({}, { resourceVersion: '1' }))
  await side.ok('get configmap kept -o yaml --show-managed-fields')

  await side.ok('patch configmap kept -p {"data":{"p":"strategic"}}')
  await side.ok('patch configmap kept --type=merge -p {"data":{"p":null,"q":"merge"}} -o yaml')
  await side.ok('patch configmap kept --type=json -p [{"op":"replace","path":"/data/q","value":"json"}]')
  await side.ok('patch configmap kept --type=merge -p {"data":{"q":"json"}}')
  await side.fails('patch configmap kept --type=json -p [{"op":"test","path":"/data/q","value":"other"}]')
  await side.fails('patch configmap missing -p {}')
  await side.ok('label configmap kept color=red')
  await side.fails('label configmap kept color=blue')
  await side.ok('label configmap kept color=blue --overwrite')
  await side.ok('label configmap kept color-')
  await side.ok('annotate configmap kept example.com/text=ürgh☃')
  await side.ok('edit configmap kept', { env: { KUBE_EDITOR: 'sed -i s/json/edited/' } })
  await side.ok('edit configmap kept', { env: { KUBE_EDITOR: 'true' } })
  await side.ok('get configmap kept -o jsonpath={.data}{.metadata.annotations}{.metadata.labels}')
  await side.ok('replace -f -', configMap({ only: 'this' }))
  await side.fails('replace -f -', configMap({}, { resourceVersion: '1' }))
  await side.fails('replace -f -', configMap({}, { name: 'missing' }))
  await side.ok('replace --force -f -', configMap({ only: 'that' }))
  await side.ok('delete configmap kept plain')
  await side.fails('delete configmap kept')
  await side.ok('delete configmap kept --ignore-not-found')
}

const workloads: Scenario = async (side) => {
  const ready = (count: number): Promise<void> =>
    side.until(
      'get deployment web -o jsonpath={.status.readyReplicas}/{.status.replicas}',
      new RegExp(`^${count}/${count}$`),
    )
  await side.ok('create deployment web --image=web:1 --replicas=2')
  await side.ok('wait deployment/web --for=condition=Available --timeout=60s')
  await ready(2)
  await side.ok('rollout status deployment/web')
  await side.ok('scale deployment web --replicas=3')
  await side.fails('scale deployment web --current-replicas=7 --replicas=1')
  await ready(3)
  await side.ok('get pods -l app=web')
  await side.ok('expose deployment web --port=80')
  await side.ok('autoscale deployment web --min=1 --max=5 --cpu=80%')
  await side.ok('set image deployment/web web=web:2')
  await side.ok('set env deployment/web COLOR=red')
  await side.ok('rollout pause deployment/web')
  await side.fails('rollout pause deployment/web')
  await side.ok('rollout resume deployment/web')
  await side.ok('rollout history deployment/web')
  await side.ok('run single --image=single:1 --labels=app=single')
  await side.ok('wait pod/single --for=condition=Ready --timeout=60s')
  await side.ok('exec single -- echo hello')
  await side.fails('exec single -- sh -c exit$IFS"7"')
  await side.fails('patch pod single -p {"spec":{"nodeName":"elsewhere"}}')
  await side.ok('delete pod single')
  await side.ok('delete deployment web --cascade=orphan')
  await side.ok('delete replicasets,hpa,services --all --cascade=foreground')
  await side.ok('create serviceaccount robot')
  await side.ok('create role reader --verb=get,list --resource=pods')
  await side.ok('create rolebinding reader --role=reader --serviceaccount=default:robot')
  await side.ok('auth reconcile -f - --dry-run=client', {
    stdin: '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[]}',
  })
  await side.ok('create quota none --hard=secrets=0')
  await side.until('get quota none -o jsonpath={.status.used.secrets}', /0/)
  await side.fails('create secret generic one')
  await side.ok(`create namespace more-of-${side.name}`)
  await side.ok(`delete namespace more-of-${side.name}`)
}

const nodes: Scenario = async (side) => {
  const node = `node-of-${side.name}`
  const taints = [{ key: 'owner', value: side.name, effect: 'NoSchedule' }]
  const body = { ...MINIMAL_NODE, metadata: { name: node }, spec: { taints } }
  await side.ok('create -f -', { stdin: JSON.stringify(body) })
  await side.ok(`wait node/${node} --for=condition=Ready --timeout=60s`)
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'placed', namespace: side.name } }
  const spec = { nodeName: node, containers: [{ name: 'c', image: 'c:1' }] }
  await side.ok('create -f -', { stdin: JSON.stringify({ ...pod, spec }) })
  await side.ok(`wait pod/placed --for=condition=Ready --timeout=60s`)
  await side.ok(`taint node ${node} color=red:NoSchedule`)
  await side.fails(`taint node ${node} color=blue:NoSchedule`)
  await side.ok(`taint node ${node} color-`)
  await side.ok(`label node ${node} rack=7`)
  await side.ok(`cordon ${node}`)
  await side.ok(`cordon ${node}`)
  await side.fails(`drain ${node}`)
  await side.ok(`drain ${node} --force --dry-run=server`)
  await side.ok(`drain ${node} --force`)
  await side.ok(`uncordon ${node}`)
  await side.ok(`delete node ${node}`)
}

const watching: Scenario = async (side) => {
  const all = await side.start('get configmaps --watch -o custom-columns=N:.metadata.name,D:.data')
  await all.output(/kube-root-ca/)
  await side.ok('create configmap watched --from-literal=a=1')
  await all.output(/watched +map\[a:1\]/)
  await side.ok('patch configmap watched --type=merge -p {"data":{"a":"2"}}')
  await all.output(/watched +map\[a:2\]/)
  await side.ok('delete configmap watched')
  await all.output(/(watched +map\[a:2\]\n){2}/)
  await side.ended(all)

  const events = await side.start('get configmaps -l seen=yes --watch-only --output-watch-events')
  await side.ok('create configmap watched')
  // It begins when it begins, perhaps between the two changes: only what comes after that is announced.
  await waitFor('the first events', async () => {
    await cluster.kubectl(['-n', side.name, 'label', 'configmap', 'watched', 'seen=yes'])
    await cluster.kubectl(['-n', side.name, 'label', 'configmap', 'watched', 'seen-'])
    return /ADDED.*DELETED/s.test(events.stdout())
  })
  assert.match(events.stdout(), /^EVENT +NAME +DATA +AGE\n(DELETED +watched .*\n)?ADDED +watched/)
  await events.stop()
}

const refusals: Scenario = async (side) => {
  await side.fails('get pods')
  await side.fails('get pods -A')
  await side.fails('get nodes -o yaml')
  await side.fails('get pods --watch')
  await side.fails('create configmap x')
  await side.fails('delete configmap x')
  await side.fails('delete configmaps --all')
  await side.fails('patch configmap x -p {}')
  await side.fails('apply -f -', configMap({}))
  await side.fails('apply --server-side -f -', configMap({}))
  await side.fails('scale deployment web --replicas=1')
  await side.fails('exec web -- true')
  await side.fails('logs web')
  await side.fails('port-forward web 80')
  await side.fails('get --raw /metrics')
  await side.fails('get pods --as-group=system:masters')
  await side.fails('auth can-i get pods')
  await side.ok('auth can-i --list')
  await side.ok('auth whoami -o json')
}

const impersonations: Scenario = async (side) => {
  const whoami = 'auth whoami -o json'
  await side.ok(`${whoami} --as=jane`)
  await side.ok([...whoami.split(' '), '--as=jane, ü/100%', '--as-group=team a', '--as-group=b,c', '--as-uid=4 2'])
  await side.ok(`${whoami} --as=system:serviceaccount:fixture:robot`)
  await side.fails(`${whoami} --as=system:anonymous`)
  await side.fails(`${whoami} --as=jane --as-group=system:unauthenticated`)
  await side.fails('get pods --as=jane')
  await side.ok('get configmaps --as=jane --as-group=system:masters')
  await side.fails('get pods --as-uid=7')
  await side.fails('auth can-i create pods --as=jane')
  await side.ok('auth can-i create pods --as=jane --as-group=system:masters')
}

const shortSession: Scenario = async (side) => {
  await side.ok('version')
  await side.ok('get pods', { namespace: FIXTURE })
  await side.ok('create configmap short --from-literal=a=1')
  await side.ok('apply -f -', configMap({ a: '1' }))
  await side.ok('apply --server-side --force-conflicts -f -', configMap({ a: '2' }))
  await side.ok('get configmaps -o yaml')
  await side.ok('explain pods.spec')
  await side.ok('auth whoami -o json')
  await side.fails('get configmap missing')
  await side.ok('exec deployment/web -- echo hello', { namespace: FIXTURE })
  await side.ok('logs deployment/web', { namespace: FIXTURE })
  await side.ok('delete configmap kept')
}

describe('kubectl through the gateway equals kubectl direct', () => {
  test('reads', () =>
    assertParity(pairs, async (side) => {
      for (const command of READS) await side.ok(command, { namespace: FIXTURE })
      for (const command of REFUSED_READS) await side.fails(command, { namespace: FIXTURE })
    }))
  test('writes', () => assertParity(pairs, writes))
  test('workloads', () => assertParity(pairs, workloads))
  test('nodes: taint, cordon, drain', () => assertParity(pairs, nodes))
  test('get --watch', () => assertParity(pairs, watching))
  test('--as, by users who may', () => assertParity(pairs, impersonations))

  test('a user without rights', async () => {
    await assertParity([await pairOf('c', rightless, {})], refusals)
  })

  test('--as, by a user who may not', async () => {
    const ways = [cluster.kubeconfigFor(rightless), await kubeconfigThrough(gateway, cluster, rightless)]
    const get = ['get', '--raw', '/api/v1/namespaces/default/pods']
    for (const kubeconfig of ways) {
      for (const asked of [
        '--as=olga',
        '--as=system:serviceaccount:fixture:robot',
        '--as=x --as-group=system:masters',
      ]) {
        const { code, stderr } = await cluster.kubectl([...get, ...asked.split(' ')], { kubeconfig })
        assert.equal(code, 1)
        // From 1.36 on the apiserver's own message is about a mode of constrained impersonation.
        assert.match(stderr, /^Error from server \(Forbidden\): .* is forbidden: User "rightless .* cannot impersonate/)
      }
    }
  })

  test('bad tokens, a certificate of another CA', async () => {
    const stranger = { cert: clientCertificate(createCA({ commonName: 'strangers' }), { commonName: 'olga' }) }
    const users: readonly Credentials[] = [{ token: 'unknown' }, { token: 'a.b.c' }, stranger]
    const unknown = await Promise.all(users.map((user, i) => pairOf(`${'def'[i]}`, user, { path: i % 2 === 1 })))
    await assertParity(unknown, async (side) => {
      await side.fails('get pods')
      await side.fails('apply -f -', configMap({}))
      await side.fails('auth whoami')
      await side.fails('exec web -- true')
    })
  })

  test('a token bound to a pod', async () => {
    await succeed('-n', FIXTURE, 'run', 'holder', '--image=x', '--overrides={"spec":{"serviceAccountName":"robot"}}')
    const bound = ['create', 'token', 'robot', '--bound-object-kind=Pod', '--bound-object-name=holder']
    const user = { token: (await succeed('-n', FIXTURE, ...bound)).trim() }
    await assertParity([await pairOf('h', user, {})], shortSession)
  })

  test('an older kubectl', { skip: !existsSync(OLDER_KUBECTL) && 'none on this machine' }, async () => {
    await assertParity([await pairOf('i', olga, {}, OLDER_KUBECTL)], shortSession)
  })

  test(`${PARALLEL} at once`, async () => {
    const commands = ['get pods -o wide', 'get configmaps -o yaml', 'describe deployment web', 'explain pods.spec']
    commands.push('auth whoami -o json', 'auth can-i --list', 'get missing', 'logs deployment/web')
    const play = (kubeconfig: string, command: string): Promise<string> =>
      kubectl(['-n', FIXTURE, ...command.split(' ')], { kubeconfig }).then(({ code, stdout, stderr }) =>
        normalise(`${code}\n${stdout}\n${stderr}`),
      )
    const direct = cluster.kubeconfigFor(olga)
    const wanted = await Promise.all(commands.map((command) => play(direct, command)))
    const through = await kubeconfigThrough(gateway, cluster, olga)
    const byPath = await kubeconfigThrough(gateway, cluster, olga, { path: true })
    const got = await Promise.all(
      Array.from({ length: PARALLEL }, (_, i) =>
        play(i % 3 === 0 ? byPath : through, commands[i % commands.length] ?? ''),
      ),
    )
    for (const [i, text] of got.entries()) assert.equal(text, wanted[i % commands.length])
    await gateway.logged((line) => line['user'] === 'olga', PARALLEL)
  })
})
