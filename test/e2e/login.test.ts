// Clients with `portcullis login` as their credential plugin, through the gateway, at a real kube-apiserver that trusts the same OpenID provider: kubectl,
// client-go and the official client for Python.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse, stringify } from 'yaml'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { execUser } from '../../src/login/core/exec-credential.ts'
import { DEFAULT_REDIRECT } from '../../src/login/core/login-spec.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { startInformers } from '../harness/informers/informers.ts'
import { startLineProgram } from '../harness/line-program.ts'
import { gatewayCA } from '../harness/pki.ts'
import { MAIN } from '../harness/program.ts'
import { pythonWith } from '../harness/python/python.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import { waitFor } from '../harness/wait.ts'

const PEOPLE = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] },
  bob: { email: 'bob@example.com', email_verified: true, groups: ['support'] },
}
const BROWSE = join(import.meta.dirname, '../harness/servers/browse.ts')
const PODS = join(import.meta.dirname, '../harness/python/pods.py')
/** A tenth of it is what the plugin leaves a client to use a token: enough for a busy machine. */
const SHORT_SECONDS = 20

let issuer: OidcIssuer
/** Another provider, whose tokens expire soon. */
let shortIssuer: OidcIssuer
let cluster: TestCluster
let gateway: TestGateway
/** Its users log in at `shortIssuer`. */
let shortLived: UpstreamCluster

before(async () => {
  issuer = await startOidcIssuer({ people: PEOPLE })
  shortIssuer = await startOidcIssuer({ people: PEOPLE, idTokenTtl: SHORT_SECONDS })
  cluster = await startCluster({
    extraApiserverFlags: [
      `--oidc-issuer-url=${issuer.url}`,
      `--oidc-client-id=${OIDC_CLIENT}`,
      '--oidc-username-claim=email',
      '--oidc-groups-claim=groups',
      `--oidc-ca-file=${issuer.caFile}`,
    ],
  })
  shortLived = byIssuer('short-lived', shortIssuer)
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster), byIssuer('by-issuer', issuer), shortLived] })
  for (const line of [
    'clusterrole reader --verb=list,watch --resource=pods,namespaces',
    'clusterrolebinding sre --clusterrole=reader --group=sre',
    'namespace shop',
    'namespace payroll',
    'serviceaccount default --namespace=shop',
    'role helper --namespace=shop --verb=list --resource=pods',
    'rolebinding support --namespace=shop --role=helper --group=support',
  ]) {
    const created = await cluster.kubectl(['create', ...line.split(' ')])
    assert.equal(created.code, 0, created.stderr)
  }
  await createPod('counter')
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  await issuer?.stop()
  await shortIssuer?.stop()
})

/** The same cluster, with users whose tokens the gateway verifies: their prefix is that of its mapping alone. */
function byIssuer(name: string, { url, caFile }: OidcIssuer): UpstreamCluster {
  const jwt = [
    {
      issuer: { url, audiences: [OIDC_CLIENT], certificateAuthority: readFileSync(caFile, 'utf8') },
      claimMappings: { username: { claim: 'email', prefix: 'company:' }, groups: { claim: 'groups', prefix: '' } },
    },
  ]
  return upstreamClusterFor(cluster, { name, spec: { authentication: { jwt } } })
}

async function createPod(name: string): Promise<void> {
  const spec = { containers: [{ name: 'main', image: 'example.com/main' }] }
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec }))
}

function writeScript(file: string, line: string): string {
  writeFileSync(file, `#!/bin/sh\n${line}\n`)
  chmodSync(file, 0o755)
  return file
}

