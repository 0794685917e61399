// Overlays a source of clusters with the switches thrown on this machine, which need no API server. Once that is reachable, they are
// settled
// with the object (settle-switch.ts), and removed once the resulting object has been delivered, so that no other mode is in force in
// between.

import type {
  ResolvedCluster,
  ResourceSource,
  SourceChange,
  SourceError,
} from '../../../gateway/api/resource-source.ts'
import type { Degrade } from '../../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { patchAsSeen } from '../../../kube/controllers/kernel/object-patch.ts'
import { Writes } from '../../../kube/controllers/kernel/writes.ts'
import { type LocalSwitches, SwitchDirectory } from '../../io/local-switches/switch-directory.ts'
import { type LocalSwitch, readSwitchFile, removeSwitch, switchDirectory } from '../../io/local-switches/switch-file.ts'
import {
  type EndedSwitch,
  readSwitchStates,
  type SwitchBase,
  type SwitchState,
  writeSwitchStates,
} from '../../io/local-switches/switch-state.ts'
import { settleSwitch } from './settle-switch.ts'

interface SwitchedSourceDeps {
  readonly source: ResourceSource
  readonly client: Pick<ObjectClient, 'get' | 'patch'>
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
  /** Called for each switch thrown or lifted here, for the audit log. */
  onThrown(local: LocalSwitch, lifted: boolean): void
}

interface Entry {
  local: LocalSwitch
  base: SwitchBase | undefined
  inForceAt: string
  /** metadata.generation from which on the object supersedes the switch; undefined = not settled. */
  settledAt: number | undefined
  outcome: string
}

const MANAGER = 'portcullis-degrade-local'
const SETTLE_EVERY_MS = 1_000
const MAX_ENDED = 20

export class SwitchedSource implements ResourceSource {
  readonly #deps: SwitchedSourceDeps
  readonly #directory: SwitchDirectory
  readonly #entries = new Map<string, Entry>()
  readonly #writes: Writes
  /** The switches that a delivery contains. */
  readonly #delivered = new WeakMap<SourceChange, readonly Entry[]>()
  #errors: ReadonlyMap<string, string> = new Map()
  #ended: readonly EndedSwitch[] = []
  #last: SourceChange | undefined
  #onChange: (change: SourceChange) => void = () => undefined
  /** Why switches can't be written to their objects, as last reported. */
  #faults = ''
  #current = false
  #timer: NodeJS.Timeout | undefined

