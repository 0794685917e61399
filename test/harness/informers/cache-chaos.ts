// A cluster whose every resource is cached by a gateway, with its own components and client-go's reflectors behind that gateway; what goes wrong there
// round by round: kube-apiservers are killed, etcd is compacted, the gateway starts again, rights are taken and given back.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestCluster } from '../clusters/cluster.ts'
import { startCluster } from '../clusters/cluster.ts'
import { EtcdJournal } from '../clusters/etcd-journal.ts'
import type { KubeResponse } from '../clusters/kube-request.ts'
import {
  type CachedResources,
  type CacheState,
  cacheableResources,
  cacheResults,
  cacheStates,
  grantCacheUser,
} from '../clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../gateways/gateway.ts'
import { type RunningKubectl, startKubectl } from '../kubectl/kubectl.ts'
import { freePorts } from '../ports.ts'
import type { RunningProcess } from '../process.ts'
import { waitFor } from '../wait.ts'
import { type BlindSpan, changesSeen, notOnce } from './each-change.ts'
import { type Informers, type SeenByInformer, startInformers } from './informers.ts'

export const WATCHED = [
  ...['v1/pods', 'v1/nodes', 'v1/configmaps', 'v1/serviceaccounts', 'v1/namespaces'],
  ...['apps/v1/deployments', 'apps/v1/replicasets'],
]
/** Its rights are taken and given back. */
const READER = { user: 'reader', uid: 'reader-uid', token: 'reader-token' }
const DETECTOR = { KUBE_WATCHLIST_INCONSISTENCY_DETECTOR: 'true' }
const PATIENT_MS = 180_000
const MERGE = { 'content-type': 'application/merge-patch+json' }
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'
const BINDING = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
const WRITE_PAUSE_MS = 50

export class CacheChaos {
  readonly cluster: TestCluster
  readonly journal: EtcdJournal
  readonly blind: BlindSpan[] = []
  readonly groups: Informers[] = []
  readonly components: RunningProcess[] = []
  readonly kubectls: RunningKubectl[] = []
  gateway: TestGateway
  writes = 0
  readonly #port: number
  readonly #resources: CachedResources
  readonly #writing = new AbortController()
  #written: Promise<void> | undefined
  /** Length of the gateway's logs that were looked at, and what was known everywhere then. */
  #logged = 0
  #known: ReadonlyMap<string, number> = new Map()
  #readerConfig = ''

  private constructor(
    cluster: TestCluster,
    journal: EtcdJournal,
    gateway: TestGateway,
    port: number,
    resources: CachedResources,
  ) {
    this.cluster = cluster
    this.journal = journal
    this.gateway = gateway
    this.#port = port
    this.#resources = resources
  }

  static async start(): Promise<CacheChaos> {
    const cluster = await startCluster({ apiservers: 2, tokens: [READER] })
    const resources = await cacheableResources(cluster)
    await grantCacheUser(cluster, resources)
    const [port = 0] = await freePorts(1)
    const gateway = await startOn(port, cluster, resources)
    const chaos = new CacheChaos(cluster, await EtcdJournal.start(cluster.etcd), gateway, port, resources)
    await chaos.#begin()
    return chaos
  }

  /** Informers and watches whose rows of changes are compared. */
  async #begin(): Promise<void> {
    const { cluster } = this
    const door = { port: this.#port }
    const as = (user: Parameters<typeof kubeconfigThrough>[2]): Promise<string> =>
      kubeconfigThrough(door, cluster, user, { path: true })
    await this.grantReader()
    // One in Protobuf, as all do by default, and one in JSON.
    this.components.push(
      await cluster.startControllerManager({
        kubeconfig: await as(cluster.componentUser('kube-controller-manager')),
        env: DETECTOR,
      }),
      await cluster.startScheduler({
        kubeconfig: await as(cluster.componentUser('kube-scheduler')),
        flags: ['--kube-api-content-type=application/json'],
        env: DETECTOR,
      }),
      await cluster.startKwok({ kubeconfig: await as(cluster.componentUser('kwok')) }),
    )
    await cluster.createNodes(3)
    const admin = await as(cluster.admin)
    this.groups.push(
      await startInformers({ kubeconfig: admin, resources: WATCHED, count: 3 }),
      await startInformers({ kubeconfig: admin, resources: WATCHED, encoding: 'protobuf' }),
      await startInformers({ kubeconfig: admin, resources: WATCHED, encoding: 'metadata' }),
    )
    this.#readerConfig = await as({ token: READER.token })
    for (const group of this.groups) await group.command('start')
    await this.synced()
    this.kubectl(admin)
    this.#written = this.#write()
  }

