// EndedSession's row of the scheme: a logout at an OpenID provider, for all replicas and until its tokens have expired.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { atMost, checked, kubeObject, list, object, text, time, type ValueOf } from '../../kit/api/json/json-schema.ts'
import { isRecord, type Loose } from '../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import { isTimestamp } from '../../kit/api/validation/name-syntax.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { SIZES } from './upstream-cluster/cel/cel-rules.ts'

/** Characters of `sid` and `sub`: a gateway keeps those of all sessions that have ended. OpenID Connect Core, section 2, allows 255 for `sub`. */
export const MAX_SESSION_ID_LENGTH = 256
const SOME = '(has(self.sid) && self.sid.size() > 0) || (has(self.sub) && self.sub.size() > 0)'
const DIGEST = '^[0-9a-f]{64}$'

const spec = checked(
  object(
    'The session whose tokens are refused from now on: at least one of sid and sub.',
    {
      issuer: text('URL of the provider, for people.', { maxLength: SIZES.endpoint }),
      keys: text('SHA-256 of where the keys of the provider come from.', { maxLength: SIZES.sha256, pattern: DIGEST }),
      audiences: atMost(
        SIZES.audiences,
        list(
          'Audiences; only tokens for one of them are refused.',
          text('An audience.', { maxLength: SIZES.claim }),
          1,
        ),
      ),
      sid: text('The session. Default: all sessions of the user until endedAt.', { maxLength: MAX_SESSION_ID_LENGTH }),
      sub: text('The user, as the provider names it. Default: any user.', {
        maxLength: MAX_SESSION_ID_LENGTH,
      }),
      endedAt: time('When the provider ended it (RFC 3339). The object is removed a day later.'),
    },
    ['issuer', 'keys', 'audiences', 'endedAt'],
  ),
  [{ rule: SOME, message: 'give sid, sub or both' }],
)

export type EndedSessionSpec = ValueOf<typeof spec>

export const ENDED_SESSIONS: ResourceKind = {
  group: 'portcullis.io',
  version: 'v1alpha1',
  kind: 'EndedSession',
  listKind: 'EndedSessionList',
  plural: 'endedsessions',
  singular: 'endedsession',
  shortNames: [],
  categories: [],
  namespaced: false,
  hasStatus: false,
  hasGeneration: true,
  schema: kubeObject(
    'EndedSession records a logout at an OpenID provider. The gateway writes it when the provider notifies it.',
    'portcullis.io/v1alpha1',
    'EndedSession',
    { spec },
    ['spec'],
  ),
  columns: [
    { name: 'Issuer', type: 'string', description: 'The provider.', jsonPath: '.spec.issuer' },
    { name: 'User', type: 'string', description: 'The user, as the provider names it.', jsonPath: '.spec.sub' },
    {
      name: 'Session',
      type: 'string',
      description: 'The session; empty: all sessions of the user.',
      jsonPath: '.spec.sid',
    },
    { name: 'Ended', type: 'date', description: 'When the provider ended it.', jsonPath: '.spec.endedAt' },
  ],
  selectableFields: [],
  check: ({ spec: given }) => endedSessionErrors(given),
}

export function endedSessionErrors(given: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  const { sid = '', sub = '', endedAt }: Loose<EndedSessionSpec> = isRecord(given) ? given : {}
  if (sid === '' && sub === '') out.invalid('spec', 'names no session and no user', 'give sid, sub or both')
  if (endedAt !== undefined && !isTimestamp(endedAt)) {
    out.invalid('spec.endedAt', 'is not a valid time', 'write RFC 3339, such as 2030-01-31T18:00:00Z')
  }
  return out.found
}