/** Flags of `portcullis login`: a browser opens, and logs in. */
function byBrowser({ url, caFile }: OidcIssuer): readonly string[] {
  const line = `exec '${process.execPath}' '${BROWSE}' '${caFile}' "$1"`
  const command = writeScript(join(cluster.dir, `browser-${new URL(url).port}`), line)
  return ['--flow=browser', `--browser-command=${command}`]
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** In parallel to this test, which is the provider. */
function run(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(program, args)
    const [stdout, stderr]: [string[], string[]] = [[], []]
    child.stdout.on('data', (chunk) => void stdout.push(String(chunk)))
    child.stderr.on('data', (chunk) => void stderr.push(String(chunk)))
    child.once('close', (code) => resolve({ code, stdout: stdout.join(''), stderr: stderr.join('') }))
  })
}

interface UserOptions {
  readonly user: string
  readonly tokenDir: string
  /** Name of the UpstreamCluster. Default: the one without issuers. */
  readonly name?: string
}

/** A kubeconfig through the gateway whose user is the plugin. */
async function pluginKubeconfig({ user, tokenDir, name = cluster.name }: UserOptions): Promise<string> {
  const file = await kubeconfigThrough(gateway, cluster, {}, { path: true, name })
  const args = [
    ...[MAIN, 'login', `--issuer=${issuer.url}`, `--client-id=${OIDC_CLIENT}`, `--issuer-ca-file=${issuer.caFile}`],
    ...[`--auth-param=login_hint=${user}`, `--token-dir=${tokenDir}`, '--timeout=2m', ...byBrowser(issuer)],
  ]
  const apiVersion = 'client.authentication.k8s.io/v1'
  const exec = { apiVersion, command: process.execPath, args, interactiveMode: 'IfAvailable' }
  const config = parse(readFileSync(file, 'utf8'))
  config.users[0].user = { exec }
  writeFileSync(file, stringify(config))
  return file
}

function requestsOf({ requests }: OidcIssuer): { readonly logins: number; readonly tokens: number } {
  return { logins: requests.get('/auth') ?? 0, tokens: requests.get('/token') ?? 0 }
}

interface CompanyOptions {
  readonly user: string
  readonly provider: OidcIssuer
  readonly object: UpstreamCluster
  /** For which clusters: the name, or `--all`. */
  readonly of: string
}

interface LoggedIn {
  readonly plugin: string
  readonly kubeconfig: string
  /** How often a client has started the plugin. */
  runs(): number
  /** Waits until the token that there is now has expired. */
  expired(): Promise<void>
}

/** A kubeconfig that operators have made with `portcullis kubeconfig`, and a user of it who has logged in. */
async function loggedIn({ user, provider, object, of }: CompanyOptions): Promise<LoggedIn> {
  const home = mkdtempSync(join(cluster.dir, 'home-'))
  const objects = mkdtempSync(join(cluster.dir, 'objects-'))
  writeFileSync(join(objects, 'cluster.yaml'), JSON.stringify(object), { mode: 0o600 })
  const started = join(home, 'started')
  const line = `echo "$1" >> '${started}'; HOME='${home}' exec '${process.execPath}' '${MAIN}' "$@"`
  const plugin = writeScript(join(home, 'portcullis'), line)
  const caFile = join(home, 'gateway-ca.crt')
  writeFileSync(caFile, gatewayCA().certPem)
  const made = await run(plugin, [
    ...['kubeconfig', of, `--config-dir=${objects}`, `--server=https://127.0.0.1:${gateway.port}`],
    ...[`--ca-file=${caFile}`, `--login-issuer=${provider.url}`, `--login-client-id=${OIDC_CLIENT}`],
    ...[`--login-command=${plugin}`, `--login-auth-param=login_hint=${user}`],
    `--login-issuer-ca-file=${provider.caFile}`,
  ])
  assert.equal(made.code, 0, made.stderr)
  const kubeconfig = join(home, 'company.kubeconfig')
  writeFileSync(kubeconfig, made.stdout)
  const { code, stderr } = await run(plugin, [...parse(made.stdout).users[0].user.exec.args, ...byBrowser(provider)])
  assert.equal(code, 0, stderr)
  const whoami = ['auth', 'whoami', '--context', object.metadata.name]
  await waitFor('the keys of the issuer', async () => (await cluster.kubectl(whoami, { kubeconfig })).code === 0)
  const runs = (): number => readFileSync(started, 'utf8').match(/^login$/gm)?.length ?? 0
  const tokenDir = join(home, '.kube/cache/portcullis-login')
  const expired = async (): Promise<void> => {
    const [file = ''] = readdirSync(tokenDir).filter((name) => name.endsWith('.json'))
    const { expiresAtMs } = JSON.parse(readFileSync(join(tokenDir, file), 'utf8'))
    await sleep(Math.max(0, expiresAtMs - Date.now()))
  }
  return { plugin, kubeconfig, runs, expired }
}

