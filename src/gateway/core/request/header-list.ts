// The size of a header list as counted by HTTP/2, for either protocol version.

import type { HeaderList } from '../../../kit/api/stream.ts'

/** Overhead per field beyond its octets (RFC 9113 section 6.5.2). */
const FIELD_OVERHEAD = 32

/**
 * Name, value and 32 per field, including pseudo-header fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts. Counting octets alone could accept
 * a head that is too large for the next hop.
 */
export function headerListBytes(list: HeaderList): number {
  let bytes = FIELD_OVERHEAD * (list.length >>> 1)
  for (let i = 0; i < list.length; i++) bytes += (list[i] ?? '').length
  return bytes
}
