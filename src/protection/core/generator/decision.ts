// Decides what the generator does for one workload and its protectors, by Podseidon's table (generator/generator/controller.go).

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { cellsToRemove } from '../ledger/cells.ts'
import { type Requirement, repairedProtector, requirementOf } from './derive-protector.ts'
import type { GeneratorKind } from './kinds.ts'
import { hasFinalizer, isTerminating, protectorName } from './names.ts'

/** Identifies a workload, which may not exist. */
export interface SourceRef {
  readonly kind: GeneratorKind
  readonly namespace: string
  readonly name: string
}

/** The facts about a workload. */
export interface SourceFacts {
  readonly terminating: boolean
  readonly finalizer: boolean
  readonly requirement: Requirement
}

/** @param others superfluous protectors */
export function decideFor(
  { kind, name }: SourceRef,
  facts: SourceFacts | undefined,
  protector: JsonObject | undefined,
  others: readonly JsonObject[],
): GeneratorDecision {
  const requirement = facts?.requirement ?? { kind: 'none' }
  const wanted = requirement.kind === 'protect' ? 'protector' : requirement.kind
  const isDrifted = (object: JsonObject): boolean =>
    requirement.kind === 'protect' && repairedProtector(object, kind, name, requirement.spec) !== undefined
  const own = protector === undefined ? undefined : stateOf(protector, isDrifted(protector))
  return decideProtector(
    facts,
    wanted,
    own,
    others.map((object) => stateOf(object, false)),
  )
}

export function factsOf(object: JsonObject, kind: GeneratorKind): SourceFacts {
  return {
    terminating: isTerminating(object),
    finalizer: hasFinalizer(object),
    requirement: requirementOf(object, kind),
  }
}

export function sourceKey({ kind, namespace, name }: SourceRef): string {
  return `${kind.prefix} ${namespace}/${name}`
}

function stateOf(object: JsonObject, drifted: boolean): ProtectorState {
  return {
    name: nameOf(object),
    terminating: isTerminating(object),
    finalizer: hasFinalizer(object),
    drifted,
    removesCells: cellsToRemove(object) !== undefined,
  }
}

/** `namespace/name` of the protector that the workload should have. */
export function wantedKey({ kind, namespace, name }: SourceRef): string {
  return `${namespace}/${protectorName(kind, name)}`
}

export interface SourceState {
  readonly terminating: boolean
  /** It has the generator's finalizer. */
  readonly finalizer: boolean
}

export interface ProtectorState {
  readonly name: string
  readonly terminating: boolean
  readonly finalizer: boolean
  /** It differs from what is derived from the source. */
  readonly drifted: boolean
  /** Removal of cells is requested (REMOVE_CELL_ONCE_ANNOTATION). */
  readonly removesCells: boolean
}

/** A write. They run in sequence; after a failure the rest waits for the next turn. */
export type GeneratorAction =
  | { readonly type: 'AddSourceFinalizer' | 'CreateProtector' | 'RemoveSourceFinalizer' }
  | {
      readonly type: 'RemoveCells' | 'RepairProtector' | 'RemoveProtectorFinalizer' | 'DeleteProtector'
      /** The name of the protector. */
      readonly name: string
    }

/** Findings, as Podseidon counts them (metric generator_action). */
type GeneratorFinding = 'Create' | 'Sync' | 'Delete' | 'Dangling' | 'Finalizing' | 'CleanSourceFinalizer'

export interface GeneratorDecision {
  readonly actions: readonly GeneratorAction[]
  readonly findings: readonly GeneratorFinding[]
  readonly fault: GeneratorFault
}

type GeneratorFault =
  | ''
  /** The source may disappear at any time and leave its protector behind: it lost its finalizer and can't get it back. */
  | 'NoFinalizerInTerminatingSource'
  /** What the source needs can't be determined. */
  | 'Unclear'

/** What the source should have; 'unclear' = it can't be determined, and nothing is changed. */
export type Wanted = 'protector' | 'none' | 'unclear'

/**
 * @param source undefined = it does not exist (any more)
 * @param protector the one that the source has, or would have
 * @param others protectors with other names that also claim this source
 */
export function decideProtector(
  source: SourceState | undefined,
  wanted: Wanted,
  protector: ProtectorState | undefined,
  others: readonly ProtectorState[] = [],
): GeneratorDecision {
  const all = protector === undefined ? others : [protector, ...others]
  // A protector survives the loss of its source: that may be the very disaster it protects against.
  if (source === undefined) return untouched(all, all.map(dangling))
  if (wanted === 'unclear') return { ...untouched(all, []), fault: 'Unclear' }
  if (wanted === 'protector') return joined(protectSource(source, protector), unprotect(others))
  const cleaned = source.finalizer ? CLEANED : NOTHING
  return joined(unprotect(all), cleaned)
}

const NOTHING: GeneratorDecision = { actions: [], findings: [], fault: '' }
const CLEANED: GeneratorDecision = {
  actions: [{ type: 'RemoveSourceFinalizer' }],
  findings: ['CleanSourceFinalizer'],
  fault: '',
}

function protectSource(source: SourceState, protector: ProtectorState | undefined): GeneratorDecision {
  // The finalizer first: without it the source could disappear unnoticed and leave its protector behind.
  const addsFinalizer = !source.finalizer && !source.terminating
  const actions: GeneratorAction[] = addsFinalizer ? [{ type: 'AddSourceFinalizer' }] : []
  if (protector === undefined) {
    // Without a finalizer on the source, nothing would ever delete the new protector.
    if (source.finalizer || addsFinalizer) actions.push({ type: 'CreateProtector' })
    return { actions, findings: ['Create'], fault: '' }
  }
  actions.push(...removals(protector))
  if (protector.drifted) actions.push({ type: 'RepairProtector', name: protector.name })
  const lost = source.terminating && !source.finalizer
  return { actions, findings: ['Sync'], fault: lost ? 'NoFinalizerInTerminatingSource' : '' }
}

function unprotect(protectors: readonly ProtectorState[]): GeneratorDecision {
  const actions: GeneratorAction[] = []
  for (const { name, finalizer, terminating } of protectors) {
    if (finalizer) actions.push({ type: 'RemoveProtectorFinalizer', name })
    if (!terminating) actions.push({ type: 'DeleteProtector', name })
  }
  return { actions, findings: protectors.map(() => 'Delete'), fault: '' }
}

/** Performs only requested removals of cells. */
function untouched(protectors: readonly ProtectorState[], findings: readonly GeneratorFinding[]): GeneratorDecision {
  return { actions: protectors.flatMap(removals), findings, fault: '' }
}

function removals({ removesCells, name }: ProtectorState): GeneratorAction[] {
  return removesCells ? [{ type: 'RemoveCells', name }] : []
}

function dangling({ terminating }: ProtectorState): GeneratorFinding {
  return terminating ? 'Finalizing' : 'Dangling'
}

function joined(first: GeneratorDecision, second: GeneratorDecision): GeneratorDecision {
  return {
    actions: [...first.actions, ...second.actions],
    findings: [...first.findings, ...second.findings],
    fault: first.fault,
  }
}

/** The reports of the generator, for metrics. Called on the main thread, synchronously: they return at once and never throw. */
export interface GeneratorEvents {
  /**
   * A workload was reconciled.
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), `NoAnswer`, `Unclear` (what the workload needs can't be
   * determined) or `NoFinalizerInTerminatingSource`
   */
  reconciled(kind: GeneratorKind, namespace: string, error: string, durationMs: number): void
  found(kind: GeneratorKind, namespace: string, finding: GeneratorFinding): void
}
