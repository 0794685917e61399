// What a gateway thread's observers hear of requests.

import type { RequestRecord } from './request-record.ts'

/** Observes every request. Called on the request path: no promise, closure or timer, and it must not throw. */
export interface RequestObserver {
  /** Cluster and request info are known; the user is not. This and the next a second time, if the cluster has handed it over to a member. */
  requestStarted?(record: RequestRecord): void
  /** The user is known, too; nothing is decided yet. Not called for unauthenticated requests. */
  requestIdentified?(record: RequestRecord): void
  /** The response head is sent. */
  responseStarted?(record: RequestRecord): void
  /** Once for every request, refused or not. The record must not be retained. */
  requestEnded?(record: RequestRecord): void
}
