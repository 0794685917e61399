// The fleet view on a real cluster: its ConfigMap is written as the cluster-autoscaler writes it, directly and through the gateway;
// status, metrics, Events and `portcullis scale status` follow. The gateway has the rights of deploy/rbac and no others.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { UpstreamClusterStatus } from '../../../src/gateway/api/upstream-cluster/status.ts'
import { recordedStatus, statusConfigMap, withoutBackoff } from '../../harness/clusters/autoscaler.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, runCli, startEmbedded } from '../../harness/gateways/embedded.ts'
import { startGateway } from '../../harness/gateways/gateway.ts'
import { kubectl } from '../../harness/kubectl/kubectl.ts'
import { waitFor } from '../../harness/wait.ts'

const RBAC = join(import.meta.dirname, '../../../deploy/rbac/autoscaler-status.yaml')
const PATH = '/api/v1/namespaces/kube-system/configmaps'
/** The shortest that is allowed. */
const STALE_AFTER_SECONDS = 10

let cluster: TestCluster
let embedded: EmbeddedGateway
before(async () => {
  cluster = await startCluster({ name: 'prod' })
  embedded = await startEmbedded()
  await embedded.apply(
    upstreamClusterFor(cluster, { spec: { autoscaler: { staleAfterSeconds: STALE_AFTER_SECONDS } } }),
  )
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

async function statusOf(): Promise<UpstreamClusterStatus> {
  return JSON.parse(await embedded.succeed(['get', 'uc', 'prod', '-o', 'json'])).status ?? {}
}

/** Once the condition has this reason. */
function reported(reason: string, meanwhile?: () => Promise<void>): Promise<UpstreamClusterStatus> {
  let last = ''
  return waitFor(`AutoscalerHealthy to be ${reason}`, async () => {
    await meanwhile?.()
    const status = await statusOf()
    const condition = status.conditions?.find(({ type }) => type === 'AutoscalerHealthy')
    last = `${condition?.reason}: ${condition?.message}`
    return condition?.reason === reason ? status : undefined
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; last: ${last}`)
  })
}

/** The reasons of the Events so far. */
async function events(): Promise<readonly string[]> {
  const { items } = JSON.parse(await embedded.succeed(['get', 'events', '-n', 'default', '-o', 'json']))
  return items.map(({ reason }: { readonly reason: string }) => reason)
}

async function writeDirectly(status: string = recordedStatus(Date.now())): Promise<void> {
  const body = statusConfigMap(status, Date.now())
  const updated = await cluster.request(`${PATH}/cluster-autoscaler-status`, { method: 'PUT', body })
  if (updated.status === 404) {
    const created = await cluster.request(PATH, { method: 'POST', body })
    assert.equal(created.status, 201, created.text)
  } else assert.equal(updated.status, 200, updated.text)
}

async function scaleStatus(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return runCli(['scale', 'status', '--kubeconfig', embedded.kubeconfig, ...args])
}

test('without the rights: what is missing, and requests still pass', async () => {
  const status = await reported('Unreachable')
  const { message } = status.conditions?.find(({ type }) => type === 'CredentialsValid') ?? assert.fail()
  assert.match(message, /may not list configmaps cluster-autoscaler-status in namespace kube-system; may not watch/)
  assert.match(message, /apply deploy\/rbac\/autoscaler-status\.yaml/)
  await waitFor('the cluster to be ready all the same', async () =>
    (await statusOf()).conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  )
  await cluster.apply(readFileSync(RBAC, 'utf8'))
  await reported('NotFound')
})

test('written directly: backoff, with since when and why', async () => {
  await writeDirectly()
  const { autoscaler } = await reported('Backoff')
  const [spot, onDemand] = autoscaler?.groups ?? []
  assert.equal(spot?.errorCode, 'OutOfResource.InsufficientInstanceCapacity')
  assert.equal(onDemand?.target, 6)
  const { code, stdout, stderr } = await scaleStatus()
  assert.match(stdout, /^prod +MachineDeployment\/machines\/spot +Backoff +\S+ +Healthy +4 +2 +2 +2 +0 +10$/m)
  assert.match(stderr, /^prod: MachineDeployment\/machines\/spot: OutOfResource\.\S+: We currently do not have/m)
  assert.equal(code, 1)
  const wide = await embedded.succeed(['get', 'uc', '-o', 'wide'])
  assert.match(wide, /AUTOSCALER/)
  assert.match(wide, /Backoff/)
  await waitFor('the Event', async () => (await events()).includes('NodeGroupBackoff'))
  const metrics = await embedded.gateway.metrics()
  const spotLabels = 'cluster="prod",group="MachineDeployment/machines/spot"'
  assert.ok(metrics.includes(`portcullis_autoscaler_nodegroup_backoff{${spotLabels}} 1`))
  assert.ok(metrics.includes(`portcullis_autoscaler_nodegroup_target{${spotLabels}} 4`))
  assert.ok(metrics.includes(`portcullis_autoscaler_nodegroup_registered{${spotLabels}} 2`))
  assert.ok(metrics.includes(`portcullis_autoscaler_nodegroup_unhealthy{${spotLabels}} 0`))
  assert.match(metrics, /^portcullis_autoscaler_healthy\{cluster="prod"\} 1$/m)
})

test('written through the gateway: the backoff has ended', async () => {
  const kubeconfig = await kubeconfigThrough(embedded.gateway, cluster, cluster.admin, { path: true })
  const nowMs = Date.now()
  const object = statusConfigMap(withoutBackoff(recordedStatus(nowMs)), nowMs)
  const { code, stderr } = await kubectl(['replace', '-f', '-'], { kubeconfig, stdin: JSON.stringify(object) })
  assert.equal(code, 0, stderr)
  const { autoscaler } = await reported('Healthy')
  assert.deepEqual(
    autoscaler?.groups?.map(({ name, scaleUp }) => `${name} ${scaleUp}`),
    ['MachineDeployment/machines/on-demand InProgress', 'MachineDeployment/machines/spot NoActivity'],
  )
  await waitFor('the Event', async () => (await events()).includes('NodeGroupBackoffEnded'))
  assert.equal((await scaleStatus('-o', 'json')).code, 0)
})

test('the text format before 1.30 is not read, which the condition and the command say', async () => {
  const text = (): string => `Cluster-autoscaler status at ${new Date().toISOString()}:\nCluster-wide:\n`
  const { conditions } = await reported('Unreadable', () => writeDirectly(text()))
  const { message } = conditions?.find(({ type }) => type === 'AutoscalerHealthy') ?? assert.fail()
  assert.match(message, /before 1\.30, which is not read: upgrade the cluster-autoscaler/)
  const { stdout, stderr } = await scaleStatus()
  assert.match(stdout + stderr, /before 1\.30, which is not read: upgrade the cluster-autoscaler/)
  await reported('Backoff', () => writeDirectly())
})

test('an autoscaler that falls silent is stale, and one that writes again is not', async () => {
  const silent = await reported('Stale')
  const { message } = silent.conditions?.find(({ type }) => type === 'AutoscalerHealthy') ?? assert.fail()
  assert.match(message, /has not been written for 10s, the last time at .*; is the cluster-autoscaler running\?/)
  assert.equal(silent.autoscaler?.groups?.length, 2, 'what it said last stays')
  await waitFor('the Event', async () => (await events()).includes('AutoscalerStale'))
  assert.match(await embedded.gateway.metrics(), /^portcullis_autoscaler_healthy\{cluster="prod"\} 0$/m)
  assert.equal((await scaleStatus()).code, 1)
  await reported('Backoff', () => writeDirectly())
  await waitFor('the Event', async () => (await events()).includes('AutoscalerHealthy'))
})

test('with files there is no status: each replica has the metrics', async (t) => {
  const files = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { autoscaler: {} } })] })
  t.after(() => files.stop())
  await waitFor('the metrics', async () => {
    await writeDirectly()
    return /^portcullis_autoscaler_healthy\{cluster="prod"\} 1$/m.test(await files.metrics())
  })
  const spot = 'portcullis_autoscaler_nodegroup_backoff{cluster="prod",group="MachineDeployment/machines/spot"} 1'
  assert.ok((await files.metrics()).includes(spot))
  files.write(upstreamClusterFor(cluster))
  await waitFor('no metrics', async () => !(await files.metrics()).includes('portcullis_autoscaler_healthy{'))
})

test('a restarted gateway knows it again, and one that no longer follows says nothing', async () => {
  await embedded.restart('SIGKILL', () => writeDirectly())
  await reported('Backoff', () => writeDirectly())
  const before = await embedded.succeed(['get', 'events', '-n', 'default', '-o', 'json'])
  const { items }: { items: { reason: string; count?: number }[] } = JSON.parse(before)
  assert.equal(items.find(({ reason }) => reason === 'AutoscalerStale')?.count ?? 1, 1, 'no Event for the restart')
  await embedded.patch('prod', { spec: { autoscaler: null } })
  await waitFor('it to be gone', async () => {
    const { autoscaler, conditions } = await statusOf()
    return autoscaler === undefined && conditions?.every(({ type }) => type !== 'AutoscalerHealthy')
  })
  const { code, stderr } = await scaleStatus()
  assert.match(stderr, /no cluster-autoscaler is followed of: prod; add spec\.autoscaler/)
  assert.equal(code, 1)
  assert.doesNotMatch(await embedded.gateway.metrics(), /^portcullis_autoscaler_\w+\{/m)
})
