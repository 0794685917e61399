// Three real clusters that are read as one, written to all the time, and all who read them: client-go's reflectors, a controller and dashboards. What goes
// wrong there: a member is frozen or killed and comes back, and the gateway starts again.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { prefixedName, prefixedNamespace } from '../../../src/gateway/core/federation/names.ts'
import { startCluster, type TestCluster } from '../clusters/cluster.ts'
import { EtcdJournal } from '../clusters/etcd-journal.ts'
import type { KubeResponse } from '../clusters/kube-request.ts'
import { kubeconfigThrough } from '../clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../gateways/gateway.ts'
import { Headlamp, SHOWN_BY_HEADLAMP } from '../headlamp/headlamp.ts'
import { type BlindSpan, changesSeen, notOnce } from '../informers/each-change.ts'
import { type Informers, type SeenByInformer, startInformers } from '../informers/informers.ts'
import { freePorts } from '../ports.ts'
import { waitFor } from '../wait.ts'
import { alice, federatedClusters, federatedUsersCA, grantReads, readThrough } from './federated-clusters.ts'
import { changesOf, fallen, slotOf, storeOf } from './member-changes.ts'
import { type Readers, type SeenByReader, startReaders } from './readers.ts'

const RESOURCES = [
  { version: 'v1', resource: 'pods' },
  { group: 'apps', version: 'v1', resource: 'deployments' },
  { version: 'v1', resource: 'services' },
  { version: 'v1', resource: 'nodes' },
]
const WATCHED = ['v1/pods', 'apps/v1/deployments']
/** The second is too long for a prefix, and ends in a hash. */
const NAMESPACES = ['default', `team-${'n'.repeat(54)}`]
const PATIENT_MS = 180_000
const MERGE = { 'content-type': 'application/merge-patch+json' }
const WRITE_PAUSE_MS = 150
const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'shown', namespace: 'default' },
  spec: { ports: [{ port: 80 }] },
}
/** What a frozen server is given. */
const WRITE_MS = 5_000
/** Objects that come, change and go, of each resource and namespace of a member. */
const OBJECTS = 20
/** Changes on the way have come to all informers by then. */
const SETTLED_MS = 2_000
/** So many pods go while nothing can be read of their cluster. */
const UNSEEN_DELETIONS = 3

export class BusyMember {
  readonly cluster: TestCluster
  readonly name: string
  readonly slot: number
  readonly journal: EtcdJournal
  readonly blind: BlindSpan[] = []
  writes = 0
  #turn = 0
  #writing: { readonly end: AbortController; readonly done: Promise<void> } | undefined

  private constructor(cluster: TestCluster, slot: number, journal: EtcdJournal) {
    this.cluster = cluster
    this.name = cluster.name
    this.slot = slot
    this.journal = journal
  }

