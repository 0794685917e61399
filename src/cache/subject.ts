// What the read cache adds to the program, which has no other import of it (program/subjects/subjects.ts).

import { CACHE_METRICS } from './metrics/descriptors.ts'

export const CACHE = {
  kinds: [],
  fields: ['cache'] as const,
  metrics: CACHE_METRICS,
  filters: async () => (await import('./app/filters.ts')).cacheFilters,
  component: async () => (await import('./app/read-caches.ts')).createReadCaches,
}
