// What the main thread and the gateway threads tell each other about the read cache.

import { Topic } from '../../kit/core/topics/topics.ts'
import type { CollectionNews, FreshnessQuestion } from '../core/changes/collection.ts'

/** In their order, to the gateway threads. */
export const CACHE_NEWS = new Topic<CollectionNews>('cache-news')
/** A gateway thread has begun, and knows nothing. */
export const CACHE_UNKNOWN = new Topic<undefined>('cache-unknown')
export const FRESHNESS_ASKED = new Topic<FreshnessQuestion>('cache-freshness')
