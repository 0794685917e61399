// Access grants as the path of a request knows them: for a time, requests of a user or of a group's members to some clusters run with more groups.

import { Topic } from '../../../kit/core/topics/topics.ts'
import type { UserInfo } from '../../../kube/api/user.ts'

export interface AccessGrantInForce {
  readonly name: string
  /** metadata.uid: an object of the same name that is created later is another grant. */
  readonly uid: string
  readonly subject: { readonly kind: 'User' | 'Group'; readonly name: string }
  /** Names of UpstreamClusters. */
  readonly clusters: readonly string[]
  /** Added to those of the user. */
  readonly groups: readonly string[]
  /** Wall clock, milliseconds since the epoch. */
  readonly fromMs: number
  readonly untilMs: number
}

/** All grants that are in force, or will be at their time, to the gateway threads. */
export const GRANTS_IN_FORCE = new Topic<readonly AccessGrantInForce[]>('access-grants')

/** The user with the groups of these grants. */
export function grantedUser(user: UserInfo, grants: readonly Pick<AccessGrantInForce, 'groups'>[]): UserInfo {
  return { ...user, groups: [...new Set([...user.groups, ...grants.flatMap(({ groups }) => groups)])] }
}

/** To a client whose request was still being decided when the grant ended. */
export function grantEndedMessage(name: string): string {
  return `the access grant ${JSON.stringify(name)} has ended; request another one: portcullis access request`
}
