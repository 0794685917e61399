// Addresses and networks of expressions (k8s.io/apiserver/pkg/cel/library: ip.go, cidr.go), as Go's net/netip has them. Neither has a zone, nor is it an
// IPv4 address in IPv6.

import { ipText, parseIp } from '../validation/ip-address.ts'
import { Cost, ExpressionFault, noOverload, TypedValue } from './values.ts'

const IPV4_BYTES = 4
const BITS = 8
/** For each address or network that is read, and for each one that another is looked up in. */
const ADDRESS_STEPS = 20
const NETWORK_STEPS = 10

export class Ip extends TypedValue {
  readonly type = 'net.IP'
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    super()
    this.bytes = bytes
  }

  override get text(): string {
    return ipText(this.bytes)
  }

  override equals(other: unknown): boolean {
    return other instanceof Ip ? other.text === this.text : noOverload('_==_', this, other)
  }

  override call(name: string, args: readonly unknown[], cost: Cost): unknown {
    if (args.length > 0) return noOverload(name, this, ...args)
    if (name === 'family') return this.bytes.length === IPV4_BYTES ? 4n : 6n
    const networks = name === 'isGlobalUnicast' ? NOT_GLOBAL : KINDS[name]
    if (networks === undefined) return noOverload(name, this)
    cost.spend(networks.length * NETWORK_STEPS)
    return networks.some((network) => network.contains(this)) !== (networks === NOT_GLOBAL)
  }
}

export class Cidr extends TypedValue {
  readonly type = 'net.CIDR'
  readonly address: Uint8Array
  readonly prefix: number

  constructor(address: Uint8Array, prefix: number) {
    super()
    this.address = address
    this.prefix = prefix
  }

  override get text(): string {
    return `${ipText(this.address)}/${this.prefix}`
  }

  override equals(other: unknown): boolean {
    return other instanceof Cidr ? other.text === this.text : noOverload('_==_', this, other)
  }

  override call(name: string, args: readonly unknown[], cost: Cost): unknown {
    const [other] = args
    cost.spend(NETWORK_STEPS)
    if (args.length === 0) return this.#ask(name)
    if (name === 'containsIP') {
      const ip = typeof other === 'string' ? ipIn(other, cost) : other
      return ip instanceof Ip ? this.contains(ip) : noOverload(name, this, other)
    }
    const network = typeof other === 'string' ? cidrIn(other, cost) : other
    if (name !== 'containsCIDR' || !(network instanceof Cidr)) return noOverload(name, this, other)
    return this.prefix <= network.prefix && this.contains(new Ip(network.address))
  }

  #ask(name: string): unknown {
    if (name === 'ip') return new Ip(this.address)
    if (name === 'prefixLength') return BigInt(this.prefix)
    return name === 'masked' ? new Cidr(this.#mask(this.address), this.prefix) : noOverload(name, this)
  }

  contains({ bytes }: Ip): boolean {
    if (bytes.length !== this.address.length) return false
    const [own, other] = [this.#mask(this.address), this.#mask(bytes)]
    return own.every((byte, at) => byte === other[at])
  }

  #mask(bytes: Uint8Array): Uint8Array {
    return bytes.map((byte, at) => {
      const kept = Math.min(BITS, Math.max(0, this.prefix - at * BITS))
      return byte & (0xff_00 >> kept)
    })
  }
}

/** undefined = it is none. */
export function addressFrom(text: string, cost: Cost): Ip | undefined {
  cost.spend(ADDRESS_STEPS)
  const bytes = text.length > MAX_TEXT ? undefined : parseIp(cost.text(text))
  const isMapped = bytes?.length === IPV4_BYTES && text.includes(':')
  return bytes === undefined || isMapped || text.includes('%') ? undefined : new Ip(bytes)
}

/** More characters than the longest address has. */
const MAX_TEXT = 64

/** undefined = it is none. */
export function networkFrom(text: string, cost: Cost): Cidr | undefined {
  const slash = text.lastIndexOf('/')
  const length = /^(?:0|[1-9]\d{0,2})$/.exec(cost.text(text).slice(slash + 1))?.[0]
  const ip = slash < 0 || length === undefined ? undefined : addressFrom(text.slice(0, slash), cost)
  return ip === undefined || Number(length) > ip.bytes.length * BITS ? undefined : new Cidr(ip.bytes, Number(length))
}

export function ipIn(text: string, cost: Cost): Ip {
  const ip = addressFrom(text, cost)
  if (ip === undefined) throw new ExpressionFault('is not an IP address')
  return ip
}

export function cidrIn(text: string, cost: Cost): Cidr {
  const cidr = networkFrom(text, cost)
  if (cidr === undefined) throw new ExpressionFault('is not a network in CIDR notation')
  return cidr
}

/** @param name `ip`, `isIP`, `ip.isCanonical`, `cidr` or `isCIDR` */
export function callAddress(name: string, text: unknown, cost: Cost): unknown {
  if (typeof text !== 'string') return noOverload(name, text)
  switch (name) {
    case 'ip':
      return ipIn(text, cost)
    case 'isIP':
      return addressFrom(text, cost) !== undefined
    case 'ip.isCanonical':
      return ipIn(text, cost).text === text
    case 'cidr':
      return cidrIn(text, cost)
    default:
      return networkFrom(text, cost) !== undefined
  }
}

function networks(...texts: readonly string[]): readonly Cidr[] {
  return texts.map((text) => cidrIn(text, new Cost()))
}

const UNSPECIFIED = networks('0.0.0.0/32', '::/128')
const LOOPBACK = networks('127.0.0.0/8', '::1/128')
const LINK_LOCAL = networks('169.254.0.0/16', 'fe80::/10')
const KINDS: Readonly<Record<string, readonly Cidr[]>> = {
  isUnspecified: UNSPECIFIED,
  isLoopback: LOOPBACK,
  isLinkLocalUnicast: LINK_LOCAL,
  // ff02, ff12 and so on.
  isLinkLocalMulticast: networks('224.0.0.0/24', ...[...'0123456789abcdef'].map((flags) => `ff${flags}2::/16`)),
}
const NOT_GLOBAL = [
  ...UNSPECIFIED,
  ...LOOPBACK,
  ...LINK_LOCAL,
  ...networks('224.0.0.0/4', 'ff00::/8', '255.255.255.255/32'),
]
