// Addresses that cannot belong to an API server on another machine, but reach services that trust every caller: loopback addresses, and cloud
// metadata services, which hand out credentials.

import { ipText, parseIp } from './ip-address.ts'

/** Flag that allows such addresses for servers of UpstreamClusters. */
export const ALLOW_LOCAL_FLAG = '--allow-local-servers'

export type LocalAddressKind =
  | ''
  | 'loopback'
  | 'link-local'
  | 'unspecified'
  | 'a metadata service'
  | 'multicast'
  | 'reserved'

/** @param bytes from parseIp @returns '' = an ordinary address */
export function localAddressKind(bytes: Uint8Array): LocalAddressKind {
  const [a = 0, b = 0] = bytes
  if (METADATA.has(ipText(bytes))) return 'a metadata service'
  if (bytes.length === 4) {
    if (a === 127) return 'loopback'
    if (a === 169 && b === 254) return 'link-local'
    if (a === 0) return 'unspecified'
    if (a >= 224) return a < 240 ? 'multicast' : 'reserved'
    return ''
  }
  if (a === 0xff) return 'multicast'
  if (a === 0xfe && (b & 0xc0) === 0x80) return 'link-local'
  if (startsWith(bytes, AWS)) return 'a metadata service'
  // ::, ::1, and IPv4 addresses in the form ::10.0.0.1.
  if (bytes.subarray(0, 12).every((byte) => byte === 0)) return ipText(bytes) === '::1' ? 'loopback' : 'unspecified'
  // NAT64 (RFC 6052) and 6to4 (RFC 3056) embed an IPv4 address and lead there.
  if (startsWith(bytes, NAT64)) return localAddressKind(bytes.subarray(12))
  if (startsWith(bytes, SIX_TO_FOUR)) return localAddressKind(bytes.subarray(2, 6))
  return ''
}

/** Describes a server's address for a message; '' = an ordinary address, or a name that needs a lookup. */
export function localServerMessage(host: string): string {
  const bytes = parseIp(host)
  const kind = isLocalhost(host) ? 'loopback' : bytes === undefined ? '' : localAddressKind(bytes)
  if (kind === '') return ''
  if (kind === 'loopback' || kind === 'unspecified') return "is on the gateway's own machine"
  return kind === 'a metadata service' ? 'is a metadata service' : `is a ${kind} address`
}

/** RFC 6761 section 6.3. */
function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}

const NAT64 = [0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
const SIX_TO_FOUR = [0x20, 0x02]
/** fd00:ec2::/32: AWS instance metadata, pod credentials, DNS and time. */
const AWS = [0xfd, 0x00, 0x0e, 0xc2]
/** Metadata addresses that are not link-local: Google Cloud over IPv6, Azure's platform, Alibaba Cloud, and Oracle Cloud. */
const METADATA: ReadonlySet<string> = new Set(['fd20:ce::254', '168.63.129.16', '100.100.100.200', '192.0.0.192'])

function startsWith(bytes: Uint8Array, prefix: readonly number[]): boolean {
  return prefix.every((byte, at) => bytes[at] === byte)
}