  static async start(name: string, slot: number): Promise<BusyMember> {
    const cluster = await startCluster({ name, clientCA: federatedUsersCA })
    await grantReads(cluster, ['alice'], RESOURCES)
    const made = NAMESPACES.flatMap((namespace) => [
      ...(namespace === 'default' ? [] : [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }]),
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } },
    ])
    made.push({ apiVersion: 'v1', kind: 'Node', metadata: { name: `${name}-1` } }, SERVICE)
    await cluster.apply(made.map((object) => `---\n${JSON.stringify(object)}\n`).join(''))
    return new BusyMember(cluster, slot, await EtcdJournal.start(cluster.etcd))
  }

  get apiserver(): TestCluster['apiservers'][number] {
    const [apiserver] = this.cluster.apiservers
    if (apiserver === undefined) throw new Error('a cluster has an apiserver')
    return apiserver
  }

  /** Creates, changes and deletes, one after the other, until `endWriting`; what fails because the server is away is left out. */
  beginWriting(): void {
    const end = new AbortController()
    const write = async (): Promise<void> => {
      while (!end.signal.aborted) {
        if (await this.#write(this.#turn++).catch(() => false)) this.writes++
        await sleep(WRITE_PAUSE_MS)
      }
    }
    this.#writing = { end, done: write() }
  }

  async endWriting(): Promise<void> {
    this.#writing?.end.abort()
    await this.#writing?.done
  }

  /** What its kube-apiserver lists of a resource, as clients of the federated cluster have it; versions are its own. */
  async expected(resource: string): Promise<Readonly<Record<string, string>>> {
    const root = resource.startsWith('v1/') ? '/api' : '/apis'
    const { items } = (await this.cluster.request(`${root}/${resource}`)).json() as Listed
    const inEtcd = this.journal.stateOf(resource)
    if (WATCHED.includes(resource)) {
      assert.deepEqual(
        items.map(({ metadata }) => Number(metadata.resourceVersion)).toSorted(),
        Array.from(inEtcd.values(), ({ revision }) => revision).toSorted(),
        `${this.name}: kube-apiserver's ${resource} are those of etcd`,
      )
    }
    return Object.fromEntries(
      items.map(({ metadata: { namespace, name, uid, resourceVersion } }) => {
        const key =
          namespace === undefined ? prefixedName(this.name, name) : `${prefixedNamespace(this.name, namespace)}/${name}`
        return [key, `${uid} ${resourceVersion}`]
      }),
    )
  }

  /** @returns the version of the service that Headlamp shows, after a change of it */
  async changeService(): Promise<string> {
    const labels = { turn: String(this.#turn) }
    const at = `/api/v1/namespaces/${SERVICE.metadata.namespace}/services/${SERVICE.metadata.name}`
    const answer = await this.#send(at, 'PATCH', { metadata: { labels } })
    assert.equal(answer.status, 200, answer.text)
    return (answer.json() as Listed['items'][number]).metadata.resourceVersion
  }

  async #write(turn: number): Promise<boolean> {
    const isPod = turn % 4 !== 3
    const namespace = NAMESPACES[turn % 3 === 2 ? 1 : 0]
    const name = `web-${Math.floor(turn / 2) % OBJECTS}`
    const root = isPod ? '/api/v1' : '/apis/apps/v1'
    const all = `${root}/namespaces/${namespace}/${isPod ? 'pods' : 'deployments'}`
    const labels = { turn: String(turn), app: 'web' }
    if (turn % 7 === 6) return (await this.#send(`${all}/${name}?gracePeriodSeconds=0`, 'DELETE')).status < 300
    const patched = await this.#send(`${all}/${name}`, 'PATCH', { metadata: { labels } })
    if (patched.status !== 404) return patched.status < 300
    const spec = { containers: [{ name: 'c', image: 'c' }] }
    const object = isPod
      ? { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec }
      : {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name, labels },
          spec: { selector: { matchLabels: { app: 'web' } }, template: { metadata: { labels: { app: 'web' } }, spec } },
        }
    return (await this.#send(all, 'POST', object)).status < 300
  }

  #send(path: string, method: string, body?: object): Promise<KubeResponse> {
    const headers = method === 'PATCH' ? MERGE : {}
    return this.cluster.request(path, { method, headers, timeoutMs: WRITE_MS, ...(body !== undefined && { body }) })
  }
}

interface Listed {
  readonly items: readonly {
    readonly metadata: {
      readonly namespace?: string
      readonly name: string
      readonly uid: string
      readonly resourceVersion: string
    }
  }[]
}

export class BusyFederation {
  readonly members: readonly BusyMember[]
  /** Those that run from the beginning to the end. */
  readonly groups: Informers[] = []
  /** Reflectors that have begun while a member was away. */
  late = 0
  gateway: TestGateway
  readonly #port: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'portcullis-busy-'))
  #readers: Readers | undefined
  #headlamp: Headlamp | undefined
  /** Length of the gateway's logs that were looked at. */
  #logged = 0

  private constructor(members: readonly BusyMember[], gateway: TestGateway, port: number) {
    this.members = members
    this.gateway = gateway
    this.#port = port
  }

  static async start(names: readonly string[]): Promise<BusyFederation> {
    const members = await Promise.all(names.map((name, slot) => BusyMember.start(name, slot)))
    const [port = 0] = await freePorts(1)
    const all = new BusyFederation(members, await startOn(port, members), port)
    await all.#isCurrent()
    const kubeconfig = await all.#kubeconfig()
    const [resources, count] = [WATCHED, 2]
    all.groups.push(
      await startInformers({ kubeconfig, resources, count }),
      await startInformers({ kubeconfig, resources, count, watchList: false, detector: false }),
    )
    all.#readers = await startReaders(kubeconfig)
    for (const program of [...all.groups, all.#readers]) await program.command('start')
    all.#headlamp = await Headlamp.start(kubeconfig)
    await all.#headlamp.open()
    await all.#synced(all.groups)
    return all
  }

  /** @returns what makes it come back */
  async takeAway(member: BusyMember, how: 'SIGSTOP' | 'SIGKILL'): Promise<() => Promise<void>> {
    const settled = await member.cluster.etcd.revision()
    await sleep(SETTLED_MS)
    const positions = await this.#positions(member)
    await member.apiserver.kill(how)
    await member.journal.upToNow()
    const known = WATCHED.map((resource) => member.journal.stateOf(resource))
    if (how === 'SIGKILL') await changeUnseen(member)
    await this.#isAway(member)
    await this.#beginWithout(
      member,
      known.map((state) => new Map([...state].filter(([, { revision }]) => revision <= settled))),
    )
    return async () => {
      if (how === 'SIGSTOP') await member.apiserver.kill('SIGCONT')
      else await member.apiserver.restart()
      await this.#isCurrent()
      const to = await member.cluster.etcd.revision()
      const again = this.#listedAgain()
      for (const [resource, from] of positions) {
        if (again.has(pluralOf(resource))) member.blind.push({ resource, from, to })
      }
    }
  }

  async restartGateway(signal: NodeJS.Signals): Promise<void> {
    await this.gateway.stop(signal)
    this.gateway = await startOn(this.#port, this.members)
    this.#logged = 0
    await this.#isCurrent()
  }

  beginWriting(): void {
    for (const member of this.members) member.beginWriting()
  }

  /** Ends all writing, and waits until all who read have what the clusters have. */
  async compareQuietly(): Promise<void> {
    await Promise.all(this.members.map((member) => member.endWriting()))
    await Promise.all(this.members.map(({ journal }) => journal.upToNow()))
    await this.#synced(this.groups)
    const expected = new Map<string, Readonly<Record<string, string>>>()
    for (const resource of SHOWN_BY_HEADLAMP) {
      const parts = await Promise.all(this.members.map((member) => member.expected(resource)))
      expected.set(resource, Object.assign({}, ...parts))
    }
    await waitFor(
      'all who read to have what the clusters have',
      async () => {
        await this.#headlamp?.open()
        const seen = [...(await this.seenByInformers()), ...(await this.seenByReaders())]
        for (const one of seen) {
          if (!expected.has(one.resource)) continue
          const parts = this.members.map((member) => storeOf(member, one.store))
          assert.equal(
            Object.keys(one.store).length,
            parts.reduce((sum, part) => sum + Object.keys(part).length, 0),
          )
          const who = `${one.resource} of ${'reader' in one ? one.reader : 'a reflector'}`
          assert.deepEqual(Object.assign({}, ...parts), expected.get(one.resource), who)
        }
        return true
      },
      { timeoutMs: PATIENT_MS, intervalMs: 500 },
    )
    await this.#isShownAtOnce()
  }

  async seenByInformers(): Promise<readonly SeenByInformer[]> {
    const reports = this.groups.map((group, at) => group.report(join(this.#folder, `informers-${at}.json`)))
    return (await Promise.all(reports)).flat()
  }

  async seenByReaders(): Promise<readonly SeenByReader[]> {
    const readers = (await this.#readers?.report(join(this.#folder, 'readers.json'))) ?? []
    return [...readers, ...((await this.#headlamp?.report()) ?? [])]
  }

  /** Writing has to be over. What is wrong with what was seen, compared with what has happened in each member. */
  async wrong(): Promise<readonly string[]> {
    await Promise.all(this.members.map(({ journal }) => journal.upToNow()))
    const seen = await this.seenByInformers()
    const readers = await this.seenByReaders()
    return [
      ...this.members.flatMap((member) => {
        const parts = seen.map((one) => changesOf(member, one))
        return notOnce(parts, member.journal, member.blind).map((what) => `${member.name}: ${what}`)
      }),
      ...seen.flatMap(({ resource, stretches }) => {
        const known = stretches.flatMap(({ from, to }) => [from, to])
        return fallen(known).map((what) => `a reflector of ${resource}: ${what}`)
      }),
      ...readers.flatMap(({ problems }) => problems),
      ...readers.flatMap((one) =>
        one.fallen.map(({ key, from, to }) => `${one.reader}: ${key} went from ${from} back to ${to}`),
      ),
      ...readers.flatMap(({ reader, versions }) => fallen(versions).map((what) => `${reader}: ${what}`)),
    ]
  }

  /** What there is to say of it in the end. */
  async summary(): Promise<readonly string[]> {
    const stats = await Promise.all(this.groups.map((group) => group.command('stats')))
    const seen = await this.seenByInformers()
    const readers = await this.seenByReaders()
    return [
      ...this.members.map(({ name, writes, journal, blind }) => {
        const changes = WATCHED.reduce((sum, resource) => sum + journal.of(resource).length, 0)
        const spans = blind.map(({ resource, from, to }) => `${resource} ${from}-${to}`)
        return `${name}: ${writes} writes, ${changes} changes in etcd; listed again: ${spans.join(', ') || 'never'}`
      }),
      `${changesSeen(seen)} changes seen by ${seen.length} reflectors in ${seen.reduce((sum, { stretches }) => sum + stretches.length, 0)} rows`,
      ...stats.map(({ lists, watches, expired }) => `a group: ${lists} lists, ${watches} watches, ${expired} expired`),
      `${this.late} reflectors have begun while a member was away`,
      ...readers.map(({ reader, resource, counts }) => `${reader}, ${resource}: ${JSON.stringify(counts)}`),
    ]
  }

  async stop(): Promise<void> {
    for (const { apiserver } of this.members) await apiserver.kill('SIGCONT')
    await Promise.all(this.members.map((member) => member.endWriting()))
    await Promise.all([...this.groups, this.#readers, this.#headlamp].map((program) => program?.kill()))
    await this.gateway.stop()
    for (const { journal, cluster } of this.members) {
      journal.stop()
      await cluster.stop()
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Headlamp shows what its watch brings: of the first member, whose part of a version a JavaScript number holds exactly. */
  async #isShownAtOnce(): Promise<void> {
    const [first] = this.members
    const version = await first?.changeService()
    await waitFor(
      'Headlamp to show a change without another list',
      async () => {
        const { store } = (await this.#headlamp?.report())?.find(({ resource }) => resource === 'v1/services') ?? {}
        const rows = first === undefined ? {} : storeOf(first, store ?? {})
        return Object.values(rows).some((row) => row.endsWith(` ${version}`))
      },
      { timeoutMs: PATIENT_MS },
    )
  }

  #kubeconfig(): Promise<string> {
    const [first] = this.members
    if (first === undefined) throw new Error('a federated cluster has members')
    return kubeconfigThrough({ port: this.#port }, first.cluster, alice, { path: true, name: 'all' })
  }

  #synced(groups: readonly Informers[]): Promise<unknown> {
    return waitFor(
      'all reflectors to be synced',
      async () => {
        const all = await Promise.all(groups.map((group) => group.command('stats')))
        return all.every(({ informers, synced }) => informers === synced)
      },
      { timeoutMs: PATIENT_MS },
    )
  }

  /** All members have proved that what is kept of them is current. */
  #isCurrent(): Promise<unknown> {
    return this.#warnings('no Warning', (warnings) => warnings === '')
  }

  #isAway({ name }: BusyMember): Promise<unknown> {
    return this.#warnings(`a Warning of ${name}`, (warnings) => warnings.includes(name))
  }

  #warnings(what: string, are: (warnings: string) => boolean): Promise<unknown> {
    const look = async (resource: string): Promise<boolean> => {
      const root = resource.startsWith('v1/') ? '/api' : '/apis'
      const { status, headers } = await readThrough({ port: this.#port }, `${root}/${resource}`)
      return status === 200 && are(String(headers['warning'] ?? ''))
    }
    return waitFor(what, async () => (await Promise.all(WATCHED.map(look))).every(Boolean), { timeoutMs: PATIENT_MS })
  }

  /** Reflectors that begin now have what was last known of the member. */
  async #beginWithout(member: BusyMember, known: readonly ReadonlyMap<string, { revision: number }>[]): Promise<void> {
    for (const watchList of [true, false]) {
      const group = await startInformers({
        kubeconfig: await this.#kubeconfig(),
        resources: WATCHED,
        watchList,
        detector: watchList,
      })
      try {
        await group.command('start')
        await this.#synced([group])
        // Reflectors put what they have been sent into their stores a moment later.
        await waitFor(`all of ${member.name}, which is away`, async () => {
          const seen = await group.report(join(this.#folder, 'late.json'))
          for (const [at, one] of seen.entries()) assertShown(member, one, known[at] ?? new Map())
          return true
        })
        this.late += WATCHED.length
      } finally {
        await group.kill()
      }
    }
  }

  /** For each resource, the version of the member up to which all reflectors know everything. */
  async #positions({ slot }: BusyMember): Promise<ReadonlyMap<string, number>> {
    const stats = await Promise.all(this.groups.map((group) => group.command('stats')))
    return new Map(
      WATCHED.map((resource) => {
        const known = stats.map(({ oldest }) => Number(slotOf(oldest[resource] ?? '', slot)))
        return [resource, Math.min(...known)] as const
      }),
    )
  }

  /** The plurals of what was listed again since the last time: nothing tells each change since then. */
  #listedAgain(): ReadonlySet<string | undefined> {
    const logs = this.gateway.logs()
    const gaps = logs.slice(this.#logged).matchAll(/"resource":"([^"]+)"[^\n]*"msg":"the history of a watch has a gap/g)
    this.#logged = logs.length
    return new Set(Array.from(gaps, ([, name = '']) => name.split('.')[0]))
  }
}

/** @param known `namespace/name` of its objects, as in the member itself, and their versions */
function assertShown(
  member: BusyMember,
  { resource, store }: SeenByInformer,
  known: ReadonlyMap<string, { readonly revision: number }>,
): void {
  const shown = storeOf(member, store)
  for (const [name, { revision }] of known) {
    const slash = name.indexOf('/')
    const key = `${prefixedNamespace(member.name, name.slice(0, slash))}${name.slice(slash)}`
    assert.equal(shown[key]?.split(' ')[1], String(revision), `${resource}: ${key}`)
  }
}

/** What has happened while nothing of the cluster could be read; its history is gone. */
async function changeUnseen({ journal, cluster: { etcd } }: BusyMember): Promise<void> {
  const pods = Array.from(journal.stateOf('v1/pods').values()).slice(0, UNSEEN_DELETIONS)
  for (const { key } of pods) await etcd.remove(key)
  await etcd.compact(await etcd.revision())
}

function startOn(port: number, members: readonly BusyMember[]): Promise<TestGateway> {
  const clusters = federatedClusters(
    members.map(({ cluster }) => cluster),
    { resources: RESOURCES },
  )
  return startGateway({ clusters, own: `127.0.0.1:${port}` })
}

function pluralOf(resource: string): string {
  return resource.slice(resource.lastIndexOf('/') + 1)
}
