// k9s with `portcullis login` as its credential plugin, in a terminal, through the gateway, at a real cluster: its screen has what the user may see, also when
// the first token has expired; after a logout it gets no further, until the user has logged in in the browser that it opens.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse, stringify } from 'yaml'
import { rareBinary } from '../harness/binaries.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { MAIN } from '../harness/program.ts'
import { claimsOf, LoginRuns } from '../harness/servers/login-runs.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import { startTerminal, type Terminal } from '../harness/terminal.ts'
import { waitFor } from '../harness/wait.ts'

const PEOPLE = { alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] } }
const BROWSE = join(import.meta.dirname, '../harness/servers/browse.ts')
/** k9s asks for a credential every quarter of a minute, and more rarely after failures. */
const ID_TOKEN_SECONDS = 30
/** The first one on a machine compiles k9s: six minutes of CPU. */
const BUILD = { timeout: 30 * 60_000 }
const K9S_WAITS = { timeoutMs: 180_000 }

let issuer: OidcIssuer
let logins: LoginRuns
let cluster: TestCluster
let gateway: TestGateway
let k9s: string
let terminal: Terminal | undefined

before(async () => {
  k9s = await rareBinary('k9s')
  issuer = await startOidcIssuer({ people: PEOPLE, idTokenTtl: ID_TOKEN_SECONDS })
  logins = new LoginRuns(issuer)
  cluster = await startCluster()
  const jwt = [
    {
      issuer: { url: issuer.url, audiences: [OIDC_CLIENT], certificateAuthority: readFileSync(issuer.caFile, 'utf8') },
      claimMappings: { username: { claim: 'email', prefix: 'company:' }, groups: { claim: 'groups', prefix: '' } },
    },
  ]
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { authentication: { jwt } } })] })
  for (const line of [
    'namespace shop',
    'namespace payroll',
    'role reader --namespace=shop --verb=get,list,watch --resource=pods,configmaps,services',
    'rolebinding sre --namespace=shop --role=reader --group=sre',
    'serviceaccount default --namespace=shop',
    'serviceaccount default --namespace=payroll',
    'configmap prices --namespace=shop',
    'service clusterip till --namespace=shop --tcp=80',
  ]) {
    const { code, stderr } = await cluster.kubectl(['create', ...line.split(' ')])
    assert.equal(code, 0, stderr)
  }
  for (const [name, namespace] of [
    ['counter', 'shop'],
    ['salaries', 'payroll'],
  ]) {
    const spec = { containers: [{ name: 'main', image: 'example.com/main' }] }
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec }))
  }
}, BUILD)
after(async () => {
  await terminal?.stop()
  await gateway?.stop()
  await cluster?.stop()
  logins?.remove()
  await issuer?.stop()
})

function writeScript(name: string, line: string): string {
  const file = join(cluster.dir, name)
  writeFileSync(file, `#!/bin/sh\n${line}\n`)
  chmodSync(file, 0o755)
  return file
}

/** That of operators for all users. @param userIsAway while this file exists, the browser does not log in */
function companyKubeconfig(userIsAway: string): string {
  const objects = join(cluster.dir, 'objects')
  mkdirSync(objects)
  writeFileSync(join(objects, 'cluster.yaml'), JSON.stringify(upstreamClusterFor(cluster)), { mode: 0o600 })
  const portcullis = writeScript('portcullis', `exec '${process.execPath}' '${MAIN}' "$@"`)
  const user = `'${process.execPath}' '${BROWSE}' '${issuer.caFile}' "$1"`
  const browser = writeScript('browser', `test -e '${userIsAway}' || exec ${user}`)
  const caFile = join(cluster.dir, 'gateway-ca.crt')
  writeFileSync(caFile, gatewayCA().certPem)
  const { status, stdout, stderr } = spawnSync(
    portcullis,
    [
      ...['kubeconfig', '--all', `--config-dir=${objects}`, `--ca-file=${caFile}`],
      ...[`--server=https://127.0.0.1:${gateway.port}`, `--login-command=${portcullis}`],
      ...[`--login-issuer=${issuer.url}`, `--login-client-id=${OIDC_CLIENT}`],
      ...[`--login-issuer-ca-file=${issuer.caFile}`, '--login-auth-param=login_hint=alice'],
    ],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  const config = parse(stdout)
  const ofTest = [`--token-dir=${logins.dir}`, '--flow=browser', `--browser-command=${browser}`, '--timeout=10s']
  config.users[0].user.exec.args.push(...ofTest)
  const file = join(cluster.dir, 'company.kubeconfig')
  writeFileSync(file, stringify(config))
  return file
}

/** @returns the screen */
function shows(what: RegExp): Promise<string> {
  return waitFor(
    `${what} on the screen of k9s`,
    () => {
      const screen = terminal?.screen() ?? ''
      if (!what.test(screen)) throw new Error(`it shows\n${screen}`)
      return screen
    },
    { ...K9S_WAITS, intervalMs: 200 },
  )
}

function visit(view: string): void {
  terminal?.type(`:${view}`, 'Enter')
}

test('k9s shows what the user may see, with one token after the other, until the user logs out, and again after the next login', async () => {
  const home = join(cluster.dir, 'home')
  mkdirSync(home)
  // Otherwise it asks GitHub for a newer release.
  writeFileSync(join(home, 'config.yaml'), stringify({ k9s: { skipLatestRevCheck: true } }))
  const [userIsAway, errors] = [join(home, 'userIsAway'), join(home, 'errors')]
  const login = await logins.login()
  assert.equal(login.code, 0, login.err)
  const { exp } = claimsOf(login.out)
  const asked = { logins: issuer.requests.get('/auth') ?? 0, tokens: issuer.requests.get('/token') ?? 0 }
  const flags = [`--kubeconfig=${companyKubeconfig(userIsAway)}`, `--context=${cluster.name}`]
  terminal = await startTerminal({
    // What a login prints would be written across the screen.
    program: '/bin/sh',
    args: ['-c', `exec "$0" "$@" 2>'${errors}'`, k9s, ...flags, '--namespace=shop', '--command=pods'],
    // As of a program that a desktop has started: portcullis is not on its PATH.
    env: { HOME: home, K9S_CONFIG_DIR: home, K9S_LOGS_DIR: home, PATH: '/usr/bin:/bin' },
  })
  await shows(/pods\(shop\)\[1\].*\bcounter\b/s)
  visit('pods payroll')
  assert.doesNotMatch(await shows(/access denied/), /salaries/)
  terminal.type('Escape')

  await sleep(Math.max(0, Number(exp) * 1000 - Date.now()) + 1000)
  visit('configmaps shop')
  await shows(/configmaps\(shop\)\[1\].*\bprices\b/s)
  assert.ok((issuer.requests.get('/token') ?? 0) > asked.tokens)
  assert.equal(issuer.requests.get('/auth'), asked.logins)

  writeFileSync(userIsAway, '')
  const logout = await logins.logout()
  assert.equal(logout.code, 0, logout.err)
  await shows(/Dial K8s Toast/)
  assert.match(readFileSync(errors, 'utf8'), /^error: the login was not completed in time/m)

  rmSync(userIsAway)
  await shows(/^(?!.*Dial K8s Toast)/s)
  visit('services shop')
  await shows(/services\(shop\)\[1\].*\btill\b/s)
})
