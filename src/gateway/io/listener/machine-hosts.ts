// Names and addresses by which clients reach this machine, for the gateway's self-made certificate.

import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'

/** A cluster node may have one address per Service, and the certificate is sent in every handshake. */
const MOST_ADDRESSES = 32

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * localhost and the machine's name; the addresses listened on, or those of its interfaces if that is the wildcard address.
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

/** Skips link-local addresses: they are the same on every network, and no kubeconfig contains one. */
function interfaceAddresses(interfaces: Interfaces): readonly string[] {
  const all = Object.values(interfaces).flatMap((infos = []) => infos.filter(({ internal }) => !internal))
  const addresses = all.map(({ address }) => canonicalIp(address) ?? '')
  return addresses
    .filter((ip) => ip !== '' && !/^(169\.254\.|fe[89ab])/.test(ip))
    .sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
    .slice(0, MOST_ADDRESSES)
}

/** A machine's name may be an invalid host name, which would invalidate the certificate. */
function machineName(): readonly string[] {
  const name = hostname().toLowerCase()
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name) ? [name] : []
}
