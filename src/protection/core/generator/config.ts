// The generator's configuration file:
//
//   kinds:
//     - kind: Deployment
//       protectionSelector: { matchLabels: { podseidon.kubewharf.io/protect: 'true' } }
//       protectNonZero: true
//     - { group: argoproj.io, version: v1alpha1, kind: Rollout, plural: rollouts, rounding: Kubernetes }

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { isObjectName } from '../../../kit/api/validation/name-syntax.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import { minAvailableOf, type Rounding } from '../quota/min-available.ts'
import { builtInKind, customKind, type GeneratorKind, type GeneratorKindOptions, parseFieldPath } from './kinds.ts'

interface GeneratorConfig {
  /** Valid kinds only; none = nothing is generated. */
  readonly kinds: readonly GeneratorKind[]
  readonly problems: readonly FieldError[]
}

const KIND_FIELDS = [
  'group',
  'version',
  'kind',
  'plural',
  'prefix',
  'protectionSelector',
  'protectNonZero',
  'rounding',
  'defaultMaxUnavailable',
  'fields',
]
const PATHS = ['replicas', 'minReadySeconds', 'selector', 'maxUnavailable', 'maxSurge', 'strategyType'] as const
const ROUNDINGS: readonly Rounding[] = ['Podseidon', 'Kubernetes']
const APPS = ['Deployment', 'StatefulSet', 'ReplicaSet']
const PREFIX = /^[a-z][a-z0-9]*$/
const VERSION = /^v[0-9]+((alpha|beta)[0-9]+)?$/
const KIND = /^[A-Z][A-Za-z0-9]*$/

/** Accepts any JSON value; never throws. null and undefined are an empty configuration. */
export function parseGeneratorConfig(data: unknown): GeneratorConfig {
  const out = new FieldErrors()
  const problems = out.found
  const report: Report = (path, message, fix) => out.invalid(path, message, fix)
  if (data === undefined || data === null) return { kinds: [], problems }
  if (!isRecord(data)) {
    report('', `${shown(data)} is not a generator configuration`, 'write a map with the list `kinds`')
    return { kinds: [], problems }
  }
  unknownFields(data, ['kinds'], '', report)
  const list = data['kinds'] ?? []
  if (!Array.isArray(list)) {
    report('kinds', 'is not a list', 'write one entry for each kind of workload, as `- kind: Deployment`')
    return { kinds: [], problems }
  }
  const kinds: GeneratorKind[] = []
  for (const [index, item] of list.entries()) {
    const where = `kinds[${index}]`
    const before = problems.length
    const kind = readKind(item, where, report)
    if (kind === undefined || problems.length > before) continue
    const { group, plural } = kind.resource
    if (kinds.some(({ resource }) => resource.group === group && resource.plural === plural)) {
      const fix = 'write one entry for it; a protectionSelector with matchExpressions can select by several values'
      report(where, `${kind.resource.kind} is listed twice`, fix)
    } else if (kinds.some(({ prefix }) => prefix === kind.prefix)) {
      const message = `another entry's protectors are named ${kind.prefix}-..., too`
      report(where, message, 'remove one of the two, or set its `prefix`')
    } else kinds.push(kind)
  }
  return { kinds, problems }
}

type Report = (where: string, message: string, fix: string) => void

function readKind(item: unknown, where: string, report: Report): GeneratorKind | undefined {
  if (!isRecord(item)) {
    report(where, `${shown(item)} is not a kind of workload`, 'write a map, as `kind: Deployment`')
    return undefined
  }
  unknownFields(item, KIND_FIELDS, where, report)
  const { kind } = item
  if (typeof kind !== 'string' || !KIND.test(kind)) {
    report(`${where}.kind`, `${shown(kind)} is not a kind`, 'write it as manifests do, such as Deployment')
    return undefined
  }
  const options = readOptions(item, where, report)
  if (options === undefined) return undefined
  const group = item['group'] ?? (APPS.includes(kind) ? 'apps' : undefined)
  if (group === 'apps' && APPS.includes(kind)) return builtInKind(kind, options)
  return readCustomKind(item, kind, options, where, report)
}

