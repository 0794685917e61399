// The filter of federated reads in a gateway thread. What it reads is what the read cache keeps there.

import { type CacheThread, keptReadsOf } from '../../cache/app/filters.ts'
import { CACHE_NEWS } from '../../cache/app/topics.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { FederatedReadsFilter } from '../request/federated-reads.ts'
import { FederatedCollections } from '../state/federated-collections.ts'
import { KnownRights } from '../state/known-rights.ts'
import { FEDERATIONS, RIGHT_ANSWERED, RIGHT_KNOWN } from './topics.ts'

export function federationFilters(thread: CacheThread): SubjectFilters {
  const { collections: kept, watches } = keptReadsOf(thread)
  const collections = new FederatedCollections((id) => kept.get(id), systemClock)
  // Behind the read cache, which has subscribed first. An update goes on with the same collection, unless a thread has missed something.
  thread.topics.subscribe(CACHE_NEWS, ({ collection }) => collections.replaced(collection))
  thread.topics.subscribe(FEDERATIONS, (clusters) => collections.told(clusters))
  const known = new KnownRights((news) => thread.topics.publish(RIGHT_ANSWERED, news))
  thread.topics.subscribe(RIGHT_KNOWN, (news) => known.onNews(news, systemClock.monotonic()))
  const deps = { kept, collections, watches, known }
  return {
    federation: new FederatedReadsFilter(deps),
  }
}
