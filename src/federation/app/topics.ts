// What the main thread tells the gateway threads about federated reads.

import { Topic } from '../../kit/core/topics/topics.ts'
import type { FederatedCluster } from '../state/federated-collections.ts'
import type { RightNews } from '../state/known-rights.ts'

/** All clusters that have members. In order with the news of the read cache, so that all threads stamp objects alike. */
export const FEDERATIONS = new Topic<readonly FederatedCluster[]>('federations')
/** From a gateway thread: what a member has allowed, or not any more. */
export const RIGHT_ANSWERED = new Topic<RightNews>('federation-right-answered')
/** The same, to all gateway threads. */
export const RIGHT_KNOWN = new Topic<RightNews>('federation-right-known')
