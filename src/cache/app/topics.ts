// What the main thread and the gateway threads tell each other about the read cache.

import { Question } from '../../kit/core/topics/questions.ts'
import { Topic } from '../../kit/core/topics/topics.ts'
import type {
  CollectionId,
  CollectionNews,
  CompressedRoom,
  CurrentState,
  FreshnessQuestion,
  ToldVersion,
} from '../core/changes/collection.ts'
import type { ReadCount } from '../core/changes/read-counts.ts'

/** In their order, to the gateway threads. */
export const CACHE_NEWS = new Topic<CollectionNews>('cache-news')
/** A gateway thread has begun, and knows nothing. */
export const CACHE_UNKNOWN = new Topic<undefined>('cache-unknown')
/** A gateway thread is asked for a collection that is kept only as long as it is wanted. */
export const CACHE_WANTED = new Topic<CollectionId>('cache-wanted')
/** A gateway thread has compressed lists to keep. */
export const CACHE_ROOM = new Topic<CompressedRoom>('cache-room')
/** A gateway thread has told a client of a version that it does not know itself. */
export const CACHE_TOLD = new Topic<ToldVersion>('cache-told')
/** The answer: what was proved to be current after the question was asked; undefined = nothing. */
export const FRESHNESS = new Question<FreshnessQuestion, CurrentState | undefined>('cache-freshness')
/** From a gateway thread, once a second: reads since the last time. */
export const CACHE_READS = new Topic<readonly ReadCount[]>('cache-reads')
