// Which PodProtector belongs to which workload: names and labels. Object names may be longer than a label value, and a prefix makes them
// longer still; a name that is too long is truncated and ends in a hash of the whole.

import { finalizersOf, type JsonObject, mapOf } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { NameHash } from '../../../kit/core/text/name-hash.ts'
import { GENERATOR_FINALIZER, SOURCE_LABELS } from '../../api/protection.ts'
import type { GeneratorKind } from './kinds.ts'

const MAX_LABEL = 63
const MAX_NAME = 253
const HASH_DIGITS = 8
/** Part of stored names: must never change. */
const SEED = [0x67656e65, 0x7261746f] as const

/** `deployment-<name>`. */
export function protectorName({ prefix }: Pick<GeneratorKind, 'prefix'>, source: string): string {
  return shortened(`${prefix}-${source}`, MAX_NAME)
}

/** The labels that every generated protector has. */
export function sourceLabels({ resource }: Pick<GeneratorKind, 'resource'>, source: string): Record<string, string> {
  return {
    [SOURCE_LABELS.group]: shortened(resource.group, MAX_LABEL),
    [SOURCE_LABELS.kind]: shortened(resource.kind, MAX_LABEL),
    [SOURCE_LABELS.resource]: shortened(resource.plural, MAX_LABEL),
    [SOURCE_LABELS.name]: shortened(source, MAX_LABEL),
  }
}

/** The whole name, if it is too long for the label. */
export function sourceAnnotations(source: string): Record<string, string> {
  return source.length > MAX_LABEL ? { [SOURCE_LABELS.name]: source } : {}
}

/** The kind and name of the workload that a protector claims to be generated from; undefined = none of these kinds. */
export function claimedSource(
  protector: JsonObject,
  kinds: readonly GeneratorKind[],
): { readonly kind: GeneratorKind; readonly name: string } | undefined {
  const labels = mapOf(protector, 'labels')
  const label = labels[SOURCE_LABELS.name]
  if (label === undefined) return undefined
  const annotation = mapOf(protector, 'annotations')[SOURCE_LABELS.name]
  const name = annotation !== undefined && shortened(annotation, MAX_LABEL) === label ? annotation : label
  const kind = kinds.find((candidate) => {
    const expected = sourceLabels(candidate, name)
    return [SOURCE_LABELS.group, SOURCE_LABELS.kind].every((key) => labels[key] === expected[key])
  })
  return kind === undefined ? undefined : { kind, name }
}

export function hasFinalizer(object: JsonObject): boolean {
  return finalizersOf(object).includes(GENERATOR_FINALIZER)
}

export function isTerminating({ metadata }: JsonObject): boolean {
  return isRecord(metadata) && typeof metadata['deletionTimestamp'] === 'string'
}

/** The object with or without GENERATOR_FINALIZER. */
export function withFinalizer(object: JsonObject, present: boolean): JsonObject {
  const others = finalizersOf(object).filter((finalizer) => finalizer !== GENERATOR_FINALIZER)
  const metadata = object['metadata'] as JsonObject
  return { ...object, metadata: { ...metadata, finalizers: present ? [...others, GENERATOR_FINALIZER] : others } }
}

/**
 * Excludes owner references to the source, as Podseidon writes them: if a workload is erased from etcd, garbage collection would take its
 * protector along, just when it is needed. Labels identify the source, finalizers keep the two together.
 */
export function ownersBesideSource(protector: JsonObject, { resource }: GeneratorKind, source: string): unknown[] {
  const { metadata } = protector
  const owners = isRecord(metadata) ? metadata['ownerReferences'] : undefined
  if (!Array.isArray(owners)) return []
  return owners.filter((owner: unknown) => {
    if (!isRecord(owner)) return false
    const group = String(owner['apiVersion']).split('/').slice(0, -1).join('/')
    return !(group === resource.group && owner['kind'] === resource.kind && owner['name'] === source)
  })
}

/** Ends in a letter or digit, as names must. */
function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  const hash = new NameHash(SEED)
  hash.hash(text)
  const digits = (hash.low >>> 0).toString(16).padStart(HASH_DIGITS, '0')
  return `${text.slice(0, most - HASH_DIGITS - 1)}-${digits}`
}
