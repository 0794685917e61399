// spec.cache with its defaults.

import { complete, itemOf, type Schema } from '../../../kit/api/json/json-schema.ts'
import { parseDuration } from '../../../kit/core/text/duration.ts'
import { bytesOf, type ReadCache } from '../../api/upstream-cluster/read-cache/read-cache.ts'
import { READ_CACHE_SCHEMA } from '../../api/upstream-cluster/read-cache/read-cache-schema.ts'
import type { CompiledCachedResource } from './compiled-cluster.ts'

const ALL_NAMESPACES = ['']
const ENCODINGS = { JSON: 'json', Protobuf: 'protobuf' } as const
const ALL_ENCODINGS = ['JSON', 'Protobuf'] as const

/** undefined = no resource is named. What cannot be read allows nothing: the resource is forwarded. */
export function compileReadCache(
  cache: ReadCache,
  schema: Schema<ReadCache> = READ_CACHE_SCHEMA,
): readonly CompiledCachedResource[] | undefined {
  if (cache.length === 0) return undefined
  return cache.map((entry) => {
    const {
      group = '',
      version,
      resource,
      namespaces = [],
      encodings = [],
      ...amounts
    } = complete(itemOf(schema), entry)
    const { maxBytes, maxStaleness } = amounts
    const named = encodings.length === 0 ? ALL_ENCODINGS : encodings
    return {
      group,
      version,
      resource,
      namespaces: namespaces.length === 0 ? ALL_NAMESPACES : [...new Set(namespaces)],
      encodings: [...new Set(named)].map((encoding) => ENCODINGS[encoding]),
      maxBytes: bytesOf(maxBytes) ?? 0,
      maxStalenessMs: parseDuration(maxStaleness) ?? 0,
    }
  })
}
