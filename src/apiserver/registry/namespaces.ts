// Namespaces: nothing can be created in one that doesn't exist or is terminating, and its contents are deleted with it
// (apiserver/pkg/admission/plugin/namespace/lifecycle; pkg/registry/core/namespace/strategy.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { labelErrors } from '../../kit/api/validation/name-errors.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'
import { invalidValue } from '../../kube/core/objects/field-error.ts'
import type { StoredObject } from '../api/object-store.ts'
import { isBeingDeleted, metaOf, metaText, withFields, withMetadata } from '../objects/object-metadata.ts'
import { notFound, objectForbidden } from '../objects/registry-errors.ts'
import { keyOf, type RegistryContext, type RegistryDeps } from './context.ts'

/** Created at startup; `default` and `kube-system` can't be deleted. */
export const DEFAULT_NAMESPACES: readonly string[] = ['default', 'kube-system']

const NAME_LABEL = 'kubernetes.io/metadata.name'
/** The finalizer of kube-apiserver's namespaces: they wait for their contents. */
const FINALIZER = 'kubernetes'

export function isNamespace({ group, plural }: ResourceKind): boolean {
  return group === NAMESPACES.group && plural === NAMESPACES.plural
}

export function newNamespace(object: JsonObject): JsonObject {
  const labels = metaOf(object)['labels']
  const named = withMetadata(object, {
    labels: { ...(isRecord(labels) ? labels : {}), [NAME_LABEL]: metaText(object, 'name') },
  })
  return withFields(named, { spec: { finalizers: [FINALIZER] }, status: { phase: 'Active' } })
}

/** An update can't change spec.finalizers. */
export function keptNamespace(object: JsonObject, before: JsonObject): JsonObject {
  const labels = metaOf(object)['labels']
  const named = withMetadata(object, {
    labels: { ...(isRecord(labels) ? labels : {}), [NAME_LABEL]: metaText(before, 'name') },
  })
  return withFields(named, { spec: before['spec'] })
}

/** Names of namespaces are parts of host names: DNS labels, not subdomains. */
export function namespaceErrors(name: string): FieldError[] {
  return labelErrors(name).map((error) => invalidValue('metadata.name', name, error))
}

/**
 * @param name of the object to be created in it
 * @throws {StatusError} 404 if the namespace doesn't exist, 403 if it is terminating
 */
export function requireNamespace(context: RegistryDeps, kind: ResourceKind, namespace: string, name: string): void {
  if (!kind.namespaced) return
  const stored = context.store.get(keyOf(NAMESPACES, { namespace: '', name: namespace }))
  if (stored === undefined) throw notFound(NAMESPACES, namespace)
  if (!isBeingDeleted(stored.object)) return
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  const { status } = objectForbidden(kind, name, why)
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  }
  throw new StatusError({ ...status, details: { ...status.details, causes: [cause] } })
}

/** @throws {StatusError} 403 for a namespace that must exist */
export function refuseImmortal(name: string): void {
  if (DEFAULT_NAMESPACES.includes(name)) throw objectForbidden(NAMESPACES, name, 'this namespace may not be deleted')
}

/** A terminating namespace that still has contents. */
export function terminating(namespace: JsonObject): JsonObject {
  const { status } = namespace
  return withFields(namespace, { status: { ...(isRecord(status) ? status : {}), phase: 'Terminating' } })
}

interface Content {
  readonly kind: ResourceKind
  readonly stored: StoredObject
}

/** Everything in the namespace. */
export function contentsOf(context: RegistryContext, namespace: string): Content[] {
  return context.kinds
    .filter(({ namespaced }) => namespaced)
    .flatMap((kind) => context.store.list(resourceName(kind), { namespace }).map((stored) => ({ kind, stored })))
}

/** The namespace, if it is waiting only for this object. */
export function waitingNamespace(context: RegistryContext, last: StoredObject): StoredObject | undefined {
  if (last.namespace === '') return undefined
  const namespace = context.store.get(keyOf(NAMESPACES, { namespace: '', name: last.namespace }))
  if (namespace === undefined || !isBeingDeleted(namespace.object)) return undefined
  const others = contentsOf(context, last.namespace).some(
    ({ stored }) => stored.resource !== last.resource || stored.name !== last.name,
  )
  return others || !isReady(namespace.object) ? undefined : namespace
}

/** Whether the namespace is waiting only for its contents. */
function isReady(namespace: JsonObject): boolean {
  const { finalizers } = metaOf(namespace)
  return !Array.isArray(finalizers) || finalizers.length === 0
}