  /** One kubectl after the other: it ends with its watch. */
  kubectl(kubeconfig: string): void {
    const args = ['get', 'configmaps', '-A', '--watch-only', '--output-watch-events']
    const columns = ['-o', 'jsonpath={.type} {.object.metadata.resourceVersion}{"\\n"}']
    const next = async (): Promise<void> => {
      while (!this.#writing.signal.aborted) {
        const running = await startKubectl([...args, ...columns], { kubeconfig, timeoutMs: 3_600_000 })
        this.kubectls.push(running)
        await running.done
        await sleep(WRITE_PAUSE_MS)
      }
    }
    void next()
  }

  get server(): string {
    const alive = this.cluster.apiservers.find(({ pid }) => isAlive(pid))
    return alive?.url ?? ''
  }

  /** To a kube-apiserver that runs. */
  direct(path: string, method = 'GET', body?: object): Promise<KubeResponse> {
    const headers = method === 'PATCH' ? MERGE : {}
    return this.cluster.request(path, { server: this.server, method, headers, ...(body !== undefined && { body }) })
  }

  async grantReader(): Promise<void> {
    const rule = { apiGroups: ['', 'apps'], resources: WATCHED.map(pluralOf), verbs: ['get', 'list', 'watch'] }
    const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: READER.user }
    await this.cluster.apply(
      [
        { kind: 'ClusterRole', rules: [rule] },
        {
          kind: 'ClusterRoleBinding',
          roleRef: role,
          subjects: [{ apiGroup: role.apiGroup, kind: 'User', name: READER.user }],
        },
      ]
        .map((object) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: READER.user }, ...object }))
        .map((object) => `---\n${JSON.stringify(object)}\n`)
        .join(''),
      [`--server=${this.server}`],
    )
  }

  /**
   * Watches of a reader end, and begin again once it may. Informers of its own: those that have gone on behind a restart of the gateway are with
   * kube-apiserver, which ends none.
   */
  async takeAndGiveRights(): Promise<void> {
    const reader = await startInformers({ kubeconfig: this.#readerConfig, resources: WATCHED, count: 2 })
    this.groups.push(reader)
    await reader.command('start')
    await this.synced()
    await this.direct(`${BINDING}/${READER.user}`, 'DELETE')
    const isLess = async (): Promise<boolean> => {
      const { informers, synced } = await reader.command('stats')
      return synced < informers
    }
    await waitFor("the end of the reader's watches", isLess, { timeoutMs: PATIENT_MS })
    await this.grantReader()
  }

  async restartGateway(signal: NodeJS.Signals): Promise<void> {
    await this.#noteGaps()
    await this.gateway.stop(signal)
    this.gateway = await startOn(this.#port, this.cluster, this.#resources)
    this.#logged = 0
  }

  /** Kills these kube-apiservers, and starts them again once the gateway has gone on without them, if it can. */
  async killApiservers(...indexes: readonly number[]): Promise<void> {
    const areAll = indexes.length === this.cluster.apiservers.length
    await this.#noteGaps()
    await Promise.all(indexes.map((index) => this.cluster.apiservers[index]?.kill()))
    // These are written all the time.
    if (!areAll) await this.#caughtUp(['v1/configmaps'])
    const at = await this.cluster.etcd.revision()
    await Promise.all(indexes.map((index) => this.cluster.apiservers[index]?.restart()))
    // Without a server that has their history all are listed again.
    await this.#caughtUp(areAll ? WATCHED : [], at)
    await this.#noteGaps()
  }

  /**
   * What was listed again since the last time. On a busy machine that is not only what was killed: a server that does not answer a health check in time
   * is left, for one that may have begun its history later.
   */
  async #noteGaps(): Promise<void> {
    const before = this.#known
    this.#known = await this.#positions()
    const logs = this.gateway.logs()
    const gaps = logs.slice(this.#logged).matchAll(/"resource":"([^"]+)"[^\n]*"msg":"the history of a watch has a gap/g)
    const plurals = new Set(Array.from(gaps, ([, name = '']) => name.split('.')[0]))
    this.#logged = logs.length
    const to = await this.cluster.etcd.revision()
    for (const resource of WATCHED) {
      if (plurals.has(pluralOf(resource))) this.blind.push({ resource, from: before.get(resource) ?? 0, to })
    }
  }

  async compact(): Promise<void> {
    await this.cluster.etcd.compact(await this.cluster.etcd.revision())
  }

  async synced(): Promise<void> {
    await waitFor(
      'all informers to be synced',
      async () => {
        const all = await Promise.all(this.groups.map((group) => group.command('stats')))
        return all.every(({ informers, synced }) => informers === synced)
      },
      { timeoutMs: PATIENT_MS },
    )
  }

  /** No more writes; the components have done what there was to do, and are ended. */
  async settle(): Promise<void> {
    this.#writing.abort()
    await this.#written
    await waitFor(
      'the deployment to be as it was written',
      async () => {
        const { spec, status, metadata } = (await this.direct(`${DEPLOYMENTS}/web`)).json()
        const { replicas, readyReplicas = 0, observedGeneration } = status
        return observedGeneration === metadata.generation && [replicas, readyReplicas].every((n) => n === spec.replicas)
      },
      { timeoutMs: PATIENT_MS },
    ).catch(async (error: unknown) => {
      throw new Error(`${await this.#whoWaits()}: ${String(error)}\n${this.components.map(endOfLog).join('\n')}`)
    })
    await this.#noteGaps()
    await Promise.all(this.components.map((component) => component.stop()))
    for (const kubectl of this.kubectls) await kubectl.stop()
  }

  /** Which of the components has not done its part. */
  async #whoWaits(): Promise<string> {
    const { spec, status, metadata } = (await this.direct(`${DEPLOYMENTS}/web`)).json()
    const deployment = `generation ${metadata.generation}, ${spec.replicas} replicas, ${JSON.stringify(status)}`
    const { items } = (await this.direct('/api/v1/namespaces/default/pods')).json()
    const pods = items.map((pod: { spec: { nodeName?: string }; status: { phase: string } }) => {
      return `${pod.status.phase} on ${pod.spec.nodeName}`
    })
    const ended = this.components.filter(({ running }) => !running).map(({ name }) => `${name} has ended; `)
    return `${ended.join('')}${deployment}; pods: ${pods.join(', ')}`
  }

  async stop(): Promise<void> {
    this.#writing.abort()
    this.journal.stop()
    await Promise.all(this.groups.map((group) => group.kill()))
    await Promise.all(this.kubectls.map((kubectl) => kubectl.stop('SIGKILL')))
    await this.gateway.stop()
    await this.cluster.stop()
  }

  /** Creates, changes and deletes, one after the other; what fails because a server was killed is tried again. */
  async #write(): Promise<void> {
    const template = {
      metadata: { labels: { app: 'web' } },
      spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'c' }] },
    }
    await this.direct(DEPLOYMENTS, 'POST', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { replicas: 3, selector: { matchLabels: { app: 'web' } }, template },
    })
    for (let i = 0; !this.#writing.signal.aborted; i++) {
      const name = `map-${i % 20}`
      const metadata = { name, labels: { round: String(i % 3) } }
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { written: String(i) } }
      const done = await this.#tried(async () => {
        if (i % 7 === 6) return await this.direct(`${CONFIGMAPS}/${name}`, 'DELETE')
        if (i % 50 === 25) await this.direct(`${DEPLOYMENTS}/web`, 'PATCH', { spec: { replicas: 2 + (i % 8) } })
        const patched = await this.direct(`${CONFIGMAPS}/${name}`, 'PATCH', object)
        return patched.status === 404 ? await this.direct(CONFIGMAPS, 'POST', object) : patched
      })
      if (done) this.writes++
      await sleep(WRITE_PAUSE_MS)
    }
  }

  async #tried(write: () => Promise<KubeResponse>): Promise<boolean> {
    try {
      return (await write()).status < 300
    } catch {
      return false
    }
  }

  /** For each resource, the version up to which the gateway and all informers know everything. */
  async #positions(): Promise<ReadonlyMap<string, number>> {
    const states = await cacheStates(this.gateway)
    const stats = await Promise.all(this.groups.map((group) => group.command('stats')))
    return new Map(
      WATCHED.map((resource) => {
        const known = stats.map(({ oldest }) => Number(oldest[resource] ?? 0))
        return [resource, Math.min(...known, Number(stateOf(states, resource)?.resourceVersion ?? 0))]
      }),
    )
  }

  /** The caches are followed, and those of `resources` know everything up to a revision, or up to now. */
  async #caughtUp(resources: readonly string[], revision?: number): Promise<void> {
    const least = revision ?? (await this.cluster.etcd.revision())
    await waitFor(
      'the caches to have caught up',
      async () => {
        const states = await cacheStates(this.gateway)
        return (
          states.every(({ message }) => message === '') &&
          resources.every((resource) => Number(stateOf(states, resource)?.resourceVersion ?? 0) >= least)
        )
      },
      { timeoutMs: PATIENT_MS },
    )
  }
}

