// AccessGrant's row of the scheme. Only the embedded API server has this kind: it knows the sender of each request, and its rules hold for every write.
// Its checks hold what a schema cannot say. A group that a grant may give never begins with `system:`: what it gives is bounded by what the owners of
// the clusters have bound to their own groups, and never more than RBAC can say, as system:masters would.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, type Loose, listOf, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { FieldErrors, shown } from '../../kit/api/validation/field-errors.ts'
import { isObjectName } from '../../kit/api/validation/name-syntax.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { KindRole } from '../../kube/api/kind-role.ts'
import type { ConnectSubresource, ResourceKind } from '../../kube/api/resource-kind.ts'
import { SERVICE_ACCOUNT_PREFIX } from '../../kube/api/user.ts'
import {
  ACCESS_GRANT_KIND,
  ACCESS_GRANT_SCHEMA,
  type AccessGrantSpec,
  MAX_GRANT_CLUSTERS,
  MAX_GRANT_GROUPS,
} from '../api/access-grant.ts'
import { approved, asked, endedByUser, requesterClaims } from './decisions.ts'
import { readGrant } from './read-grant.ts'

/** Pending, approved and active ones that one user has asked for. */
export const MAX_OPEN_GRANTS = 20
/** The same, and those that have ended and are still kept: who asks and ends again and again does not fill the store. */
export const MAX_KEPT_GRANTS = 500

const APPROVAL: ConnectSubresource = {
  name: 'approval',
  group: 'portcullis.io',
  version: 'v1alpha1',
  kind: ACCESS_GRANT_KIND,
  methods: ['POST'],
  connect({ object, by, body, nowMs, setStatus }) {
    return { code: 201, body: setStatus({ ...approved(object, by, textOf(body['uid']), nowMs) }) }
  },
}

const END: ConnectSubresource = {
  name: 'end',
  group: 'portcullis.io',
  version: 'v1alpha1',
  kind: ACCESS_GRANT_KIND,
  methods: ['POST'],
  connect({ object, by, nowMs, setStatus }) {
    return { code: 201, body: setStatus({ ...endedByUser(object, by, nowMs) }) }
  },
}

