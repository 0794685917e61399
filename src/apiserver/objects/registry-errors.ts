// Errors of the registry, with kube-apiserver's messages (apimachinery/pkg/api/errors/errors.go).

import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import { type StatusDetails, StatusError, statusError } from '../../kube/api/status.ts'

type Named = Pick<ResourceKind, 'group' | 'plural'>

/** registry.OptimisticLockErrorMsg */
export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again'

export function detailsOf({ group, plural }: Named, name: string): StatusDetails {
  return { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: plural }
}

/** A plain error inside kube-apiserver, which therefore responds with 500 without a reason. */
export function unclassified(message: string): StatusError {
  return new StatusError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code: 500 })
}

export function notFound(kind: Named, name: string): StatusError {
  return statusError('NotFound', `${resourceName(kind)} ${JSON.stringify(name)} not found`, detailsOf(kind, name))
}

export function alreadyExists(kind: Named, name: string): StatusError {
  const message = `${resourceName(kind)} ${JSON.stringify(name)} already exists`
  return statusError('AlreadyExists', message, detailsOf(kind, name))
}

export function conflict(kind: Named, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${resourceName(kind)} ${JSON.stringify(name)}: ${why}`
  return statusError('Conflict', message, detailsOf(kind, name))
}

export function objectForbidden(kind: Named, name: string, why: string): StatusError {
  const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${why}`
  return statusError('Forbidden', message, detailsOf(kind, name))
}

export function methodNotAllowed(kind: Named, verb: string): StatusError {
  const message = `${verb} is not supported on resources of kind ${JSON.stringify(resourceName(kind))}`
  return statusError('MethodNotAllowed', message, detailsOf(kind, ''))
}
