// Addresses of a name, with their TTL. /etc/hosts comes first, as usual; then DNS, with c-ares, which reports TTLs and does not block a pool thread;
// then the system's resolver for names that DNS does not know: search domains, mDNS, nsswitch.conf.

import { ADDRCONFIG, promises as dns, NODATA, NOTFOUND, type RecordWithTtl } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { LookedUp } from '../../core/endpoints/resolution.ts'

export interface LookUpOptions {
  /** `HOST:PORT` of DNS servers. Default: the machine's current ones. */
  readonly servers?: readonly string[]
  /** Default /etc/hosts. */
  readonly hostsFile?: string
  /** Whether the machine has IPv6 addresses to connect from. Default: detected. */
  readonly hasIPv6?: boolean
  /** Replaces the system's resolver. Default: not replaced. */
  readonly system?: (name: string) => Promise<readonly string[]>
}

const TIMEOUT_MS = 2_000
const TRIES = 2

/** Never rejects. */
export async function lookUp(name: string, options: LookUpOptions = {}): Promise<LookedUp> {
  const { hostsFile = '/etc/hosts', servers, hasIPv6 = machineHasIPv6(), system = bySystem } = options
  const listed = await inHosts(hostsFile, name)
  if (listed.length > 0) return byFamily(listed)
  // A new one each time: it reads /etc/resolv.conf on creation.
  const resolver = new dns.Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  const [v4, v6] = await Promise.all([
    family(resolver.resolve4(name, { ttl: true })),
    hasIPv6 ? family(resolver.resolve6(name, { ttl: true })) : NOTHING,
  ])
  const message = [v4.message, v6.message].filter((text) => text !== '').join('; ')
  if (message === '' && v4.records.length + v6.records.length === 0) return await otherwise(name, system)
  const ttls = [...v4.records, ...v6.records].map(({ ttl }) => ttl)
  // A TTL of 0 is a known TTL, too: treat it as one second, the minimum.
  const ttlSeconds = ttls.length === 0 ? 0 : Math.max(1, Math.min(...ttls))
  return { v4: addressesOf(v4), v6: addressesOf(v6), ttlSeconds, message }
}

interface AddressFamily {
  readonly records: readonly RecordWithTtl[]
  /** Why no address is known; '' = one is. */
  readonly message: string
}

const NOTHING: AddressFamily = { records: [], message: '' }

async function family(answer: Promise<readonly RecordWithTtl[]>): Promise<AddressFamily> {
  try {
    return { records: await answer, message: '' }
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    return code === NOTFOUND || code === NODATA ? NOTHING : { records: [], message }
  }
}

function addressesOf({ records, message }: AddressFamily): readonly string[] | undefined {
  return message === '' ? records.map(({ address }) => address) : undefined
}

async function otherwise(name: string, system: (name: string) => Promise<readonly string[]>): Promise<LookedUp> {
  try {
    return byFamily(await system(name))
  } catch (error) {
    const message = errorMessage(error)
    return { v4: [], v6: [], ttlSeconds: 0, message }
  }
}

async function bySystem(name: string): Promise<readonly string[]> {
  const all = await dns.lookup(name, { all: true, hints: ADDRCONFIG })
  return all.map(({ address }) => address)
}

function byFamily(addresses: readonly string[]): LookedUp {
  const of = (version: number): readonly string[] => addresses.filter((address) => isIP(address) === version)
  return { v4: of(4), v6: of(6), ttlSeconds: 0, message: '' }
}

async function inHosts(file: string, name: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const wanted = name.toLowerCase().replace(/\.$/, '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    return isIP(address) !== 0 && names.some((one) => one.toLowerCase() === wanted) ? [address] : []
  })
}

/** Like AI_ADDRCONFIG (RFC 3493 section 6.1): addresses that this machine cannot reach would only be unhealthy. */
function machineHasIPv6(): boolean {
  return Object.values(networkInterfaces()).some((all = []) => {
    return all.some(({ family: version, internal, address }) => {
      return version === 'IPv6' && !internal && !/^fe[89ab]/i.test(address)
    })
  })
}