export const ACCESS_GRANTS: ResourceKind = {
  group: 'portcullis.io',
  version: 'v1alpha1',
  kind: ACCESS_GRANT_KIND,
  listKind: 'AccessGrantList',
  plural: 'accessgrants',
  singular: 'accessgrant',
  shortNames: [],
  categories: [],
  namespaced: false,
  hasStatus: true,
  ownStatus: true,
  hasGeneration: true,
  subresources: [APPROVAL, END],
  schema: ACCESS_GRANT_SCHEMA,
  columns: [
    { name: 'Subject', type: 'string', description: 'Who gets the rights.', jsonPath: '.spec.subject.name' },
    {
      name: 'Clusters',
      type: 'string',
      description: 'Where.',
      jsonPath: '.spec.clusters',
      cell: ({ spec }) => namesOf(recordOf(spec)['clusters']),
    },
    {
      name: 'Groups',
      type: 'string',
      description: 'The groups that are given.',
      jsonPath: '.spec.groups',
      cell: ({ spec }) => namesOf(recordOf(spec)['groups']),
    },
    { name: 'Phase', type: 'string', description: 'Phase of the grant.', jsonPath: '.status.phase' },
    { name: 'Ends', type: 'string', description: 'When it ends at the latest.', jsonPath: '.status.endsAt' },
    {
      name: 'Requested by',
      type: 'string',
      description: 'The user that requested it.',
      jsonPath: '.status.requestedBy.user',
    },
    {
      name: 'Approved by',
      type: 'string',
      description: 'The user that approved it.',
      jsonPath: '.status.approvedBy.user',
    },
    { name: 'Reason', type: 'string', description: 'Why access is needed.', priority: 1, jsonPath: '.spec.reason' },
    { name: 'Age', type: 'date', description: 'When it was requested.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check: checkAccessGrant,
  prepare: asked,
  claims: requesterClaims,
  conflicts(object, others) {
    const out = new FieldErrors()
    const { status, phase } = readGrant(object)
    if (phase === 'Ended') return out.found
    const who = JSON.stringify(status.requestedBy?.user ?? '')
    const open = others.filter((other) => readGrant(other).phase !== 'Ended').length
    if (open >= MAX_OPEN_GRANTS) {
      out.forbidden('metadata.name', `${who} has ${open} open grants`, 'end some of them first')
    } else if (others.length >= MAX_KEPT_GRANTS) {
      const fix = 'have an administrator delete some that have ended'
      out.forbidden('metadata.name', `${who} has asked for ${others.length} grants that are still kept`, fix)
    }
    return out.found
  },
}

function namesOf(names: unknown): string {
  return Array.isArray(names) ? names.map(String).join(',') : ''
}

/** How long before its beginning a grant may be asked for. */
export const MAX_AHEAD_MS: number = 7 * 24 * 60 * 60 * 1000
const KUBERNETES_OWN = 'system:'
/** Groups of the embedded API server. */
const GATEWAY_OWN = 'portcullis:'

/** @param before the object that is replaced; undefined for a new one */
function checkAccessGrant(object: JsonObject, before: JsonObject | undefined): readonly FieldError[] {
  const out = new FieldErrors()
  if (before !== undefined) {
    if (!sameJson(object['spec'] ?? null, before['spec'] ?? null)) {
      out.forbidden('spec', 'cannot be changed', 'end this grant, and request another one')
    }
    return out.found
  }
  const spec: Loose<AccessGrantSpec> = isRecord(object['spec']) ? object['spec'] : {}
  checkSubject(spec.subject ?? {}, out)
  checkNames(spec, out)
  if (textOf(spec.reason).trim() === '') {
    out.invalid('spec.reason', 'is empty', 'write why: approvers and the audit log have nothing else')
  } else if (hasControl(textOf(spec.reason))) {
    out.invalid('spec.reason', 'has a control character', 'write one line of text')
  }
  checkBeginning(spec.notBefore, object, out)
  return out.found
}

function checkSubject({ kind, name }: Loose<AccessGrantSpec['subject']>, out: FieldErrors): void {
  const path = 'spec.subject.name'
  const text = textOf(name)
  const problem = headerProblem(text)
  if (problem !== '') out.invalid(path, problem, kind === 'Group' ? 'name a group' : 'name a user')
  else if (kind === 'User' && text.startsWith(KUBERNETES_OWN) && !text.startsWith(SERVICE_ACCOUNT_PREFIX)) {
    const fix = `name a user, or ${SERVICE_ACCOUNT_PREFIX}NAMESPACE:NAME`
    out.invalid(path, `${shown(text)} belongs to Kubernetes itself`, fix)
  } else if (kind === 'Group' && text.startsWith(KUBERNETES_OWN)) {
    out.invalid(path, `${shown(text)} is a group of Kubernetes, which any user may be in`, 'name a group of yours')
  }
}

/** Those beyond the number that the schema allows are refused by it, and not looked at. */
function checkNames(spec: Loose<AccessGrantSpec>, out: FieldErrors): void {
  const clusters = listOf(spec.clusters).slice(0, MAX_GRANT_CLUSTERS).map(textOf)
  const groups = listOf(spec.groups).slice(0, MAX_GRANT_GROUPS).map(textOf)
  for (const [index, name] of clusters.entries()) {
    const path = `spec.clusters[${index}]`
    if (!isObjectName(name)) out.invalid(path, `${shown(name)} is not a name`, 'name an UpstreamCluster; no patterns')
    else if (clusters.indexOf(name) !== index) out.duplicate(path, `${shown(name)} is named twice`, 'name it once')
  }
  for (const [index, name] of groups.entries()) {
    const path = `spec.groups[${index}]`
    const problem = headerProblem(name)
    if (problem !== '') out.invalid(path, problem, 'name a group')
    else if (name.startsWith(KUBERNETES_OWN) || name.startsWith(GATEWAY_OWN)) {
      const fix = 'bind a group of yours to a role in the cluster, cluster-admin for example, and name that group'
      out.forbidden(path, `${shown(name)} is not given by grants`, fix)
    } else if (groups.indexOf(name) !== index) out.duplicate(path, `${shown(name)} is named twice`, 'name it once')
  }
}

function checkBeginning(notBefore: string | undefined, object: JsonObject, out: FieldErrors): void {
  const atMs = Date.parse(textOf(notBefore))
  const askedMs = Date.parse(textOf(recordOf(object['metadata'])['creationTimestamp']))
  if (Number.isNaN(atMs) || Number.isNaN(askedMs) || atMs <= askedMs + MAX_AHEAD_MS) return
  out.invalid('spec.notBefore', 'is more than 7 days ahead', 'ask for it later')
}

/** Why a name cannot be sent as a header field, from which the cluster reads exactly this name; '' = it can. */
function headerProblem(name: string): string {
  if (name === '') return 'is empty'
  if (hasControl(name)) return `${shown(name)} has a control character`
  if (!name.isWellFormed()) return 'is not valid Unicode'
  return name.trim() === name ? '' : `${shown(name)} begins or ends with a space`
}

function hasControl(text: string): boolean {
  // With those of ISO 8859, and what turns the direction of text around: a terminal shows names and reasons to approvers.
  return /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(text)
}

const GROUP = 'portcullis.io'
const READS: readonly string[] = ['get', 'list', 'watch']

/** Who may ask for access. A requester ends its own grants alone, which the subresource sees to; it cannot delete any, so that a name is not used again. */
export const ACCESS_REQUESTER: KindRole = {
  name: 'access-requester',
  group: 'portcullis:access-requesters',
  rules: [
    { verbs: ['create', ...READS], group: GROUP, resources: ['accessgrants'] },
    { verbs: READS, group: GROUP, resources: ['accessgrants/status'] },
    { verbs: ['create'], group: GROUP, resources: ['accessgrants/end'] },
  ],
}

/** Who may approve it. */
export const ACCESS_APPROVER: KindRole = {
  name: 'access-approver',
  group: 'portcullis:access-approvers',
  rules: [
    { verbs: READS, group: GROUP, resources: ['accessgrants', 'accessgrants/status'] },
    { verbs: ['create'], group: GROUP, resources: ['accessgrants/approval', 'accessgrants/end'] },
  ],
}