  constructor(deps: SwitchedSourceDeps) {
    this.#deps = deps
    this.#writes = new Writes((cluster, why) => {
      deps.log.warn('a local degrade switch cannot be written to its object', { cluster, why })
    })
    this.#directory = new SwitchDirectory(switchDirectory(deps.dataDir), (now) => this.#follow(now))
  }

  async start(onChange: (change: SourceChange) => void): Promise<void> {
    this.#onChange = onChange
    const { switches, ended } = readSwitchStates(this.#deps.dataDir)
    this.#ended = ended
    this.#take(this.#directory.start(), switches)
    // Create the directory now, so that the gateway owns it.
    this.#write()
    this.#timer = setInterval(() => this.#settleAll(), SETTLE_EVERY_MS).unref()
    await this.#deps.source.start((change) => {
      this.#last = change
      this.#dropSettled()
      this.#tell(change)
    })
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#directory.stop()
    await this.#deps.source.stop()
    await this.#writes.ended()
  }

  /** Whether the API server is reachable. */
  current(current: boolean): void {
    this.#current = current
  }

  /** Who has thrown the switch of a cluster here, and when (RFC 3339); undefined = there is none. */
  switchedHere(cluster: string): Pick<LocalSwitch, 'by' | 'at'> | undefined {
    return readSwitchStates(this.#deps.dataDir).switches.find((one) => one.cluster === cluster)
  }

  /** A delivery is in force in all threads. */
  applied(change: SourceChange): void {
    let news = false
    for (const entry of this.#delivered.get(change) ?? []) {
      if (entry.inForceAt !== '') continue
      entry.inForceAt = metaTime(this.#deps.clock.now())
      const { cluster, mode, reason, by } = entry.local
      this.#deps.log.warn('a local degrade switch is in force', { cluster, mode, reason, by })
      news = true
    }
    if (news) this.#write()
  }

  #follow(now: LocalSwitches): void {
    const changed = this.#take(now, [])
    this.#write()
    if (this.#last !== undefined) this.#tell({ ...this.#last, changed })
  }

  /** @param known from a previous process. @returns the clusters whose switch differs */
  #take({ switches, errors }: LocalSwitches, known: readonly SwitchState[]): ReadonlySet<string> {
    const { log, onThrown } = this.#deps
    const changed = new Set<string>()
    for (const [file, why] of errors) {
      if (this.#errors.get(file) !== why) log.error('a file of local degrade switches is ignored', { file, why })
    }
    this.#errors = errors
    for (const [cluster, { local }] of this.#entries) {
      if (switches.has(cluster)) continue
      this.#drop(cluster)
      changed.add(cluster)
      onThrown(local, true)
      log.warn('a local degrade switch was lifted', { cluster, mode: local.mode })
      this.#end(local, 'lifted')
    }
    for (const [cluster, local] of switches) {
      const before = this.#entries.get(cluster)
      if (before !== undefined && isSame(before.local, local)) continue
      const last = known.find((one) => one.cluster === cluster && isSame(one, local))
      changed.add(cluster)
      if (last === undefined) onThrown(local, false)
      const base = before?.base ?? last?.base
      this.#writes.forget(cluster)
      this.#entries.set(cluster, { ...NEW, local, base })
    }
    return changed
  }

  #tell(change: SourceChange): void {
    const clusters = new Map(change.clusters)
    const entries: Entry[] = []
    for (const [cluster, entry] of this.#entries) {
      const resolved = change.clusters.get(cluster)
      if (resolved === undefined) continue
      const { uid = '' } = resolved.object.metadata
      entry.base ??= { uid, degrade: resolved.object.spec.degrade ?? {} }
      clusters.set(cluster, switched(resolved, entry.local))
      entries.push(entry)
    }
    const delivery = { ...change, clusters, problems: [...change.problems, ...this.#problems(change)] }
    this.#delivered.set(delivery, entries)
    this.#onChange(delivery)
  }

  #problems({ clusters }: SourceChange): readonly SourceError[] {
    const files = [...this.#errors].map(([file, why]) => problem(`${file} is ignored: ${why}`, 'fix or remove it', ''))
    const entries = [...this.#entries.values()].map(({ local }) => {
      const { cluster, mode, by, at } = local
      if (!clusters.has(cluster))
        return problem(`a local degrade switch is for ${cluster}, which does not exist`, 'remove it', '')
      const what = `degrade mode ${mode} was set on this machine, by ${by} at ${at}`
      return problem(what, 'it is written to the object when its API server answers', cluster)
    })
    return [...files, ...entries]
  }

  #settleAll(): void {
    this.#writeFaults()
    if (!this.#current) return
    for (const [cluster, entry] of this.#entries) {
      if (this.#writes.has(cluster) || entry.settledAt !== undefined || entry.inForceAt === '') continue
      this.#writes.add(cluster, this.#settle(cluster, entry))
    }
  }

  /** For `--status`: why a switch is not written to its object. */
  #writeFaults(): void {
    const faults = [...this.#entries.keys()].map((cluster) => `${cluster} ${this.#writes.faultOf(cluster)}`).join('\n')
    if (faults === this.#faults) return
    this.#faults = faults
    this.#write()
  }

  async #settle(cluster: string, entry: Entry): Promise<void> {
    const { client, clock, log } = this.#deps
    const at = { namespace: '', name: cluster }
    const object = await client.get(UPSTREAM_CLUSTERS, at).catch((error: unknown) => {
      if (error instanceof StatusError && error.code === 404) return undefined
      throw error
    })
    if (object === undefined) {
      this.#settled(cluster, entry, 0, 'its object was deleted')
      return
    }
    const { local, base } = entry
    const settlement = settleSwitch(local, base, object, clock.now())
    if (settlement.kind === 'write') {
      const target = { client, kind: UPSTREAM_CLUSTERS, fieldManager: MANAGER }
      const written = await patchAsSeen(target, object, patchOf(local))
      this.#settled(cluster, entry, generationOf(written), `written to the object: ${settlement.because}`)
    } else if (settlement.kind === 'same')
      this.#settled(cluster, entry, generationOf(object), 'the object says the same')
    else {
      log.warn('a local degrade switch is in conflict with its object, which wins', {
        cluster,
        why: settlement.because,
      })
      this.#settled(cluster, entry, generationOf(object), `the object wins: ${settlement.because}`)
    }
  }

  #settled(cluster: string, entry: Entry, generation: number, outcome: string): void {
    // Thrown again in the meantime.
    if (this.#entries.get(cluster) !== entry) return
    Object.assign(entry, { settledAt: generation, outcome })
    if (this.#dropSettled().has(cluster) && this.#last !== undefined)
      this.#tell({ ...this.#last, changed: new Set([cluster]) })
  }

  /** Drops switches whose object has been delivered in its settled state. */
  #dropSettled(): ReadonlySet<string> {
    const { dataDir, log } = this.#deps
    const dropped = new Set<string>()
    for (const [cluster, { local, settledAt, outcome }] of this.#entries) {
      const delivered = this.#last?.clusters.get(cluster)
      if (settledAt === undefined) continue
      if (delivered !== undefined && (delivered.object.metadata.generation ?? 0) < settledAt) continue
      // A new one may have been written: the next check handles that.
      const file = readSwitchFile(switchDirectory(dataDir), `${cluster}.yaml`, process.getuid?.() ?? 0)
      this.#drop(cluster)
      dropped.add(cluster)
      if (file === undefined || 'error' in file || isSame(file.local, local)) this.#remove(cluster)
      log.info('a local degrade switch is no longer needed', { cluster, mode: local.mode, outcome })
      this.#end(local, outcome)
    }
    if (dropped.size > 0) this.#write()
    return dropped
  }

  /** Never throws: the object's change is applied in any case. */
  #remove(cluster: string): void {
    try {
      removeSwitch(this.#deps.dataDir, cluster)
    } catch (error) {
      this.#deps.log.error(
        'the file of a local degrade switch cannot be removed, and takes effect again after a restart',
        {
          cluster,
          error,
        },
      )
    }
  }

  #drop(cluster: string): void {
    this.#entries.delete(cluster)
    this.#writes.forget(cluster)
  }

  #end({ cluster, at, by }: LocalSwitch, outcome: string): void {
    this.#ended = [...this.#ended, { cluster, at, by, outcome }].slice(-MAX_ENDED)
  }

  #write(): void {
    const switches = [...this.#entries].map(([cluster, { local, base, inForceAt }]): SwitchState => {
      const isMissing = this.#last?.clusters.has(cluster) === false
      const problem = isMissing ? `there is no cluster ${cluster}` : this.#writes.faultOf(cluster)
      return { ...local, inForceAt, problem, ...(base !== undefined && { base }) }
    })
    try {
      const errors = Object.fromEntries(this.#errors)
      writeSwitchStates(this.#deps.dataDir, { switches, ended: this.#ended, errors })
    } catch (error) {
      this.#deps.log.error('the state of local degrade switches cannot be written', { error })
    }
  }
}

