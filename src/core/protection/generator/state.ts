// A workload and its protectors as input of the decision table.

import { type JsonObject, nameOf } from '../../../api/kube/json-object.ts'
import { cellsToRemove } from '../ledger/remove-cells.ts'
import { decide, type GeneratorDecision, type ProtectorState } from './decision.ts'
import { type Requirement, repairedProtector, requirementOf } from './derive-protector.ts'
import type { GeneratorKind } from './kinds.ts'
import { hasFinalizer, isTerminating, protectorName } from './names.ts'

/** Names a workload, which may not exist. */
export interface SourceRef {
  readonly kind: GeneratorKind
  readonly namespace: string
  readonly name: string
}

/** What is known of a workload. */
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
  return decide(
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