function endOfLog(component: RunningProcess): string {
  return `${component.name}:\n${component.log().slice(-2000)}`
}

function stateOf(states: readonly CacheState[], resource: string): CacheState | undefined {
  return states.find((state) => state.resource.split('.')[0] === pluralOf(resource))
}

async function startOn(port: number, cluster: TestCluster, cache: CachedResources): Promise<TestGateway> {
  const spec = { cache, healthCheck: { intervalSeconds: 1, timeoutSeconds: 1 } }
  const clusters = [upstreamClusterFor(cluster, { spec })]
  const gateway = await startGateway({ clusters, own: `127.0.0.1:${port}` })
  await waitFor('the cache', async () => (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion))
  return gateway
}

function pluralOf(resource: string): string {
  return resource.slice(resource.lastIndexOf('/') + 1)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Ends the chaos, and compares what informers and kubectl have seen with etcd, and what informers have in the end with kube-apiserver. */
export async function assertNothingLost(chaos: CacheChaos, say: (what: string) => void): Promise<void> {
  await chaos.settle()
  await chaos.synced()
  const { cluster, journal } = chaos
  const lists = new Map(
    await Promise.all(
      WATCHED.map(async (resource) => {
        const root = resource.startsWith('v1/') ? '/api' : '/apis'
        return [resource, (await chaos.direct(`${root}/${resource}`)).json()] as const
      }),
    ),
  )
  await journal.upToNow()
  let seen: readonly SeenByInformer[] = []
  await waitFor(
    'the stores of all informers to equal etcd',
    async () => {
      const reports = chaos.groups.map((group, at) => group.report(join(cluster.dir, `informers-${at}.json`)))
      seen = (await Promise.all(reports)).flat()
      for (const { resource, store } of seen) assert.deepEqual(store, storeOf(lists.get(resource)), resource)
      return true
    },
    { timeoutMs: PATIENT_MS },
  )
  assert.deepEqual(notOnce(seen, journal, chaos.blind), [])
  const printed = chaos.kubectls.map((kubectl) => versionsOf(kubectl.stdout()))
  for (const versions of printed) assert.deepEqual(notInARow(versions, journal, chaos.blind), [])
  for (const component of chaos.components) {
    assert.doesNotMatch(component.log(), /data inconsistency detected|^panic:/m, component.name)
    assert.match(component.log(), /data consistency check for .* is enabled|kwok/, component.name)
  }
  const blind = chaos.blind.map(({ resource, from, to }) => `${resource} ${from}-${to}`)
  say(
    `${chaos.writes} writes, ${journal.entries.length} changes in etcd, ${changesSeen(seen)} seen by ${seen.length} informers`,
  )
  say(
    `in ${seen.reduce((sum, { stretches }) => sum + stretches.length, 0)} rows; listed again: ${blind.join(', ') || 'never'}`,
  )
  say(`${printed.length} kubectls printed ${printed.reduce((sum, versions) => sum + versions.length, 0)} changes`)
  say(`of the last gateway: ${JSON.stringify(await cacheResults(chaos.gateway))}`)
}

interface Listed {
  readonly items: readonly {
    readonly metadata: {
      readonly name: string
      readonly namespace?: string
      readonly uid: string
      readonly resourceVersion: string
    }
  }[]
}

function storeOf(list: Listed | undefined): Readonly<Record<string, string>> {
  const rows = list?.items.map(({ metadata: { name, namespace, uid, resourceVersion } }) => {
    return [namespace === undefined ? name : `${namespace}/${name}`, `${uid} ${resourceVersion}`] as const
  })
  return Object.fromEntries((rows ?? []).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The last line may be cut off. */
function versionsOf(stdout: string): readonly number[] {
  const lines = stdout.slice(0, stdout.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line !== '').map((line) => Number(line.split(' ')[1]))
}

/** kubectl does not say from which version it watches: all between the first and the last that it printed are there, each once. */
function notInARow(versions: readonly number[], journal: EtcdJournal, blind: readonly BlindSpan[]): readonly string[] {
  const [first = 0, last = 0] = [versions[0], versions.at(-1)]
  const events = versions.map((version) => ({ type: 'any', version: String(version), key: '' }))
  const stretch = { from: String(first - 1), to: String(last), events }
  const doubled = versions.filter((version, at) => at > 0 && version <= (versions[at - 1] ?? 0))
  const wrong = notOnce([{ resource: 'v1/configmaps', stretches: [stretch], problems: [], store: {} }], journal, blind)
  return [...doubled.map((version) => `kubectl printed ${version} again`), ...wrong]
}