const NEW = { inForceAt: '', settledAt: undefined, outcome: '' }

/** Replaces the object's own switch; the rest of spec.degrade (exempt, auto, ...) stays. */
function switched({ object, revision }: ResolvedCluster, local: LocalSwitch): ResolvedCluster {
  const {
    recovery: _,
    reason: _reason,
    expiresAt: _ends,
    shadow: _shadow,
    since: _since,
    ...rest
  } = object.spec.degrade ?? {}
  const degrade: Degrade = {
    ...rest,
    mode: local.mode,
    ...(local.reason !== '' && { reason: local.reason }),
    ...(local.expiresAt !== '' && { expiresAt: local.expiresAt }),
    ...(local.shadow && { shadow: true }),
    ...(local.mode === 'Limited' && { since: local.at }),
  }
  const spec = { ...object.spec, degrade }
  return { object: { ...object, spec }, revision: `${revision} local ${local.mode} ${local.at} ${local.by}` }
}

function patchOf({ mode, reason, expiresAt, shadow, at }: LocalSwitch): JsonObject {
  const degrade = {
    mode,
    reason: reason === '' ? null : reason,
    expiresAt: expiresAt === '' ? null : expiresAt,
    shadow: shadow ? true : null,
    since: mode === 'Limited' ? at : null,
    recovery: null,
    ...(mode === 'Off' && { before: null }),
  }
  return { spec: { degrade } }
}

function generationOf(object: JsonObject): number {
  return Number(recordOf(object['metadata'])['generation'] ?? 0)
}

function isSame(a: LocalSwitch, b: LocalSwitch): boolean {
  const fields = ['mode', 'reason', 'expiresAt', 'shadow', 'by', 'at'] as const
  return fields.every((field) => a[field] === b[field])
}

function problem(message: string, fix: string, cluster: string): SourceError {
  const where = { file: '', line: 0, path: 'spec.degrade', ...(cluster !== '' && { cluster }) }
  return { reason: 'FieldValueInvalid', ...where, message, fix, severity: 'warning' }
}
