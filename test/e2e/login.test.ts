// kubectl with `portcullis login` as its credential plugin, through the gateway, at a real kube-apiserver that trusts the same OpenID provider.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { execUser } from '../../src/login/core/exec-user.ts'
import { DEFAULT_REDIRECT } from '../../src/login/core/login-spec.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { MAIN } from '../harness/program.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import { waitFor } from '../harness/wait.ts'

const PEOPLE = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] },
  bob: { email: 'bob@example.com', email_verified: true, groups: ['support'] },
}
const BROWSE = join(import.meta.dirname, '../harness/servers/browse.ts')

let issuer: OidcIssuer
let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  issuer = await startOidcIssuer({ people: PEOPLE })
  cluster = await startCluster({
    extraApiserverFlags: [
      `--oidc-issuer-url=${issuer.url}`,
      `--oidc-client-id=${OIDC_CLIENT}`,
      '--oidc-username-claim=email',
      '--oidc-groups-claim=groups',
      `--oidc-ca-file=${issuer.caFile}`,
    ],
  })
  // The same cluster, with users whose tokens the gateway verifies: their prefix is that of its mapping alone.
  const jwt = [
    {
      issuer: { url: issuer.url, audiences: [OIDC_CLIENT], certificateAuthority: readFileSync(issuer.caFile, 'utf8') },
      claimMappings: { username: { claim: 'email', prefix: 'company:' }, groups: { claim: 'groups', prefix: '' } },
    },
  ]
  const byIssuer = upstreamClusterFor(cluster, { name: 'by-issuer', spec: { authentication: { jwt } } })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster), byIssuer] })
  const role = ['clusterrole', 'reader', '--verb=list', '--resource=pods,namespaces']
  for (const args of [role, ['clusterrolebinding', 'sre', '--clusterrole=reader', '--group=sre']]) {
    const created = await cluster.kubectl(['create', ...args])
    assert.equal(created.code, 0, created.stderr)
  }
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  await issuer?.stop()
})

interface UserOptions {
  readonly user: string
  readonly tokenDir: string
  /** Default: it logs in. */
  readonly browser?: string
  /** Name of the UpstreamCluster. Default: the one without issuers. */
  readonly name?: string
}

/** A kubeconfig through the gateway whose user is the plugin. */
async function pluginKubeconfig({ user, tokenDir, browser, name = cluster.name }: UserOptions): Promise<string> {
  const file = await kubeconfigThrough(gateway, cluster, {}, { path: true, name })
  const browserCommand = browser ?? join(cluster.dir, 'browser')
  if (browser === undefined) {
    writeFileSync(browserCommand, `#!/bin/sh\nexec '${process.execPath}' '${BROWSE}' '${issuer.caFile}' "$1"\n`)
    chmodSync(browserCommand, 0o755)
  }
  const args = [
    ...[MAIN, 'login', `--issuer=${issuer.url}`, `--client-id=${OIDC_CLIENT}`, `--issuer-ca-file=${issuer.caFile}`],
    ...[`--auth-param=login_hint=${user}`, `--token-dir=${tokenDir}`, '--flow=browser', '--timeout=2m'],
    `--browser-command=${browserCommand}`,
  ]
  const apiVersion = 'client.authentication.k8s.io/v1'
  const exec = { apiVersion, command: process.execPath, args, interactiveMode: 'IfAvailable' }
  const config = parse(readFileSync(file, 'utf8'))
  config.users[0].user = { exec }
  writeFileSync(file, stringify(config))
  return file
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
  const dir = join(cluster.dir, 'objects')
  mkdirSync(dir)
  writeFileSync(join(dir, 'cluster.yaml'), JSON.stringify(upstreamClusterFor(cluster)), { mode: 0o600 })
  const home = join(cluster.dir, 'home')
  const plugin = join(cluster.dir, 'portcullis')
  writeFileSync(plugin, `#!/bin/sh\nHOME='${home}' exec '${process.execPath}' '${MAIN}' "$@"\n`)
  chmodSync(plugin, 0o755)
  const caFile = join(cluster.dir, 'gateway-ca.crt')
  writeFileSync(caFile, gatewayCA().certPem)
  const login = ['--login-auth-param=login_hint=alice', `--login-issuer-ca-file=${issuer.caFile}`]
  const made = spawnSync(
    plugin,
    [
      ...[
        'kubeconfig',
        '--all',
        `--config-dir=${dir}`,
        `--server=https://127.0.0.1:${gateway.port}`,
        `--ca-file=${caFile}`,
      ],
      ...[`--login-issuer=${issuer.url}`, `--login-client-id=${OIDC_CLIENT}`, `--login-command=${plugin}`, ...login],
    ],
    { encoding: 'utf8' },
  )
  assert.equal(made.status, 0, made.stderr)
  const kubeconfig = join(cluster.dir, 'company.kubeconfig')
  writeFileSync(kubeconfig, made.stdout)
  const { exec } = parse(made.stdout).users[0].user
  const browser = await pluginKubeconfig({ user: 'alice', tokenDir: join(cluster.dir, 'unused') })
  const [command = ''] = parse(readFileSync(browser, 'utf8')).users[0].user.exec.args.slice(-1)
  // In parallel to this test, which is the provider.
  const code = await new Promise((resolve) =>
    spawn(plugin, [...exec.args, command, '--flow=browser'], { stdio: 'ignore' }).once('close', resolve),
  )
  assert.equal(code, 0)
  const whoami = await cluster.kubectl(['auth', 'whoami', '-o', 'json', '--context', cluster.name], { kubeconfig })
  assert.equal(whoami.code, 0, whoami.stderr)
  assert.equal(JSON.parse(whoami.stdout).status.userInfo.username, 'alice@example.com')
})