test('kubectl logs in by the browser, and is who the provider says, through the gateway', async () => {
  const kubeconfig = await pluginKubeconfig({ user: 'alice', tokenDir: join(cluster.dir, 'alice') })
  const whoami = await cluster.kubectl(['auth', 'whoami', '-o', 'json'], { kubeconfig })
  assert.equal(whoami.code, 0, whoami.stderr)
  const { username, groups } = JSON.parse(whoami.stdout).status.userInfo
  assert.deepEqual([username, groups], ['alice@example.com', ['sre', 'system:authenticated']])
  // The next command has the token in its file.
  const logins = issuer.requests.get('/auth')
  const pods = await cluster.kubectl(['get', 'pods', '-A'], { kubeconfig })
  assert.equal(pods.code, 0, pods.stderr)
  assert.equal(issuer.requests.get('/auth'), logins)
})

test('a cluster whose tokens the gateway verifies itself, by its issuers', async () => {
  const kubeconfig = await pluginKubeconfig({ user: 'alice', tokenDir: join(cluster.dir, 'alice'), name: 'by-issuer' })
  const whoami = async (): Promise<string> =>
    (await cluster.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'], { kubeconfig })).stdout
  await waitFor('the keys of the issuer', async () => (await whoami()) === 'company:alice@example.com')
  const pods = await cluster.kubectl(['get', 'pods', '-A'], { kubeconfig })
  assert.equal(pods.code, 0, pods.stderr)
})

test('who is not bound to a role is refused by the cluster, by name', async () => {
  const kubeconfig = await pluginKubeconfig({ user: 'bob', tokenDir: join(cluster.dir, 'bob') })
  const pods = await cluster.kubectl(['get', 'pods'], { kubeconfig })
  assert.match(pods.stderr, /User "bob@example.com" cannot list resource "pods"/)
})

test('a client that does not find the program says which it is, and what it is for', async () => {
  const kubeconfig = await kubeconfigThrough(gateway, cluster, {}, { path: true })
  const config = parse(readFileSync(kubeconfig, 'utf8'))
  const flags = { issuer: issuer.url, clientId: OIDC_CLIENT, scope: [], authParam: [], redirectUrl: DEFAULT_REDIRECT }
  config.users[0].user = execUser(flags, 'portcullis')
  writeFileSync(kubeconfig, stringify(config))
  const { code, stderr } = await cluster.kubectl(['get', 'pods'], { kubeconfig, env: { PATH: '/none' } })
  assert.equal(code, 1)
  assert.match(stderr, /exec: executable portcullis not found.*portcullis is not on PATH: it logs in at https:/s)
})

test('several kubectl at once: one browser, one login', async () => {
  const tokenDir = join(cluster.dir, 'at-once')
  const kubeconfig = await pluginKubeconfig({ user: 'alice', tokenDir })
  const before = issuer.requests.get('/auth') ?? 0
  const all = await Promise.all([1, 2, 3].map(() => cluster.kubectl(['get', 'namespaces'], { kubeconfig })))
  for (const { code, stderr } of all) assert.equal(code, 0, stderr)
  assert.equal(issuer.requests.get('/auth'), before + 1)
  assert.equal(readdirSync(tokenDir).filter((name) => name.endsWith('.json')).length, 1)
})

test('a kubeconfig for all users: its contexts log in, too', async () => {
  const object = upstreamClusterFor(cluster)
  const { kubeconfig } = await loggedIn({ user: 'alice', provider: issuer, object, of: '--all' })
  const whoami = await cluster.kubectl(['auth', 'whoami', '-o', 'json', '--context', cluster.name], { kubeconfig })
  assert.equal(whoami.code, 0, whoami.stderr)
  assert.equal(JSON.parse(whoami.stdout).status.userInfo.username, 'alice@example.com')
})

test('a user without rights on UpstreamClusters: the kubeconfig has the clusters that accept its login', async () => {
  const home = join(cluster.dir, 'own-home')
  const environment = `HOME='${home}' KUBECONFIG='' KUBERNETES_SERVICE_HOST=''`
  const line = `${environment} exec '${process.execPath}' '${MAIN}' "$@"`
  const plugin = writeScript(join(cluster.dir, 'own-portcullis'), line)
  const caFile = join(cluster.dir, 'own-gateway-ca.crt')
  writeFileSync(caFile, gatewayCA().certPem)
  const provider = [`--issuer=${issuer.url}`, `--client-id=${OIDC_CLIENT}`, `--issuer-ca-file=${issuer.caFile}`]
  const hint = 'auth-param=login_hint=alice'
  const loggedIn = await run(plugin, ['login', ...provider, `--${hint}`, ...byBrowser(issuer)])
  assert.equal(loggedIn.code, 0, loggedIn.stderr)

  const all = ['kubeconfig', '--all', `--server=https://127.0.0.1:${gateway.port}`, `--ca-file=${caFile}`]
  const login = [
    ...provider.map((flag) => flag.replace('--', '--login-')),
    `--login-${hint}`,
    `--login-command=${plugin}`,
  ]
  const made = await run(plugin, [...all, ...login])
  assert.equal(made.code, 0, made.stderr)
  assert.match(
    made.stderr,
    /^note: you may not read UpstreamClusters, .* clusters that verify logins themselves are not included\n$/,
  )
  const names = parse(made.stdout).contexts.map(({ name }: { name: string }) => name)
  assert.deepEqual(names, ['by-issuer'])
  const kubeconfig = join(cluster.dir, 'own.kubeconfig')
  writeFileSync(kubeconfig, made.stdout)
  const pods = await cluster.kubectl(['get', 'pods', '-A', '--context', 'by-issuer'], { kubeconfig })
  assert.equal(pods.code, 0, pods.stderr)
  const whoami = await cluster.kubectl(['auth', 'whoami', '-o', 'json', '--context', 'by-issuer'], { kubeconfig })
  assert.equal(JSON.parse(whoami.stdout).status.userInfo.username, 'company:alice@example.com')

  // Its kubeconfig has a cluster, which has no UpstreamClusters; one that it names itself has to have some.
  const ofCluster = await run(plugin, [...all, ...login, `--kubeconfig=${kubeconfig}`, '--context=by-issuer'])
  assert.deepEqual([ofCluster.code, parse(ofCluster.stdout).contexts[0].name], [0, 'by-issuer'], ofCluster.stderr)
  const missing = await run(plugin, [...all, ...login, '--kubeconfig=nothing'])
  assert.match(missing.stderr, /^error: kubeconfig \S*nothing does not exist/)
  // Without a credential nothing is asked, and a cluster's own name is not the gateway.
  assert.match((await run(plugin, all)).stderr, /^error: there is no kubeconfig/)
  const clusterCA = join(cluster.dir, 'own-cluster-ca.crt')
  writeFileSync(clusterCA, cluster.ca.certPem)
  const [apiserver] = cluster.apiservers
  const notTheGateway = ['kubeconfig', '--all', `--server=${apiserver?.url}`, `--ca-file=${clusterCA}`]
  const elsewhere = await run(plugin, [...notTheGateway, ...login])
  assert.equal(elsewhere.code, 1)
  assert.match(elsewhere.stderr, /^error: .* \(403\); give the address of the gateway itself as --server/)
})

test('client-go: when its token has expired, open watches go on, and new ones get a token by a refresh, without a login', async () => {
  const of = { user: 'alice', provider: shortIssuer, object: shortLived, of: 'short-lived' }
  const { kubeconfig, expired } = await loggedIn(of)
  const { logins } = requestsOf(shortIssuer)
  // Alice may not see the third.
  const informers = await startInformers({ kubeconfig, resources: ['v1/pods', 'v1/namespaces', 'v1/secrets'] })
  const stats = () => informers.command('stats')
  const has = (resource: string, key: string): Promise<boolean> =>
    waitFor(`${key} of ${resource}`, async () => {
      const seen = await informers.report(join(cluster.dir, 'seen'))
      return seen.some((one) => one.resource === resource && key in one.store)
    })
  try {
    await informers.command('start')
    await has('v1/pods', 'shop/counter')
    await has('v1/namespaces', 'shop')
    const { tokens } = requestsOf(shortIssuer)
    await expired()
    await createPod('till')
    await has('v1/pods', 'shop/till')
    const { synced, watches } = await stats()
    assert.deepEqual([synced, watches], [2, 2])

    gateway.removeFile('short-lived.yaml')
    await waitFor('the end of the watches', async () => (await stats()).synced === 0)
    gateway.write(shortLived)
    await createPod('scales')
    await has('v1/pods', 'shop/scales')
    await waitFor('both watches', async () => (await stats()).synced === 2)
    assert.ok(requestsOf(shortIssuer).tokens > tokens)
    assert.equal(requestsOf(shortIssuer).logins, logins)
    assert.deepEqual((await stats()).problems, [])
  } finally {
    await informers.kill()
  }
})

interface PodsAnswer {
  readonly pods?: readonly string[]
  readonly status?: number
  readonly message?: string
}

test('the client for Python: what its user may see, by a refresh when its token has expired, until a logout', async (t) => {
  const python = await pythonWith('kubernetes')
  if ('missing' in python) {
    t.skip(python.missing)
    return
  }
  const of = { user: 'bob', provider: shortIssuer, object: shortLived, of: 'short-lived' }
  const { kubeconfig, plugin, runs, expired } = await loggedIn(of)
  const config = parse(readFileSync(kubeconfig, 'utf8'))
  // The user does not log in again.
  config.users[0].user.exec.args.push('--flow=browser', '--browser-command=true', '--timeout=10s')
  writeFileSync(kubeconfig, stringify(config))
  const { logins } = requestsOf(shortIssuer)
  const client = await startLineProgram<PodsAnswer>('pods.py', python.program, [PODS, kubeconfig])
  try {
    const before = runs()
    assert.deepEqual(Object.keys(await client.command('shop')), ['pods'])
    const refused = await client.command('payroll')
    assert.equal(refused.status, 403)
    assert.match(refused.message ?? '', /"company:bob@example.com" cannot list .*"pods" .* in the namespace "payroll"$/)
    // A token that is valid for less than five minutes is asked for each time.
    assert.equal(runs(), before + 2)

    const { tokens } = requestsOf(shortIssuer)
    await expired()
    assert.deepEqual(Object.keys(await client.command('shop')), ['pods'])
    assert.equal(requestsOf(shortIssuer).tokens, tokens + 1)
    assert.equal(requestsOf(shortIssuer).logins, logins)

    const logout = await run(plugin, ['logout', '--no-browser', `--issuer-ca-file=${shortIssuer.caFile}`])
    assert.equal(logout.code, 0, logout.stderr)
    await waitFor('the end of its last token', async () => (await client.command('shop')).status === 401)
  } finally {
    await client.kill()
  }
})
