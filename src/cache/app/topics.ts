// What the main thread and the gateway threads tell each other about the read cache.

import { Question } from '../../kit/core/topics/questions.ts'
import { Topic } from '../../kit/core/topics/topics.ts'
import type { CollectionNews, FreshnessQuestion } from '../core/changes/collection.ts'

/** In their order, to the gateway threads. */
export const CACHE_NEWS = new Topic<CollectionNews>('cache-news')
/** A gateway thread has begun, and knows nothing. */
export const CACHE_UNKNOWN = new Topic<undefined>('cache-unknown')
/** The answer: a version that was proved to be current after the question was asked; undefined = that could not be proved. */
export const FRESHNESS = new Question<FreshnessQuestion, string | undefined>('cache-freshness')
