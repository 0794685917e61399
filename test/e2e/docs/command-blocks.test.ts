// Every command block of the README and of docs/, in the order in which a reader meets them, on real clusters: the README, then the pages
// in the order in which it names them. A page goes on where the README has ended: with its gateway running, and its KUBECONFIG.

import assert from 'node:assert/strict'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { toBase64 } from '../../../src/kit/core/text/base64.ts'
import { binaries } from '../../harness/binaries.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type CommandBlock, commandBlocks, portcullisCommand, ReaderShell } from '../../harness/docs/command-blocks.ts'
import { freePorts } from '../../harness/ports.ts'
import { waitFor } from '../../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort((a, b) => README.indexOf(a) - README.indexOf(b)),
]

let folder: string
/** The reader's directory: what a checkout has, and the files that the pages name. */
let cwd: string
let home: string
let cluster: TestCluster
let env: Record<string, string>
let shell: ReaderShell
let pod: string
const standIns = new Map<string, string>()

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-docs-'))
  cwd = join(folder, 'checkout')
  home = join(folder, 'home')
  const bin = join(folder, 'bin')
  for (const dir of [cwd, home, bin, join(home, '.kube'), join(folder, 'backup'), join(folder, 'elsewhere')])
    mkdirSync(dir)
  cluster = await startCluster({
    name: 'worker',
    controllerManager: true,
    scheduler: true,
    kwok: true,
    nodes: 2,
  })
  // What the pages tell the reader to apply must be what makes it work.
  await kubectlInWorker('delete', '-f', join(ROOT, 'deploy/rbac/upstream-gateway-user.yaml'))
  await cluster.apply(WORKLOAD)
  pod = await waitFor('twelve ready pods', readyPod, { timeoutMs: 120_000 })
  const [port = 0, controlPort = 0] = await freePorts(2)
  standIns.set('GATEWAY', `${ownAddress()}:${port}`).set('POD', pod)
  standIns.set('LOCALHOST', 'localhost').set('STORE', join(cwd, 'data/control/objects.db'))
  // There are twelve, and PodProtector web lets three of them go.
  standIns.set('REPLICAS', '10')
  standIns.set('BACKUP', join(folder, 'backup')).set('ELSEWHERE', join(folder, 'elsewhere'))
  writeFileSync(join(bin, 'portcullis'), portcullisCommand(pidFile()))
  chmodSync(join(bin, 'portcullis'), 0o755)
  symlinkSync(bin, join(cwd, 'bin'))
  for (const name of ['deploy', 'config', 'docs']) symlinkSync(join(ROOT, name), join(cwd, name))
  env = {
    PATH: `${dirname((await binaries()).kubectl)}:${bin}:${process.env['PATH']}`,
    DOCS_PORT: String(port),
    DOCS_CONTROL_PORT: String(controlPort),
    // Commands in the editor are not run.
    KUBE_EDITOR: 'true',
  }
  writeReadersFiles()
  shell = new ReaderShell({ cwd, home, env })
})