function readCustomKind(
  item: JsonObject,
  kind: string,
  options: GeneratorKindOptions,
  where: string,
  report: Report,
): GeneratorKind | undefined {
  const { group, version, plural } = item
  if (typeof group !== 'string' || (group !== '' && !isObjectName(group))) {
    const near = group === undefined ? nearestName(kind, APPS) : ''
    if (near !== '') report(`${where}.kind`, `${shown(kind)} is not known without a group`, `did you mean ${near}?`)
    else
      report(`${where}.group`, `${shown(group)} is not an API group`, 'write the part of apiVersion before the slash')
    return undefined
  }
  if (typeof version !== 'string' || !VERSION.test(version)) {
    report(
      `${where}.version`,
      `${shown(version)} is not an API version`,
      'write the part of apiVersion after the slash',
    )
    return undefined
  }
  if (typeof plural !== 'string' || !PREFIX.test(plural)) {
    report(
      `${where}.plural`,
      `${shown(plural)} is not a resource name`,
      'write the name that `kubectl api-resources` shows',
    )
    return undefined
  }
  return customKind({ group, version, kind, plural }, options)
}

function readOptions(item: JsonObject, where: string, report: Report): GeneratorKindOptions | undefined {
  const { prefix, protectionSelector, protectNonZero, rounding, defaultMaxUnavailable } = item
  let sound = true
  const wrong = (field: string, message: string, fix: string): void => {
    report(`${where}.${field}`, message, fix)
    sound = false
  }
  if (prefix !== undefined && !(typeof prefix === 'string' && PREFIX.test(prefix))) {
    wrong(
      'prefix',
      `${shown(prefix)} is not a valid name prefix`,
      'write lower-case letters and digits, without a dash',
    )
  }
  if (protectNonZero !== undefined && typeof protectNonZero !== 'boolean') {
    wrong('protectNonZero', `${shown(protectNonZero)} is neither true nor false`, 'write true or false')
  }
  if (rounding !== undefined && !ROUNDINGS.some((known) => known === rounding)) {
    wrong('rounding', `${shown(rounding)} is not known`, `write ${ROUNDINGS.join(' or ')}`)
  }
  if (defaultMaxUnavailable !== undefined && !isIntOrPercent(defaultMaxUnavailable)) {
    wrong('defaultMaxUnavailable', `${shown(defaultMaxUnavailable)} is not a number of pods`, 'write 1 or "25%"')
  }
  try {
    compileSelector((protectionSelector ?? {}) as LabelSelector)
  } catch (error) {
    const message = error instanceof Error ? error.message : 'it cannot be read'
    wrong('protectionSelector', message, 'write matchLabels and matchExpressions, as in a Deployment')
  }
  const fields = readPaths(item['fields'] ?? {}, `${where}.fields`, report)
  if (!sound || fields === undefined) return undefined
  return { ...(item as GeneratorKindOptions), fields }
}

function readPaths(value: unknown, where: string, report: Report): GeneratorKindOptions['fields'] | undefined {
  if (!isRecord(value)) {
    report(where, 'is not a map', 'write paths, as `replicas: .spec.replicas`')
    return undefined
  }
  unknownFields(value, PATHS, where, report)
  const paths: [string, readonly string[]][] = []
  for (const name of PATHS) {
    const text = value[name]
    if (text === undefined) continue
    const path = typeof text === 'string' ? parseFieldPath(text) : undefined
    if (path === undefined)
      report(`${where}.${name}`, `${shown(text)} is not a path`, "write as .spec.replicas or .a['b.c']")
    else paths.push([name, path])
  }
  return Object.fromEntries(paths)
}

function isIntOrPercent(maxUnavailable: unknown): boolean {
  const need = { replicas: 1, maxUnavailable, maxSurge: undefined, neverZero: false }
  return minAvailableOf({ ...need, rounding: 'Podseidon' }) !== undefined
}

function unknownFields(object: JsonObject, known: readonly string[], where: string, report: Report): void {
  for (const field of Object.keys(object)) {
    if (known.includes(field)) continue
    const near = nearestName(field, known)
    const path = where === '' ? field : `${where}.${field}`
    report(path, 'is not known', near === '' ? `write one of ${known.join(', ')}` : `did you mean ${near}?`)
  }
}
