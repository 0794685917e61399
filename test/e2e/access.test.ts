// docs/access.md on a real kube-apiserver: a user without rights gets them for a minute, after another user has approved it, by a group that is bound there;
// they end by themselves, with the user's watch; and the audit log names the grant.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Json } from '../harness/clients/control-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, runCli, startEmbedded } from '../harness/gateways/embedded.ts'
import { type KubectlResult, startKubectl } from '../harness/kubectl/kubectl.ts'
import { waitFor } from '../harness/wait.ts'

/** The shortest grant. */
const MINUTE_MS = 60_000

let cluster: TestCluster
let embedded: EmbeddedGateway
let auditFile: string
/** Through the gateway, as a user of the cluster. */
let alice: string
/** At the gateway's own API server. */
let requester: string
let approver: string

before(async () => {
  cluster = await startCluster()
  auditFile = join(cluster.dir, 'gateway-audit.log')
  embedded = await startEmbedded({ args: ['--access-approver=group:leads', `--audit-log-path=${auditFile}`] })
  await embedded.apply(upstreamClusterFor(cluster))
  const bound = ['create', 'clusterrolebinding', 'ops-admin', '--clusterrole=cluster-admin', '--group=ops-admin']
  assert.equal((await cluster.kubectl(bound)).code, 0)
  alice = await kubeconfigThrough(
    embedded.gateway,
    cluster,
    { cert: cluster.clientCertificate('alice') },
    { path: true },
  )
  requester = await controlKubeconfig('alice', 'portcullis:access-requesters')
  approver = await controlKubeconfig('bob', 'leads')
  await waitFor('the cluster behind the gateway', async () => (await asAlice('auth', 'whoami')).code === 0)
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

async function controlKubeconfig(user: string, group: string): Promise<string> {
  const flags = [`--data-dir=${embedded.dataDir}`, `--server=https://127.0.0.1:${embedded.gateway.controlPort}`]
  const made = await runCli(['control', 'kubeconfig', ...flags, `--user=${user}`, `--group=${group}`])
  assert.equal(made.code, 0, made.stderr)
  const file = join(cluster.dir, `control-${user}.kubeconfig`)
  writeFileSync(file, made.stdout)
  return file
}

function asAlice(...args: readonly string[]): Promise<KubectlResult> {
  return cluster.kubectl(args, { kubeconfig: alice })
}

async function access(kubeconfig: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(['access', ...args, `--kubeconfig=${kubeconfig}`])
  assert.equal(code, 0, stdout + stderr)
  return stdout
}

async function ask(lasts: string): Promise<string> {
  const said = await access(
    ...([requester, 'request', cluster.name, '--group=ops-admin', `--for=${lasts}`, '--reason=INC-4711'] as const),
  )
  return /^access-\w+/.exec(said)?.[0] ?? assert.fail(said)
}

function auditEvents(): Json[] {
  return readFileSync(auditFile, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

test('for a minute', async () => {
  assert.match((await asAlice('get', 'secrets')).stderr, /User "alice" cannot list resource "secrets"/)
  const name = await ask('1m')
  assert.match((await asAlice('get', 'secrets')).stderr, /cannot list/, 'nothing before the approval')
  const own = await runCli(['access', 'approve', name, '--yes', `--kubeconfig=${requester}`])
  assert.match(own.stderr, /cannot create resource "accessgrants\/approval"/)
  assert.match(await access(approver, 'approve', name, '--yes'), new RegExp(`${name} is approved, from .* until `))
  const approvedMs = Date.now()

  await waitFor('the rights', async () => (await asAlice('get', 'secrets')).code === 0)
  assert.equal((await asAlice('create', 'configmap', 'fixed', '--from-literal=by=alice')).code, 0)
  const watching = ['get', '--raw', '/api/v1/configmaps?watch=1&fieldSelector=metadata.name=fixed']
  const watch = await startKubectl(watching, { kubeconfig: alice, timeoutMs: 4 * MINUTE_MS })
  await watch.output(/"type":"ADDED"/)
  const asOther = await asAlice('get', 'secrets', '--as=carol')
  assert.match(asOther.stderr, /Forbidden/, 'the group itself could, but it is not there for that')
  assert.match(await access(requester, 'list'), new RegExp(`${name} +Active +alice .* INC-4711`))

  await watch.done
  assert.ok(Date.now() - approvedMs > MINUTE_MS / 2, 'not before its time, or nearly')
  await waitFor('the end', async () => /cannot list/.test((await asAlice('get', 'secrets')).stderr))
  await waitFor('the phase', async () => /Ended/.test(await access(requester, 'list', '--ended')))

  const uses = auditEvents().filter(({ annotations }) => annotations['portcullis.io/access-grant'] === name)
  const made = uses.find(({ verb, objectRef }) => verb === 'create' && objectRef.resource === 'configmaps')
  assert.deepEqual([made.user.username, made.objectRef.name ?? 'fixed'], ['alice', 'fixed'])
  assert.ok(made.user.groups.includes('ops-admin'))
  assert.ok(uses.some(({ verb, stage }) => verb === 'watch' && stage === 'ResponseComplete'))
  const approvals = auditEvents().filter(({ objectRef }) => objectRef?.subresource === 'approval')
  assert.deepEqual(
    approvals.map(({ user, responseStatus, objectRef }) => [user.username, responseStatus.code, objectRef.name]),
    [
      ['alice', 403, name],
      ['bob', 201, name],
    ],
  )
})

test('with kubectl alone, and ended by a deletion', async () => {
  const name = await ask('1h')
  const own = await embedded.kubectl(['get', 'accessgrant', name, '-o', 'jsonpath={"{"}"uid":"{.metadata.uid}"{"}"}'], {
    kubeconfig: approver,
  })
  const path = `/apis/portcullis.io/v1alpha1/accessgrants/${name}/approval`
  const approving = { kubeconfig: approver, stdin: own.stdout }
  const approved = await embedded.kubectl(['create', '--raw', path, '-f', '-'], approving)
  assert.equal(approved.code, 0, approved.stderr)
  await waitFor('the rights', async () => (await asAlice('get', 'secrets')).code === 0)
  const table = await embedded.kubectl(['get', 'accessgrants'], { kubeconfig: requester })
  assert.match(table.stdout, new RegExp(`${name} +alice +${cluster.name} +ops-admin +Active .* alice +bob`))
  assert.match((await embedded.kubectl(['explain', 'accessgrant.spec'])).stdout, /durationSeconds/)
  await embedded.succeed(['delete', 'accessgrant', name])
  await waitFor('the end', async () => /cannot list/.test((await asAlice('get', 'secrets')).stderr))
})
