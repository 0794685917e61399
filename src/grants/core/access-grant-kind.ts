// AccessGrant's row of the scheme. Only the embedded API server has this kind: it knows the sender of each request, and its rules hold for every write.

import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import type { ConnectSubresource, ResourceKind } from '../../kube/api/resource-kind.ts'
import { ACCESS_GRANT_KIND, ACCESS_GRANT_SCHEMA } from '../api/access-grant.ts'
import { approved, asked, endedByUser, requesterClaims } from './decisions.ts'
import { checkAccessGrant } from './grant-checks.ts'
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
