// The names and addresses by which clients reach this machine, for the certificate that the gateway makes itself.

import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'

/** A node of a cluster may have an address for every Service; a certificate is sent in every handshake. */
const MOST_ADDRESSES = 32

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * localhost and the machine's name; the addresses that are listened on, or those of its interfaces where that is any address.
 * @param listen where clients connect to
 */
export function machineHosts(
  listen: readonly Pick<ListenAddress, 'host'>[],
  interfaces: Interfaces = networkInterfaces(),
): readonly string[] {
  const hosts = listen.map(({ host }) => host.replace(/%.*/, ''))
  const any = hosts.some((host) => ['', '0.0.0.0', '::'].includes(canonicalIp(host) ?? host))
  const named = hosts.filter((host) => !['', '0.0.0.0', '::'].includes(canonicalIp(host) ?? host))
  const addresses = any ? interfaceAddresses(interfaces) : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...machineName(), ...named, ...addresses])]
}

/** Link-local addresses are the same on every network, and no client has one in its kubeconfig. */
function interfaceAddresses(interfaces: Interfaces): readonly string[] {
  const all = Object.values(interfaces).flatMap((infos = []) => infos.filter(({ internal }) => !internal))
  const addresses = all.map(({ address }) => canonicalIp(address) ?? '')
  return addresses
    .filter((ip) => ip !== '' && !/^(169\.254\.|fe[89ab])/.test(ip))
    .sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
    .slice(0, MOST_ADDRESSES)
}

/** A machine's name need not be a valid host name; then it would make the certificate invalid. */
function machineName(): readonly string[] {
  const name = hostname().toLowerCase()
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name) ? [name] : []
}
