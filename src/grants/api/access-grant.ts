// AccessGrant: more rights for a time, which one user asks for and another one approves. Types and schema.

import {
  also,
  atMost,
  atomic,
  integer,
  kubeObject,
  list,
  object,
  oneOf,
  text,
  time,
  type ValueOf,
} from '../../kit/api/json/json-schema.ts'

export const ACCESS_GRANT_KIND = 'AccessGrant'
export const ACCESS_GRANT_API_VERSION = 'portcullis.io/v1alpha1'

/** A shift: who needs more has a role to be given by other means. */
const LONGEST_MS: number = 12 * 60 * 60 * 1000
const SHORTEST_MS = 60_000
/** In one grant. */
export const MAX_GRANT_CLUSTERS = 64
export const MAX_GRANT_GROUPS = 8
/** Characters of a user, a group or a reason. */
export const MAX_GRANT_TEXT = 512

const SUBJECT_SCHEMA = object(
  'The user or group that gets the rights. Default: the user who sends the request.',
  {
    kind: oneOf('User or Group.', ['User', 'Group']),
    name: text('The name of the user or group, as the clusters know it.', {
      maxLength: MAX_GRANT_TEXT,
    }),
  },
  ['kind', 'name'],
)

export const ACCESS_GRANT_SPEC_SCHEMA = object(
  'The access that is requested. It cannot be changed: end the grant, and request another one.',
  {
    subject: SUBJECT_SCHEMA,
    clusters: atomic(
      atMost(MAX_GRANT_CLUSTERS, list('Names of UpstreamClusters.', text('A name.', { maxLength: MAX_GRANT_TEXT }), 1)),
    ),
    groups: atomic(
      atMost(
        MAX_GRANT_GROUPS,
        list(
          'Groups that are added to the requests of the subject to these clusters; bind them to roles there.',
          text('A group.', { maxLength: MAX_GRANT_TEXT }),
          1,
        ),
      ),
    ),
    reason: text('Why access is needed: the number of an incident, and the task.', { maxLength: MAX_GRANT_TEXT }),
    notBefore: time('When access begins, at most 7 days after the request. Default: when it is approved.'),
    durationSeconds: integer('How long it lasts from then on, up to 12 hours.', SHORTEST_MS / 1000, LONGEST_MS / 1000),
  },
  ['clusters', 'groups', 'reason', 'durationSeconds'],
  // The server fills it in.
  ['subject'],
)

export type AccessGrantSpec = ValueOf<typeof ACCESS_GRANT_SPEC_SCHEMA>

const PHASES = ['Pending', 'Approved', 'Active', 'Ended'] as const
export type AccessGrantPhase = (typeof PHASES)[number]
/** Expired: its time was over. EndedByUser: by `portcullis access end`. NotApproved: not in time. */
const END_REASONS = ['Expired', 'EndedByUser', 'NotApproved'] as const

const ACT_SCHEMA = object(
  'The user, authenticated by the credential of the request, and the time.',
  { user: text('The name of the user.'), time: time('When.') },
  ['user', 'time'],
)

const ACCESS_GRANT_STATUS_SCHEMA = object('The state of the grant, written only by the gateway.', {
  phase: oneOf('Pending, Approved (it has not begun yet), Active or Ended.', PHASES),
  requestedBy: also({ description: 'Who requested it, and when.' }, ACT_SCHEMA),
  approvedBy: also({ description: 'Who approved it, and when.' }, ACT_SCHEMA),
  startsAt: time('When access begins; set on approval.'),
  endsAt: time('When access ends at the latest; set on approval.'),
  endedBy: also({ description: 'Who ended it early, and when.' }, ACT_SCHEMA),
  endedAt: time('When it ended.'),
  endReason: oneOf('Why it ended.', END_REASONS),
})

export type AccessGrantStatus = ValueOf<typeof ACCESS_GRANT_STATUS_SCHEMA>

export const ACCESS_GRANT_SCHEMA = kubeObject(
  'AccessGrant gives a user or a group more rights in some clusters, for a time, once another user has approved it.',
  ACCESS_GRANT_API_VERSION,
  ACCESS_GRANT_KIND,
  { spec: also({}, ACCESS_GRANT_SPEC_SCHEMA), status: ACCESS_GRANT_STATUS_SCHEMA },
  ['spec'],
)
