// The size of a header list as HTTP/2 counts it, whatever it came over or goes out on.

import type { HeaderList } from '../../api/ports/stream.ts'

/** What each field costs beyond its octets (RFC 9113 section 6.5.2). */
const FIELD_OVERHEAD = 32

/**
 * Name, value and 32 for each field, pseudo-header fields included: what SETTINGS_MAX_HEADER_LIST_SIZE bounds. A head that
 * was only counted by its octets may be larger for the next hop than this one allows.
 */
export function headerListBytes(list: HeaderList): number {
  let bytes = FIELD_OVERHEAD * (list.length >>> 1)
  for (let i = 0; i < list.length; i++) bytes += (list[i] ?? '').length
  return bytes
}
