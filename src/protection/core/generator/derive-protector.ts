// Derives the PodProtector that a workload should have (Podseidon's generator/resource/deployment/deployment.go, for any kind), and how the
// existing one differs.

import { finalizersOf, type JsonObject, mapOf, nameOf } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { PodProtector, PodProtectorSpec } from '../../api/pod-protector.ts'
import { GENERATOR_FINALIZER } from '../../api/protection.ts'
import { POD_PROTECTOR_API_VERSION, POD_PROTECTOR_KIND } from '../../api/schema.ts'
import { minAvailableOf, type Rounding } from '../quota/min-available.ts'
import { builtInKind, fieldAt, type GeneratorKind, pathText } from './kinds.ts'
import {
  claimedSource,
  isTerminating,
  ownersBesideSource,
  protectorName,
  sourceAnnotations,
  sourceLabels,
  withFinalizer,
} from './names.ts'

/** The part of a spec that the generator writes; admissionHistoryConfig is left to people. */
type DerivedSpec = Pick<PodProtectorSpec, 'minAvailable' | 'minReadySeconds' | 'selector'>

export type Requirement =
  | { readonly kind: 'protect'; readonly spec: DerivedSpec }
  | { readonly kind: 'none'; readonly why: 'Terminating' | 'LabelSelectorMismatch' | 'OwnedByController' }
  /** It can't be determined: nothing is changed. */
  | { readonly kind: 'unclear'; readonly message: string }

/** @param workload an object of the kind; any part of it may be malformed */
export function requirementOf(workload: JsonObject, kind: GeneratorKind): Requirement {
  const { fields } = kind
  // Checked before any field that may be malformed: such a workload could otherwise never be deleted.
  const replicas = fieldAt(workload, fields.replicas) ?? 1
  const isCount = typeof replicas === 'number' && Number.isInteger(replicas) && replicas >= 0
  const keeps = kind.protectNonZero && !(isCount && replicas === 0)
  if (isTerminating(workload) && !keeps) return { kind: 'none', why: 'Terminating' }
  if (!kind.protectionSelector.matches(mapOf(workload, 'labels'))) return { kind: 'none', why: 'LabelSelectorMismatch' }
  if (kind.withoutController && hasController(workload)) return { kind: 'none', why: 'OwnedByController' }
  if (!isCount) return unclear(pathText(fields.replicas), 'is not a number of pods')
  const minReadySeconds = fieldAt(workload, fields.minReadySeconds) ?? 0
  if (typeof minReadySeconds !== 'number' || !Number.isInteger(minReadySeconds)) {
    return unclear(pathText(fields.minReadySeconds), 'is not a number of seconds')
  }
  const selector = selectorOf(fieldAt(workload, fields.selector))
  if (typeof selector === 'string') return unclear(pathText(fields.selector), selector)
  const minAvailable = minAvailableIn(workload, kind, replicas)
  if (minAvailable === undefined) {
    return unclear(pathText(fields.maxUnavailable), 'is neither a number nor a percentage')
  }
  return { kind: 'protect', spec: { minAvailable, minReadySeconds: Math.max(0, minReadySeconds), selector } }
}

function minAvailableIn(workload: JsonObject, kind: GeneratorKind, replicas: number): number | undefined {
  const { fields, rounding, neverZero } = kind
  // All pods are deleted before new ones are created: a protector that kept any would block the rollout.
  if (fieldAt(workload, fields.strategyType) === 'Recreate') return 0
  return minAvailableOf({
    replicas,
    maxUnavailable: fieldAt(workload, fields.maxUnavailable) ?? kind.defaultMaxUnavailable,
    maxSurge: fieldAt(workload, fields.maxSurge),
    rounding,
    neverZero,
  })
}

/** A new protector for the workload. */
export function newProtector(workload: JsonObject, kind: GeneratorKind, spec: DerivedSpec): JsonObject {
  const source = nameOf(workload)
  const annotations = sourceAnnotations(source)
  return {
    apiVersion: POD_PROTECTOR_API_VERSION,
    kind: POD_PROTECTOR_KIND,
    metadata: {
      name: protectorName(kind, source),
      namespace: isRecord(workload['metadata']) ? workload['metadata']['namespace'] : undefined,
      labels: sourceLabels(kind, source),
      ...(Object.keys(annotations).length > 0 && { annotations }),
      finalizers: [GENERATOR_FINALIZER],
    },
    spec,
  }
}

