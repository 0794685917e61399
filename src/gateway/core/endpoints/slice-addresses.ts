// What the cluster's own `kubernetes` EndpointSlices (discovery.k8s.io/v1) say about its API servers.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { ipText, parseIp } from '../../../kit/api/validation/ip-address.ts'
import { localAddressKind } from '../../../kit/api/validation/local-address.ts'
import { MAX_ADDRESSES } from './resolution.ts'

export interface SliceAddresses {
  /** `10.0.0.1:6443`, `[fd00::1]:6443`; each once, in an order of their own. Empty = nothing that can be used was said. */
  readonly addresses: readonly string[]
  /** How many more there are, which are left out. */
  readonly omitted: number
  /** What is wrong with the slices; '' = nothing. */
  readonly message: string
}

/** The name of the port, as kube-apiserver writes it. */
const PORT_NAME = 'https'
/** Refused addresses that a message names. */
const MAX_NAMED = 3
/** Characters of a refused address in a message. */
const MAX_SHOWN = 45

/** All slices merged, whatever they are called: those of both families, and those of one family that there may be several of. */
export function sliceAddresses(slices: readonly JsonObject[]): SliceAddresses {
  const found = { ready: new Set<string>(), serving: new Set<string>(), refused: new Set<string>() }
  for (const slice of slices) readSlice(slice, found)
  // As kube-proxy: those that shut down are better than none.
  const all = [...(found.ready.size > 0 ? found.ready : found.serving)].sort()
  const addresses = all.slice(0, MAX_ADDRESSES)
  return { addresses, omitted: all.length - addresses.length, message: messageOf(all.length, [...found.refused]) }
}

interface Found {
  readonly ready: Set<string>
  /** Serving although not ready, for they shut down. */
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

/** `ready` that is absent means ready, `serving` that is absent what `ready` says (the API's own words). */
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
  if (found === 0) messages.push('they have no address that is ready, with a port named https')
  if (refused.length > 0) {
    const more = refused.length > MAX_NAMED ? ` and ${refused.length - MAX_NAMED} more` : ''
    messages.push(`refused: ${refused.slice(0, MAX_NAMED).join(', ')}${more}`)
  }
  return messages.join('; ')
}

function printable(text: string): string {
  return text.slice(0, MAX_SHOWN).replaceAll(/\p{C}/gu, ' ')
}
