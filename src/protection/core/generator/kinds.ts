// Workload kinds that PodProtectors are generated for, and the paths of the fields that a protector needs.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { DEPLOYMENTS, foreignKind, REPLICA_SETS, STATEFUL_SETS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ResourceKind } from '../../../kube/api/resource-kind.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { Rounding } from '../quota/min-available.ts'

/** One step of a path. */
const STEP = /\.([A-Za-z_][\w-]*)|\['([^']+)'\]/y

export interface GeneratorKind {
  readonly resource: ResourceKind
  /** Protectors are named `<prefix>-<name of the workload>`; different for each kind. */
  readonly prefix: string
  /** Only workloads whose labels match are protected. */
  readonly protectionSelector: CompiledSelector
  /** A deleted workload stays, with its protector, while its replicas are above 0. */
  readonly protectNonZero: boolean
  readonly rounding: Rounding
  readonly fields: GeneratorFields
  /** For a workload without that field. */
  readonly defaultMaxUnavailable: number | string
  /** With Kubernetes' rounding at least one pod may be unavailable. */
  readonly neverZero: boolean
  /** Only workloads that no controller owns: a ReplicaSet of a Deployment is protected by the Deployment's protector. */
  readonly withoutController: boolean
}

interface GeneratorFields {
  /** An absent value means 1. */
  readonly replicas: FieldPath
  /** An absent value means 0. */
  readonly minReadySeconds: FieldPath
  /** A metav1.LabelSelector, or a plain map of labels. */
  readonly selector: FieldPath
  readonly maxUnavailable: FieldPath
  readonly maxSurge: FieldPath
  /** If its value is `Recreate`, all pods go before new ones come. */
  readonly strategyType: FieldPath
}

/** Options for each kind. */
export interface GeneratorKindOptions {
  readonly protectionSelector?: LabelSelector
  readonly protectNonZero?: boolean
  readonly rounding?: Rounding
  readonly prefix?: string
  readonly defaultMaxUnavailable?: number | string
  readonly fields?: Partial<GeneratorFields>
}

const SPEC: GeneratorFields = {
  replicas: path('.spec.replicas'),
  minReadySeconds: path('.spec.minReadySeconds'),
  selector: path('.spec.selector'),
  maxUnavailable: path('.spec.strategy.rollingUpdate.maxUnavailable'),
  maxSurge: path('.spec.strategy.rollingUpdate.maxSurge'),
  strategyType: path('.spec.strategy.type'),
}

type BuiltIn = Pick<GeneratorKind, 'resource' | 'fields' | 'defaultMaxUnavailable' | 'neverZero' | 'withoutController'>

const BUILT_IN: readonly BuiltIn[] = [
  {
    resource: DEPLOYMENTS,
    fields: SPEC,
    defaultMaxUnavailable: '25%',
    neverZero: false,
    withoutController: false,
  },
  {
    // With OnDelete no field says how many may be unavailable, and pods are deleted by hand. One at a time, as in a rolling update: with 0
    // none could be deleted, and with more than 1 a quorum could be lost.
    resource: STATEFUL_SETS,
    fields: { ...SPEC, maxUnavailable: path('.spec.updateStrategy.rollingUpdate.maxUnavailable') },
    defaultMaxUnavailable: 1,
    neverZero: true,
    withoutController: false,
  },
  {
    // A ReplicaSet has no rollouts: uses a Deployment's defaults.
    resource: REPLICA_SETS,
    fields: SPEC,
    defaultMaxUnavailable: '25%',
    neverZero: false,
    withoutController: true,
  },
]

/** Deployment, StatefulSet or ReplicaSet of group apps; undefined = not one of them. */
export function builtInKind(kind: string, options: GeneratorKindOptions = {}): GeneratorKind | undefined {
  const builtIn = BUILT_IN.find(({ resource }) => resource.kind === kind)
  return builtIn === undefined ? undefined : withOptions(builtIn, options)
}

/** Any other kind. */
export function customKind(
  { group, version, kind, plural }: Pick<ResourceKind, 'group' | 'version' | 'kind' | 'plural'>,
  options: GeneratorKindOptions = {},
): GeneratorKind {
  const resource = foreignKind({ group, version, kind, plural, namespaced: true })
  const plain = { resource, fields: SPEC, defaultMaxUnavailable: '25%', neverZero: false, withoutController: false }
  return withOptions(plain, options)
}

/** @throws {SyntaxError} if protectionSelector can't be parsed */
function withOptions(base: BuiltIn, options: GeneratorKindOptions): GeneratorKind {
  return {
    ...base,
    prefix: options.prefix ?? base.resource.singular,
    protectionSelector: compileSelector(options.protectionSelector ?? {}),
    protectNonZero: options.protectNonZero ?? false,
    rounding: options.rounding ?? 'Podseidon',
    fields: { ...base.fields, ...options.fields },
    defaultMaxUnavailable: options.defaultMaxUnavailable ?? base.defaultMaxUnavailable,
  }
}

function path(text: string): FieldPath {
  return parseFieldPath(text) ?? []
}

/** The path to a field of an object, as in `.spec.strategy.type` or `.spec['a.b']`: the subset of JSONPath that leads to one value. */
type FieldPath = readonly string[]

/** undefined = it is not a path. */
export function parseFieldPath(text: string): FieldPath | undefined {
  const steps: string[] = []
  STEP.lastIndex = 0
  while (STEP.lastIndex < text.length) {
    const match = STEP.exec(text)
    if (match === null) return undefined
    steps.push(match[1] ?? match[2] ?? '')
  }
  return steps.length === 0 ? undefined : steps
}

/** The value, or undefined if something on the way is missing or null. */
export function fieldAt(object: unknown, path: FieldPath): unknown {
  let value = object
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = Reflect.get(value, step)
  }
  return value ?? undefined
}

export function pathText(path: FieldPath): string {
  return path.map((step) => (/^[A-Za-z_][\w-]*$/.test(step) ? `.${step}` : `['${step}']`)).join('')
}