/**
 * The protector with the derived fields restored; everything else set by hand stays.
 * @returns undefined if nothing differs
 */
export function repairedProtector(
  protector: JsonObject,
  kind: GeneratorKind,
  source: string,
  derived: DerivedSpec,
): JsonObject | undefined {
  const before = recordOf(protector['spec'])
  const config = before['admissionHistoryConfig']
  const spec = { ...derived, ...(isRecord(config) && { admissionHistoryConfig: config }) }
  const metadata = protector['metadata'] as JsonObject
  const labels = mapOf(protector, 'labels')
  const annotations = mapOf(protector, 'annotations')
  const wantedLabels = { ...labels, ...sourceLabels(kind, source) }
  const wantedAnnotations = { ...annotations, ...sourceAnnotations(source) }
  const owners = ownersBesideSource(protector, kind, source)
  const ownersBefore = Array.isArray(metadata['ownerReferences']) ? metadata['ownerReferences'].length : 0
  // An API server accepts no new finalizers on an object that is being deleted.
  const needsFinalizer = !isTerminating(protector) && !finalizersOf(protector).includes(GENERATOR_FINALIZER)
  const isAsDerived =
    sameSpec(before, spec) &&
    sameJson(labels, wantedLabels) &&
    sameJson(annotations, wantedAnnotations) &&
    owners.length === ownersBefore &&
    !needsFinalizer
  if (isAsDerived) return undefined
  const { ownerReferences: _, ...rest } = metadata
  const repaired = {
    ...protector,
    metadata: {
      ...rest,
      labels: wantedLabels,
      ...(Object.keys(wantedAnnotations).length > 0 && { annotations: wantedAnnotations }),
      ...(owners.length > 0 && { ownerReferences: owners }),
    },
    spec,
  }
  return needsFinalizer ? withFinalizer(repaired, true) : repaired
}

/** An empty admissionHistoryConfig and null values are ignored. */
function sameSpec(before: JsonObject, wanted: JsonObject): boolean {
  const said = Object.fromEntries(Object.entries(before).filter(([, value]) => value !== null))
  return sameJson(said, wanted)
}

function selectorOf(value: unknown): LabelSelector | string {
  if (!isRecord(value)) return 'is not a pod selector'
  const isPlain = value['matchLabels'] === undefined && value['matchExpressions'] === undefined
  const selector = (isPlain ? { matchLabels: value } : value) as LabelSelector
  try {
    if (compileSelector(selector).requirements.length === 0) return 'is empty, so it selects all pods of the namespace'
  } catch (error) {
    return `cannot be read: ${errorMessage(error)}`
  }
  return selector
}

function hasController({ metadata }: JsonObject): boolean {
  const owners = isRecord(metadata) ? metadata['ownerReferences'] : undefined
  return Array.isArray(owners) && owners.some((owner: unknown) => isRecord(owner) && owner['controller'] === true)
}

function unclear(where: string, message: string): Requirement {
  return { kind: 'unclear', message: `${where} ${message}` }
}

const ROUNDINGS: readonly Rounding[] = ['Podseidon', 'Kubernetes']

/**
 * What a PodProtector requires once its workload is scaled. The generator follows the workload, so a scale-down that the current
 * minAvailable forbids would be allowed a moment later.
 * @param workload a Deployment, StatefulSet or ReplicaSet in the protector's namespace
 * @returns minAvailable; unchanged for a protector not generated from this workload: it names another one, or other replicas, like that of
 * a workload spread over several clusters
 */
export function minAvailableAfter(
  { metadata, spec }: PodProtector,
  workload: JsonObject,
  kindName: string,
  replicas: number,
): number {
  for (const rounding of ROUNDINGS) {
    const kind = builtInKind(kindName, { rounding })
    if (kind === undefined || claimedSource({ metadata }, [kind])?.name !== recordOf(workload['metadata'])['name'])
      continue
    const before = requirementOf(workload, kind)
    if (before.kind !== 'protect' || before.spec.minAvailable !== spec.minAvailable) continue
    const after = requirementOf({ ...workload, spec: { ...recordOf(workload['spec']), replicas } }, kind)
    if (after.kind === 'protect') return after.spec.minAvailable
  }
  return spec.minAvailable
}
