// Which addresses the gateway may connect to for UpstreamClusters. An editor of one names servers, and DNS names more: without rules, the
// admin listener, services that trust this machine, and a cloud's metadata service could all become upstreams (SSRF).

import { ipText, parseIp } from '../../api/validation/ip-address.ts'
import {
  ALLOW_LOCAL_FLAG,
  type LocalAddressKind,
  localAddressKind,
  localServerMessage,
} from '../../api/validation/local-address.ts'
import type { ListenAddress } from '../listen-address.ts'
import type { CompiledCidr } from './cidr.ts'
import { inAnyCidr, parseCidr } from './cidr.ts'

/** Local addresses that the operator allows. Plain data. */
export interface AllowedServers {
  readonly ranges: readonly CompiledCidr[]
  /** 0 = every port except the gateway's own. */
  readonly port: number
}

export class DialRules {
  readonly #allowed: readonly AllowedServers[]
  readonly #isOwnAddress: (address: string) => boolean
  #own: readonly OwnListener[] = []

  /** @param isOwnAddress whether an interface of this machine has the address */
  constructor(allowed: readonly AllowedServers[], isOwnAddress: (address: string) => boolean) {
    this.#allowed = allowed
    this.#isOwnAddress = isOwnAddress
  }

  /** Sets all listeners of this process; those without a port are not bound yet. */
  setOwnListeners(addresses: readonly ListenAddress[]): void {
    this.#own = addresses.filter(({ port }) => port !== 0).map(ownListener)
  }

  /** Why this address is refused, and what to do; '' = allowed. @param address text of an IP address */
  refusal(address: string, port: number): string {
    const bytes = parseIp(address)
    if (bytes === undefined) return `${address} is not an IP address`
    const kind = localAddressKind(bytes)
    const own = this.#isOwnListener(bytes, kind, port)
    if (!own && kind === '') return ''
    if (this.#allows(bytes, port, own)) return ''
    const server = `${bytes.length === 4 ? ipText(bytes) : `[${ipText(bytes)}]`}:${port}`
    const why = own ? 'is a listener of this gateway' : localServerMessage(ipText(bytes))
    return `${server} ${why}; only ${ALLOW_LOCAL_FLAG}=${server} of the gateway allows it`
  }

  #allows(bytes: Uint8Array, port: number, own: boolean): boolean {
    return this.#allowed.some((one) => {
      return (one.port === port || (one.port === 0 && !own)) && inAnyCidr(one.ranges, bytes)
    })
  }

  #isOwnListener(bytes: Uint8Array, kind: LocalAddressKind, port: number): boolean {
    return this.#own.some((own) => {
      if (own.port !== port) return false
      // Connecting to 0.0.0.0 or :: reaches this machine.
      if (kind === 'unspecified') return true
      if (own.address !== undefined) return ipText(bytes) === own.address
      return kind === 'loopback' || this.#isOwnAddress(ipText(bytes))
    })
  }
}

/** Parses `HOST` or `HOST:PORT`, where HOST is an address, a range, or localhost; an IPv6 address needs brackets before a port. */
export function parseAllowedServer(text: string): AllowedServers | undefined {
  const [, bracketed, host, digits] = /^(?:\[([^\]]*)\]|([^[\]]*?))(?::(\d{1,5}))?$/.exec(colonsOnly(text)) ?? []
  const port = Number(digits ?? 0)
  if (digits !== undefined && (port < 1 || port > 65_535)) return undefined
  const name = bracketed ?? host ?? ''
  const ranges = name === 'localhost' ? LOCALHOST : [parseCidr(name)]
  const known = ranges.filter((range) => range !== undefined)
  return known.length === ranges.length ? { ranges: known, port } : undefined
}

/** An IPv6 address without brackets has no port: `::1` is not port 1 of `:`. */
function colonsOnly(text: string): string {
  return text.startsWith('[') || text.indexOf(':') === text.lastIndexOf(':') ? text : `[${text}]`
}

const LOCALHOST = [parseCidr('127.0.0.1'), parseCidr('::1')]

interface OwnListener {
  /** Canonical; undefined = every address of this machine, or an unknown one. */
  readonly address: string | undefined
  readonly port: number
}

function ownListener({ host, port }: ListenAddress): OwnListener {
  const bytes = parseIp(host)
  const everywhere = bytes === undefined || localAddressKind(bytes) === 'unspecified'
  return { address: everywhere ? undefined : ipText(bytes), port }
}
