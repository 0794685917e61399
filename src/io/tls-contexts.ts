// TLS contexts of the listener: one for each cluster with its own certificate and client CAs, one of the gateway itself for
// connections that name no cluster. Built when first needed, replaced when the material changes.

import { constants } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { CompiledCluster } from '../core/compiled-cluster.ts'

export interface ServingPair {
  readonly cert: string
  readonly key: string
}

export class TlsContexts {
  readonly #own: ServingPair
  readonly #built = new Map<string, { material: CompiledCluster['serving']; context: SecureContext }>()
  #union: SecureContext | undefined
  #unionCAs = ''

  constructor(own: ServingPair) {
    this.#own = own
  }

  /** Drops what no longer fits; new connections get the new material. */
  update(clusters: Iterable<CompiledCluster>): void {
    const cas = new Set<string>()
    const names = new Set<string>()
    for (const cluster of clusters) {
      names.add(cluster.name)
      if (cluster.serving.clientCA !== '') cas.add(cluster.serving.clientCA)
    }
    for (const name of this.#built.keys()) if (!names.has(name)) this.#built.delete(name)
    const unionCAs = [...cas].join('\n')
    if (unionCAs === this.#unionCAs) return
    this.#unionCAs = unionCAs
    this.#union = undefined
  }

  forCluster(cluster: CompiledCluster): SecureContext {
    const known = this.#built.get(cluster.name)
    if (known !== undefined && sameMaterial(known.material, cluster.serving)) return known.context
    const context = createSecureContext(this.optionsFor(cluster))
    this.#built.set(cluster.name, { material: cluster.serving, context })
    return context
  }

  /** For connections without SNI, or with a name of the gateway's own: any cluster's client CA verifies, the request path decides which counts. */
  own(): SecureContext {
    this.#union ??= createSecureContext(this.optionsFor(undefined))
    return this.#union
  }

  /** What a context is built of; `undefined` = the gateway's own. */
  optionsFor(cluster: CompiledCluster | undefined): SecureContextOptions {
    if (cluster === undefined) return contextOptions(this.#own, this.#unionCAs)
    const { cert, key, clientCA } = cluster.serving
    return contextOptions(cert !== '' ? { cert, key } : this.#own, clientCA)
  }
}

function sameMaterial(a: CompiledCluster['serving'], b: CompiledCluster['serving']): boolean {
  return a.cert === b.cert && a.key === b.key && a.clientCA === b.clientCA
}

/**
 * No session resumption: a resumed session carries an identity that was verified for another moment, and perhaps for
 * another cluster (CVE-2025-23419 class). SSL_OP_NO_TICKET without a session store turns it off in TLS 1.2 and 1.3.
 */
function contextOptions(pair: ServingPair, clientCA: string): SecureContextOptions {
  return {
    cert: pair.cert,
    key: pair.key,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_TICKET,
    sessionTimeout: 1,
    // An empty list would mean the system's CAs: a cluster without client CAs verifies nobody.
    ca: clientCA === '' ? [] : splitPem(clientCA),
  }
}

function splitPem(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
}
