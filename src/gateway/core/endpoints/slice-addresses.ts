// Reads the API servers' addresses from the cluster's own `kubernetes` EndpointSlices (discovery.k8s.io/v1).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { ipText, parseIp } from '../../../kit/api/validation/ip-address.ts'
import { localAddressKind } from '../../../kit/api/validation/local-address.ts'
import { MAX_ADDRESSES } from './resolution.ts'

export interface SliceAddresses {
  /** `10.0.0.1:6443`, `[fd00::1]:6443`; unique and sorted. Empty = nothing usable. */
  readonly addresses: readonly string[]
  /** Number of further addresses left out. */
  readonly omitted: number
  /** The fault of the slices; '' = none. */
  readonly message: string
}

/** The name of the port, as kube-apiserver writes it. */
const PORT_NAME = 'https'
/** Maximum number of refused addresses in a message. */
const MAX_NAMED = 3
/** Maximum length of a refused address in a message. */
const MAX_SHOWN = 45

/** Merges all slices, whatever their names: both families, and several slices of one family. */
export function sliceAddresses(slices: readonly JsonObject[]): SliceAddresses {
  const found = { ready: new Set<string>(), serving: new Set<string>(), refused: new Set<string>() }
  for (const slice of slices) readSlice(slice, found)
  // Like kube-proxy: terminating endpoints are better than none.
  const all = [...(found.ready.size > 0 ? found.ready : found.serving)].sort()
  const addresses = all.slice(0, MAX_ADDRESSES)
  return { addresses, omitted: all.length - addresses.length, message: messageOf(all.length, [...found.refused]) }
}

interface Found {
  readonly ready: Set<string>
  /** Terminating: serving although not ready. */
  readonly serving: Set<string>
  readonly refused: Set<string>
}

function readSlice(slice: JsonObject, found: Found): void {
  const port = portOf(slice['ports'])
  const { addressType, endpoints } = slice
  if (port === undefined || (addressType !== 'IPv4' && addressType !== 'IPv6') || !Array.isArray(endpoints)) return
  for (const endpoint of endpoints) {
    const { addresses, conditions } = recordOf(endpoint)
    const state = stateOf(recordOf(conditions))
    if (state === undefined || !Array.isArray(addresses)) continue
    for (const address of addresses) {
      if (typeof address !== 'string') continue
      const bytes = address.includes('%') ? undefined : parseIp(address)
      const wrong = bytes === undefined ? 'not an IP address' : localAddressKind(bytes)
      if (bytes === undefined || wrong !== '') found.refused.add(`${printable(address)} (${wrong})`)
      else found[state].add(bytes.length === 4 ? `${ipText(bytes)}:${port}` : `[${ipText(bytes)}]:${port}`)
    }
  }
}

/** An absent `ready` means ready, an absent `serving` follows `ready` (as the API defines). */
function stateOf({ ready, serving, terminating }: Readonly<Record<string, unknown>>): 'ready' | 'serving' | undefined {
  if (ready !== false && terminating !== true) return 'ready'
  return (serving ?? ready) !== false ? 'serving' : undefined
}

function portOf(ports: unknown): number | undefined {
  if (!Array.isArray(ports)) return undefined
  for (const one of ports) {
    if (!isRecord(one) || one['name'] !== PORT_NAME || (one['protocol'] ?? 'TCP') !== 'TCP') continue
    const { port } = one
    if (typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536) return port
  }
  return undefined
}

function messageOf(found: number, refused: readonly string[]): string {
  const messages: string[] = []
  if (found === 0) messages.push('none of their addresses is ready and has a port named https')
  if (refused.length > 0) {
    const more = refused.length > MAX_NAMED ? ` and ${refused.length - MAX_NAMED} more` : ''
    messages.push(`refused: ${refused.slice(0, MAX_NAMED).join(', ')}${more}`)
  }
  return messages.join('; ')
}

function printable(text: string): string {
  return text.slice(0, MAX_SHOWN).replaceAll(/\p{C}/gu, ' ')
}
