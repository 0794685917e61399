// Reconciles one workload and its protectors. The cache may be stale, so the objects are read again before a write. Each write
// carries the resourceVersion it was decided on; on a conflict the workload is reconciled again.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { ObjectClient, ObjectName } from '../../../kube/api/object-client.ts'
import type { ResourceKind } from '../../../kube/api/resource-kind.ts'
import { StatusError, statusError } from '../../../kube/api/status.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import {
  decideFor,
  factsOf,
  type GeneratorAction,
  type GeneratorDecision,
  type SourceFacts,
  type SourceRef,
} from '../../core/generator/decision.ts'
import { newProtector, repairedProtector } from '../../core/generator/derive-protector.ts'
import { claimedSource, protectorName, withFinalizer } from '../../core/generator/names.ts'
import type { HistoryLimits } from '../../core/history/cell-history.ts'
import { cellsToRemove, statusWithoutCells, withoutRemoveCells } from '../../core/ledger/cells.ts'
import { readProtector } from '../../core/requests/read-protector.ts'

export interface SettleDeps {
  readonly workloads: ObjectClient
  readonly core: ObjectClient
  isLeader(): boolean
  readonly limits: HistoryLimits
  /** Wall clock, milliseconds. */
  now(): number
}

/** What was found and done for a workload. */
export interface SettleResult {
  readonly decision: GeneratorDecision
  readonly facts: SourceFacts | undefined
}

/**
 * @param otherNames names of protectors that may be superfluous
 * @throws {Error} of the clients; earlier writes stay
 */
export async function settleSource(
  deps: SettleDeps,
  ref: SourceRef,
  otherNames: readonly string[],
): Promise<SettleResult> {
  const { kind, namespace, name } = ref
  const source = await found(deps.workloads, kind.resource, { namespace, name })
  const own = await found(deps.core, POD_PROTECTORS, { namespace, name: protectorName(kind, name) })
  const others: JsonObject[] = []
  for (const other of otherNames) {
    const protector = await found(deps.core, POD_PROTECTORS, { namespace, name: other })
    const claimed = protector === undefined ? undefined : claimedSource(protector, [kind])
    if (protector !== undefined && claimed?.name === name) others.push(protector)
  }
  const facts = source === undefined ? undefined : factsOf(source, kind)
  const decision = decideFor(ref, facts, own, others)
  const writes = new SourceWrites(deps, ref, facts, source, own === undefined ? others : [own, ...others])
  for (const action of decision.actions) {
    if (!deps.isLeader()) break
    await writes.write(action)
  }
  return { decision, facts }
}

/** A protector without a workload: cells are still removed on request. */
export async function settleStray(deps: SettleDeps, at: ObjectName): Promise<void> {
  const protector = await found(deps.core, POD_PROTECTORS, at)
  if (protector !== undefined && deps.isLeader()) await removeCells(deps, protector)
}

class SourceWrites {
  readonly #deps: SettleDeps
  readonly #ref: SourceRef
  readonly #facts: SourceFacts | undefined
  #source: JsonObject | undefined
  readonly #protectors = new Map<string, JsonObject>()

  constructor(
    deps: SettleDeps,
    ref: SourceRef,
    facts: SourceFacts | undefined,
    source: JsonObject | undefined,
    protectors: readonly JsonObject[],
  ) {
    this.#deps = deps
    this.#ref = ref
    this.#facts = facts
    this.#source = source
    for (const protector of protectors) this.#protectors.set(nameIn(protector), protector)
  }

  async write(action: GeneratorAction): Promise<void> {
    try {
      await this.#do(action)
    } catch (error) {
      // A missing namespace is not a race.
      const isGone = error instanceof StatusError && error.code === 404 && action.type !== 'CreateProtector'
      throw isGone ? statusError('Conflict', error.message) : error
    }
  }

  async #do(action: GeneratorAction): Promise<void> {
    const { core } = this.#deps
    switch (action.type) {
      case 'AddSourceFinalizer':
        return this.#finalizeSource(true)
      case 'RemoveSourceFinalizer':
        return this.#finalizeSource(false)
      case 'CreateProtector':
        return this.#create()
      case 'RepairProtector':
        return this.#change(action.name, (protector) => this.#repaired(protector))
      case 'RemoveProtectorFinalizer':
        return this.#change(action.name, (protector) => withFinalizer(protector, false))
      case 'DeleteProtector':
        return core.delete(POD_PROTECTORS, { namespace: this.#ref.namespace, name: action.name })
      case 'RemoveCells': {
        const protector = this.#protectors.get(action.name)
        if (protector !== undefined) this.#protectors.set(action.name, await removeCells(this.#deps, protector))
      }
    }
  }

  async #finalizeSource(present: boolean): Promise<void> {
    if (this.#source === undefined) return
    const { resource } = this.#ref.kind
    this.#source = await this.#deps.workloads.update(resource, withFinalizer(this.#source, present))
  }

  async #create(): Promise<void> {
    const requirement = this.#facts?.requirement
    if (this.#source === undefined || requirement?.kind !== 'protect') return
    await this.#deps.core.create(POD_PROTECTORS, newProtector(this.#source, this.#ref.kind, requirement.spec))
  }

  #repaired(protector: JsonObject): JsonObject | undefined {
    const requirement = this.#facts?.requirement
    if (requirement?.kind !== 'protect') return undefined
    return repairedProtector(protector, this.#ref.kind, this.#ref.name, requirement.spec)
  }

  async #change(name: string, how: (protector: JsonObject) => JsonObject | undefined): Promise<void> {
    const protector = this.#protectors.get(name)
    const changed = protector === undefined ? undefined : how(protector)
    if (changed !== undefined) this.#protectors.set(name, await this.#deps.core.update(POD_PROTECTORS, changed))
  }
}

/** Writes the status first: removing the annotation completes the request. */
async function removeCells(deps: SettleDeps, protector: JsonObject): Promise<JsonObject> {
  const cells = cellsToRemove(protector)
  if (cells === undefined) return protector
  const read = readProtector(protector, undefined).protector
  const status = statusWithoutCells(read, cells, deps.limits, deps.now() * 1_000)
  const settled =
    status === undefined ? protector : await deps.core.update(POD_PROTECTORS, { ...protector, status }, 'status')
  return deps.core.update(POD_PROTECTORS, withoutRemoveCells(settled))
}

async function found(client: ObjectClient, kind: ResourceKind, at: ObjectName): Promise<JsonObject | undefined> {
  try {
    return await client.get(kind, at)
  } catch (error) {
    if (error instanceof StatusError && error.code === 404) return undefined
    throw error
  }
}

function nameIn({ metadata }: JsonObject): string {
  return String((metadata as JsonObject)['name'])
}