after(async () => {
  shell.end()
  try {
    process.kill(Number(readFileSync(pidFile(), 'utf8')), 'SIGKILL')
  } catch {
    // It never started, or has ended.
  }
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The address of the machine, as users would name it; connections to it stay on the machine. Loopback where it has no other. */
function ownAddress(): string {
  const infos = Object.values(networkInterfaces()).flatMap((all = []) => all)
  return infos.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
}

function pidFile(): string {
  return join(folder, 'serve.pid')
}

async function kubectlInWorker(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args)
  assert.equal(code, 0, stderr)
  return stdout
}

async function readyPod(): Promise<string | undefined> {
  const ready = await kubectlInWorker(
    'get',
    'deployment',
    'web',
    '-n',
    'shop',
    '-o',
    'jsonpath={.status.readyReplicas}',
  )
  if (ready !== '12') return undefined
  return await kubectlInWorker('get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'jsonpath={.items[0].metadata.name}')
}

const WORKLOAD = `---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: docs-view }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects:
  - { apiGroup: rbac.authorization.k8s.io, kind: User, name: alice }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 12
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: 'registry.example.com/web:1' }] }
`

/** What the pages take for granted that the reader has. */
function writeReadersFiles(): void {
  const write = (name: string, text: string): void => writeFileSync(resolve(cwd, name), text, { mode: 0o600 })
  const worker = readFileSync(cluster.adminKubeconfig, 'utf8')
  for (const name of ['control.kubeconfig', 'worker.kubeconfig', 'kubegateway.kubeconfig']) write(name, worker)
  write(join(home, '.kube/config'), worker)
  const named = (text: string): string => text.replaceAll(/\btest\b/g, 'prod')
  const gatewayUser = readFileSync(cluster.kubeconfigFor({ cert: cluster.gatewayUser.cert }), 'utf8')
  write('prod.kubeconfig', named(gatewayUser))
  const whole = upstreamClusterFor(cluster, { name: 'prod' })
  const { servers, dispatchPolicies } = whole.spec
  // As `import kubeconfig` has named them.
  const at = (key: string): object => ({ namespace: 'portcullis-system', name: 'prod-upstream', key })
  const clientConfig = { caRef: at('ca.crt'), certRef: at('tls.crt'), keyRef: at('tls.key') }
  write('prod.yaml', JSON.stringify({ ...whole, spec: { servers, clientConfig, dispatchPolicies } }))
  mkdirSync(join(cwd, 'clusters'))
  write('clusters/prod.yaml', JSON.stringify(whole))
  // KubeGateway verifies the apiservers for the name of the UpstreamCluster, unless it is told another one.
  const legacy = upstreamClusterFor(cluster, { name: 'legacy' })
  const withName = { ...legacy.spec.clientConfig, serverName: 'localhost' }
  write('kubegateway.yaml', JSON.stringify({ ...legacy, spec: { ...legacy.spec, clientConfig: withName } }))
  // The kubeconfig of the cluster that holds the objects as CRDs.
  write(join(home, 'operator.kubeconfig'), worker)
  write('access.log', `${JSON.stringify({ user: 'alice', verb: 'list', resource: 'pods' })}\n`)
  write('mallory.crt', cluster.clientCertificate('mallory').certPem)
  write('stolen.token', 'token-of-mallory')
  const { certPem, keyPem } = cluster.clientCertificate('alice')
  const certificate = { 'client-certificate-data': toBase64(certPem), 'client-key-data': toBase64(keyPem) }
  const users = [{ name: 'alice', user: certificate }]
  write(join(home, 'alice.kubeconfig'), stringify({ apiVersion: 'v1', kind: 'Config', users }))
}

async function runBlock(block: CommandBlock): Promise<string> {
  let { text } = block
  for (const [placeholder, name] of block.standIns) {
    const value = standIns.get(name)
    assert.ok(value !== undefined, `${block.place}: nothing stands in as ${name}`)
    text = text.replaceAll(placeholder, value)
  }
  if (block.apart) text = `export DOCS_APART=1\n${text}\nunset DOCS_APART`
  if (block.user === '') return await shell.run(text)
  const own = new ReaderShell({ cwd, home, env: { ...env, KUBECONFIG: join(home, `${block.user}.kubeconfig`) } })
  try {
    return await own.run(text)
  } finally {
    own.end()
  }
}

const READY_SINCE = '{.items[*].status.conditions[?(@.type=="Ready")].lastTransitionTime}'

/** What else has to be so at a block before it runs: a reader of that page has it. */
const BEFORE: Readonly<Record<string, () => Promise<void>>> = {
  // The operator of the gateway gives it to the users.
  'config set-cluster prod': async () => copyFileSync(join(cwd, 'data/pki/ca.crt'), join(cwd, 'gateway-ca.crt')),
  'other.kubeconfig': async () => {
    // Another API server with the same kinds: CRDs, which the README's --source kubernetes has installed in this cluster.
    writeFileSync(join(cwd, 'other.kubeconfig'), readFileSync(cluster.adminKubeconfig))
  },
  'team-a': async () => {
    await shell.run('kubectl create namespace team-a')
    await shell.run('kubectl create secret generic prod-gateway -n team-a --from-literal=token=x')
  },
  // A reader's pods have been ready for longer than minReadySeconds (15 s) and what clocks may differ.
  'config/protectors/web.yaml': async () => {
    await waitFor('twelve pods that have been ready for 25 s', async () => {
      const times = await kubectlInWorker('get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', `jsonpath=${READY_SINCE}`)
      return times.split(' ').every((since) => Date.now() - Date.parse(since) > 25_000)
    })
  },
  // A reader of that page has applied what it says.
  'scale why deployment/web -n shop --replicas 2 --cluster': async () => {
    await kubectlInWorker('apply', '-f', join(ROOT, 'deploy/rbac/scale-worker.yaml'))
  },
  'import kubegateway': async () => {
    // The same cluster is the control plane of a KubeGateway: with what a KubeGateway has, and nothing else.
    await kubectlInWorker('delete', 'upstreamclusters', '--all')
    await cluster.apply(readFileSync(join(cwd, 'kubegateway.yaml'), 'utf8'))
    rmSync(join(cwd, 'objects'), { recursive: true, force: true })
  },
}

for (const page of PAGES) {
  for (const block of commandBlocks(page, readFileSync(join(ROOT, page), 'utf8'))) {
    test(`${block.place}: ${block.text.split('\n')[0]}`, { skip: block.skipped || false }, async () => {
      for (const [has, prepare] of Object.entries(BEFORE)) if (block.text.includes(has)) await prepare()
      await runBlock(block)
    })
  }
}