test('a user without rights on UpstreamClusters: the kubeconfig has the clusters that accept its login', async () => {
  const home = join(cluster.dir, 'own-home')
  const plugin = join(cluster.dir, 'own-portcullis')
  const environment = `HOME='${home}' KUBECONFIG='' KUBERNETES_SERVICE_HOST=''`
  writeFileSync(plugin, `#!/bin/sh\n${environment} exec '${process.execPath}' '${MAIN}' "$@"\n`)
  chmodSync(plugin, 0o755)
  const caFile = join(cluster.dir, 'own-gateway-ca.crt')
  writeFileSync(caFile, gatewayCA().certPem)
  const run = (args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      const child = spawn(plugin, args)
      const [stdout, stderr]: [string[], string[]] = [[], []]
      child.stdout.on('data', (chunk) => void stdout.push(String(chunk)))
      child.stderr.on('data', (chunk) => void stderr.push(String(chunk)))
      child.once('close', (code) => resolve({ code, stdout: stdout.join(''), stderr: stderr.join('') }))
    })
  const browser = await pluginKubeconfig({ user: 'alice', tokenDir: join(cluster.dir, 'unused') })
  const [command = ''] = parse(readFileSync(browser, 'utf8')).users[0].user.exec.args.slice(-1)
  const provider = [`--issuer=${issuer.url}`, `--client-id=${OIDC_CLIENT}`, `--issuer-ca-file=${issuer.caFile}`]
  const hint = 'auth-param=login_hint=alice'
  const loggedIn = await run(['login', ...provider, `--${hint}`, command, '--flow=browser'])
  assert.equal(loggedIn.code, 0, loggedIn.stderr)

  const all = ['kubeconfig', '--all', `--server=https://127.0.0.1:${gateway.port}`, `--ca-file=${caFile}`]
  const login = [
    ...provider.map((flag) => flag.replace('--', '--login-')),
    `--login-${hint}`,
    `--login-command=${plugin}`,
  ]
  const made = await run([...all, ...login])
  assert.equal(made.code, 0, made.stderr)
  assert.match(
    made.stderr,
    /^note: you may not read UpstreamClusters, .* those that verify logins themselves are not among them\n$/,
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
  const ofCluster = await run([...all, ...login, `--kubeconfig=${kubeconfig}`, '--context=by-issuer'])
  assert.deepEqual([ofCluster.code, parse(ofCluster.stdout).contexts[0].name], [0, 'by-issuer'], ofCluster.stderr)
  const missing = await run([...all, ...login, '--kubeconfig=nothing'])
  assert.match(missing.stderr, /^error: kubeconfig \S*nothing does not exist/)
  // Without a credential nothing is asked, and a cluster's own name is not the gateway.
  assert.match((await run(all)).stderr, /^error: there is no kubeconfig/)
  const clusterCA = join(cluster.dir, 'own-cluster-ca.crt')
  writeFileSync(clusterCA, cluster.ca.certPem)
  const [apiserver] = cluster.apiservers
  const notTheGateway = ['kubeconfig', '--all', `--server=${apiserver?.url}`, `--ca-file=${clusterCA}`]
  const elsewhere = await run([...notTheGateway, ...login])
  assert.equal(elsewhere.code, 1)
  assert.match(elsewhere.stderr, /^error: .* \(403\); give the address of the gateway itself as --server/)
})
