// TLS contexts of the listener: one per cluster named by SNI, with its certificate and client CAs, and one per address, for connections that name no
// cluster. Built on first use, replaced when certificates change; clusters with equal ones share a context, which does not affect identities: the
// request path decides which CAs count.

import { constants } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import { CERTIFICATE } from '../../../pki/io/pem-checks.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { type SharedContextOptions, sharedSecureContext } from './secure-contexts.ts'
import { DEFAULT_TLS_POLICY, type TlsPolicy } from './tls-policy.ts'

export interface ServingPair {
  readonly cert: string
  readonly key: string
}

/** A context with the certificates it was built from. */
export interface AddressContext {
  readonly options: SharedContextOptions
  readonly context: SecureContext
}

export class TlsContexts {
  #own: ServingPair
  readonly #policy: TlsPolicy
  readonly #byName = new Map<string, { material: CompiledCluster['serving']; context: SecureContext }>()
  /** Keyed by cluster; '' = no cluster claims the address. */
  readonly #byAddress = new Map<string, { pair: ServingPair; built: AddressContext }>()
  /** Client CA bundle by cluster. */
  readonly #clientCAs = new Map<string, string>()
  /** Number of clusters per bundle. */
  readonly #users = new Map<string, number>()
  #unionCAs = ''

  constructor(own: ServingPair, policy: TlsPolicy = DEFAULT_TLS_POLICY) {
    this.#own = own
    this.#policy = policy
  }

  /** Replaces the gateway's own certificate for new connections; open ones are unaffected. */
  setOwn(own: ServingPair): void {
    this.#own = own
    this.#byName.clear()
    this.#byAddress.clear()
  }

  /** Drops outdated contexts; new connections get the new certificates. */
  change(changed: Iterable<CompiledCluster>, removed: Iterable<string>): void {
    let differs = false
    for (const name of removed) {
      this.#byName.delete(name)
      this.#byAddress.delete(name)
      if (this.#setClientCA(name, '')) differs = true
    }
    for (const { name, serving } of changed) if (this.#setClientCA(name, serving.clientCA)) differs = true
    if (!differs) return
    this.#unionCAs = [...this.#users.keys()].join('\n')
    this.#byAddress.clear()
  }

  /** @returns whether the set of all CA bundles has changed */
  #setClientCA(cluster: string, clientCA: string): boolean {
    const before = this.#clientCAs.get(cluster) ?? ''
    if (before === clientCA) return false
    if (clientCA === '') this.#clientCAs.delete(cluster)
    else this.#clientCAs.set(cluster, clientCA)
    const usersBefore = this.#users.get(before) ?? 0
    if (usersBefore > 1) this.#users.set(before, usersBefore - 1)
    else this.#users.delete(before)
    const usersNow = this.#users.get(clientCA) ?? 0
    if (clientCA !== '') this.#users.set(clientCA, usersNow + 1)
    return usersBefore === 1 || (clientCA !== '' && usersNow === 0)
  }

  /** For connections whose SNI names the cluster: its certificate and client CAs. */
  forCluster(cluster: CompiledCluster): SecureContext {
    const known = this.#byName.get(cluster.name)
    if (known !== undefined && sameMaterial(known.material, cluster.serving)) return known.context
    const context = sharedSecureContext(contextOptions(this.#pairOf(cluster), cluster.serving.clientCA, this.#policy))
    this.#byName.set(cluster.name, { material: cluster.serving, context })
    return context
  }

  /**
   * For connections without SNI, or with one of the gateway's own names. The address selects the certificate; the client CAs of all clusters are
   * accepted, because a path prefix may still select another cluster than the address does. The request path decides which CAs count.
   */
  forAddress(cluster: CompiledCluster | undefined): AddressContext {
    const name = cluster?.name ?? ''
    const pair = this.#pairOf(cluster)
    const known = this.#byAddress.get(name)
    if (known !== undefined && known.pair.cert === pair.cert && known.pair.key === pair.key) return known.built
    const options = contextOptions(pair, this.#unionCAs, this.#policy)
    const built = { options, context: sharedSecureContext(options) }
    this.#byAddress.set(name, { pair, built })
    return built
  }

  #pairOf(cluster: CompiledCluster | undefined): ServingPair {
    return cluster === undefined || cluster.serving.cert === '' ? this.#own : cluster.serving
  }
}

function sameMaterial(a: CompiledCluster['serving'], b: CompiledCluster['serving']): boolean {
  return a.cert === b.cert && a.key === b.key && a.clientCA === b.clientCA
}

/**
 * No session resumption: a resumed session carries an identity that was verified at another time, and perhaps for another cluster (CVE-2025-23419
 * class). SSL_OP_NO_TICKET without a session store disables it in TLS 1.2 and 1.3.
 */
function contextOptions(pair: ServingPair, clientCA: string, policy: TlsPolicy): SharedContextOptions {
  return {
    cert: pair.cert,
    key: pair.key,
    ...policy,
    secureOptions: constants.SSL_OP_NO_TICKET,
    sessionTimeout: 1,
    // An empty list would mean the system's CAs; a cluster without client CAs accepts no certificate.
    ca: clientCA === '' ? [] : splitPem(clientCA),
    // As in Go: everything in the bundle is trusted, including an intermediate without its root.
    allowPartialTrustChain: true,
  }
}

function splitPem(pem: string): string[] {
  return pem.match(CERTIFICATE) ?? []
}
