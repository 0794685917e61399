// What a federated cluster does not answer, and where a member does.

import { MOST_REQUIREMENTS } from '../../cache/request/selection.ts'
import type { CompiledCluster, CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import { splitName, splitNamespace } from '../../gateway/core/federation/names.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { AskedScope, NamedResource } from '../core/member-scope.ts'

/** The path of a request may be long. */
const MOST_SHOWN = 256
const RETRY_SECONDS = 1

/** No right is needed to be told so: it says nothing of any member. */
export function notFederated({ name }: CompiledCluster, path: string): Refusal {
  return refuse(
    'not-federated',
    `cluster "${name}" is read from its members, and spec.federation.resources does not name ${path.slice(0, MOST_SHOWN)}; ask a member at /clusters/MEMBER`,
  )
}

/** Where names are merged, all writes; otherwise those that no member is handed. */
export function readsOnly({ cluster, info }: Decision, federation: CompiledFederation): Refusal {
  const member = memberOf(federation, info) ?? 'MEMBER'
  const why = federation.mode === 'merged' ? 'is read only' : 'does not hand this over to its members'
  return refuse(
    'federated-write',
    `cluster "${cluster.name}" ${why}; write at /clusters/${member}, under its own names`,
  )
}

/** @param member its name, or those of several */
export function memberForbidden({ caller, info }: Decision, member: string): Refusal {
  const what = info.apiGroup === '' ? info.resource : `${info.resource}.${info.apiGroup}`
  const whole = info.subresource === '' ? what : `${what}/${info.subresource}`
  const asked = info.isResourceRequest ? whole : info.path.slice(0, MOST_SHOWN)
  return refuse('member-forbidden', `user "${caller.user.name}" cannot ${info.verb} ${asked} in cluster "${member}"`)
}

/** Whether it is there is not told to those who may not read it. */
export function objectMissing({ info: { apiGroup, resource, name } }: Decision): Refusal {
  const what = apiGroup === '' ? resource : `${resource}.${apiGroup}`
  return refuse('federated-object-missing', `${what} "${name}" not found`, { object: { kind: resource, name } })
}

/** A member that has not answered, or not proved that what is kept of it is current, may have it. */
export function objectUnknown({ info: { resource, name } }: Decision, [why = '']: readonly string[]): Refusal {
  return refuse('member-unavailable', `whether ${resource} "${name}" exists is not known: ${why}`)
}

/** A namespace that is not one of a member's. */
export function unknownName(
  { members, mode }: CompiledFederation,
  { namespace }: AskedScope,
  { isNamespaces }: NamedResource,
): Refusal | undefined {
  if (namespace === '' || isNamespaces || mode === 'merged') return undefined
  const member = splitNamespace(namespace)?.member
  if (members.some(({ name }) => name === member)) return undefined
  return refuse(
    'not-federated',
    `namespace "${namespace}" belongs to no member: namespaces are named MEMBER--NAMESPACE here`,
  )
}

/** @param slots of two that have it */
export function refuseDuplicate(
  { resource, name }: { resource: string; name: string },
  { members }: CompiledFederation,
  slots: readonly number[],
): Refusal {
  const names = slots.map((slot) => `"${members[slot]?.name ?? ''}"`).join(' and ')
  return refuse(
    'federated-name-twice',
    `${resource} "${name}" is in clusters ${names}; ask one of them at /clusters/MEMBER`,
    {
      object: { kind: resource, name },
    },
  )
}

export function refuseMergedWatch(): Refusal {
  return refuse(
    'federated-watch-merged',
    'two members may have objects of the same name, and a watch could not tell them apart: use mode prefixed, or declare uniqueNames for the resource',
  )
}

export function refuseSelector(): Refusal {
  return refuse(
    'bad-request',
    `a selector cannot be read, has more than ${MOST_REQUIREMENTS} requirements, or names a field that the resource does not have`,
  )
}

export function refuseExpired(): Refusal {
  return refuse('federated-version-gone', 'the resourceVersion is too old, or from before a member left')
}

export function refuseAhead(member: string): Refusal {
  return refuse('federated-version-ahead', 'Too large resource version', {
    rule: member,
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }],
  })
}

/** A watch has begun, and a member that had answered then does not prove that what was sent is current. */
export function refuseUnproved(): Refusal {
  return refuse('member-unavailable', 'a member could not be proved to be current: list, or watch again')
}

export function outOfMemory(): Refusal {
  return refuse('federated-memory', 'too many answers wait for clients of this user that do not read them', {
    retryAfterSeconds: RETRY_SECONDS,
  })
}

function memberOf({ members }: CompiledFederation, info: { namespace: string; name: string }): string | undefined {
  const named = (splitNamespace(info.namespace) ?? splitName(info.name))?.member
  return members.find(({ name }) => name === named)?.cluster
}
