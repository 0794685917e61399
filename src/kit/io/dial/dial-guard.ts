// Checks every connection for an UpstreamCluster when it is opened, against the addresses that the server's name resolves to at that moment. A name
// that changes its addresses could evade any earlier check.

import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Duplex } from 'node:stream'
import type { buildConnector } from 'undici'
import { canonicalIp } from '../../api/validation/ip-address.ts'
import { type AllowedServers, DialRules } from '../../core/dial/dial-rules.ts'
import type { ListenAddress } from '../../core/listen-address.ts'
import { http1Connector } from './http1-connector.ts'

const HTTP_PORT = 80
const HTTPS_PORT = 443

type Connector = buildConnector.connector

export class DialGuard {
  readonly #rules: DialRules
  readonly #lookUp: typeof lookup

  /** @param lookUp default: the system's */
  constructor(allowed: readonly AllowedServers[], lookUp: typeof lookup = lookup) {
    this.#rules = new DialRules(allowed, isOwnAddress)
    this.#lookUp = lookUp
  }

  setOwnListeners(addresses: readonly ListenAddress[]): void {
    this.#rules.setOwnListeners(addresses)
  }

  /** @param host a name, or an address without brackets */
  to(host: string, port: number): GuardedServer {
    return new GuardedServer(this.#rules, this.#lookUp, host, port)
  }
}

/** Where a connection is opened. */
export interface ServerTarget {
  readonly host: string
  readonly port: number
  readonly lookup: LookupFunction
  /** A connection that is open already, for TLS above it. Default: one to the host is opened. */
  readonly socket?: Duplex
}

/** One server, whose connections are checked. */
export class GuardedServer {
  readonly #rules: DialRules
  readonly #lookUp: typeof lookup
  readonly host: string
  readonly port: number
  #refusal = ''

  constructor(rules: DialRules, lookUp: typeof lookup, host: string, port: number) {
    this.#rules = rules
    this.#lookUp = lookUp
    this.host = host
    this.port = port
  }

  /** Why the last connection was refused; '' = it was not, although it may have failed. */
  get refusal(): string {
    return this.#refusal
  }

  /** Called before each connection. A name is checked during its look-up. @throws {LocalServerError} */
  check(): void {
    if (isIP(this.host) === 0) return
    this.#refusal = this.#rules.refusal(this.host, this.port)
    if (this.#refusal !== '') throw new LocalServerError(this.#refusal)
  }

  /** For each connection. @throws {LocalServerError} */
  target(): ServerTarget {
    this.check()
    const { host, port, lookup } = this
    return { host, port, lookup }
  }

  /** For net.connect and tls.connect, which do not look up addresses. Omits refused addresses of a name. */
  readonly lookup: LookupFunction = (name, options, done) => {
    this.#lookUp(name, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        done(error, '', 0)
        return
      }
      const refusals = found.map(({ address }) => this.#rules.refusal(address, this.port))
      const good = found.filter((_, at) => refusals[at] === '')
      const [first] = good
      this.#refusal = ''
      if (first === undefined) {
        this.#refusal = `${name}: ${refusals[0] ?? 'has no address'}`
        done(new LocalServerError(this.#refusal), '', 0)
      } else if (options.all === true) done(null, good)
      else done(null, first.address, first.family)
    })
  }
}

/** Nothing was sent: the operator has not allowed the address. */
class LocalServerError extends Error {
  readonly code = 'ERR_LOCAL_SERVER'
}

/** Servers for which one connector keeps TLS sessions. */
const MOST_KEPT = 64

/** Opens undici's connections. @param serverOf called once per server, and again after many others */
export function guardedConnector(
  serverOf: (host: string, port: number) => GuardedServer,
  options: buildConnector.BuildOptions,
): Connector {
  const kept = new Map<string, { readonly server: GuardedServer; readonly connect: Connector }>()
  return (target, done) => {
    const { hostname, protocol } = target
    const port = Number(target.port) || (protocol === 'https:' ? HTTPS_PORT : HTTP_PORT)
    const key = `${hostname} ${port}`
    let one = kept.get(key)
    if (one === undefined) {
      const server = serverOf(hostname, port)
      one = { server, connect: http1Connector({ ...options, lookup: server.lookup }) }
      if (kept.size >= MOST_KEPT) kept.clear()
      kept.set(key, one)
    }
    try {
      one.server.check()
    } catch (error) {
      // undici accepts a result only after this has returned.
      queueMicrotask(() => done(error as Error, null))
      return
    }
    one.connect(target, done)
  }
}

function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((all = []) => all.some((one) => canonicalIp(one.address) === address))
}
