// A logout as an EndedSession object, and back.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { apiVersionOf } from '../../../kube/api/resource-kind.ts'
import { ENDED_SESSIONS, type EndedSessionSpec, endedSessionErrors } from '../../api/ended-session-kind.ts'
import type { EndedSession } from '../../api/token-session.ts'

export function endedSessionObject(name: string, ended: EndedSession): JsonObject {
  const { issuer, source: keys, audiences, sid, sub, endedSeconds } = ended
  const spec: EndedSessionSpec = {
    issuer,
    keys,
    audiences,
    ...(sid !== '' && { sid }),
    ...(sub !== '' && { sub }),
    endedAt: metaTime(endedSeconds * 1000),
  }
  return { apiVersion: apiVersionOf(ENDED_SESSIONS), kind: ENDED_SESSIONS.kind, metadata: { name }, spec }
}

/** undefined = it ends nothing: a server without the CRD's schema may have any object. */
export function readEndedSession(object: JsonObject): EndedSession | undefined {
  const { spec } = object
  if (endedSessionErrors(spec).length > 0) return undefined
  const { issuer, keys, audiences, sid = '', sub = '', endedAt } = recordOf(spec) as Partial<EndedSessionSpec>
  if (issuer === undefined || keys === undefined || audiences === undefined || endedAt === undefined) return undefined
  return { issuer, source: keys, audiences, sid, sub, endedSeconds: Date.parse(endedAt) / 1000 }
}

/** What identifies a logout: the same once more, or a later one of the same, has the same. */
export function logoutKey({ source, audiences, sid, sub }: EndedSession): string {
  return JSON.stringify([source, audiences, sid, sub])
}
