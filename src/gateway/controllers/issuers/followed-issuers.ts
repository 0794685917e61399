// Reads the keys of the issuers that clusters name (spec.authentication.jwt), once for all clusters and threads: when the first cluster names an issuer,
// every ten minutes, and when a thread sees a token with an unknown key, but then at most every five seconds. Keys stay in use for a day while their
// issuer is away.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { IssuerKeys } from '../../../pki/io/id-tokens/issuer-keys.ts'
import type { SigningKey } from '../../../pki/io/id-tokens/signing-keys.ts'
import type { CompiledCluster, CompiledIssuer } from '../../core/cluster/compiled-cluster.ts'
import type { IssuerFact } from '../../core/status/status-facts.ts'
import type { KeysRead } from '../../io/reviews/issuer-tokens.ts'

interface FollowedIssuersDeps {
  readonly guard: DialGuard
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** For all gateway threads. */
  publish(read: KeysRead): void
  /** Reads a document. Default: over https. */
  readonly fetch?: (url: string) => Promise<unknown>
}

/** For metrics. */
export interface IssuerState {
  readonly issuer: string
  readonly keys: number
  readonly fetched: number
  readonly notFetched: number
}

/** Maximum concurrent reads: with thousands of clusters, all issuers would be read at once at the start. */
const MAX_READS = 16
/** How long the keys of an issuer that is away stay in use. */
const KEEP_KEYS_MS = 24 * 60 * 60_000

export class FollowedIssuers {
  readonly #deps: FollowedIssuersDeps
  /** By source (CompiledIssuer.keys). */
  readonly #issuers = new Map<string, FollowedIssuer>()
  /** Sources, by cluster. */
  readonly #clusters = new Map<string, readonly string[]>()
  /** By a key that is never reused: otherwise an issuer that is added again would wait for the pending read of its former entry. */
  readonly #byKey = new Map<string, FollowedIssuer>()
  readonly #reads: WorkQueue
  #made = 0

  constructor(deps: FollowedIssuersDeps) {
    this.#deps = deps
    const { clock, log } = deps
    this.#reads = new WorkQueue({
      reconcile: (key) => this.#read(key),
      onError: (_, error) => log.error('the keys of an issuer could not be put in force', { error }),
      clock,
      random: Math.random,
      limit: MAX_READS,
    })
  }

  /** Applies a change of the cluster table: the keys of new issuers are read at once. */
  change(changed: readonly CompiledCluster[], removed: readonly string[]): void {
    const before = new Set<string>()
    for (const name of removed) this.#forget(name, before)
    for (const { name, authentication } of changed) {
      this.#forget(name, before)
      const { issuers } = authentication
      if (issuers.length === 0) continue
      this.#clusters.set(
        name,
        issuers.map(({ keys }) => keys),
      )
      for (const issuer of issuers) this.#use(issuer)
    }
    for (const source of before) {
      const issuer = this.#issuers.get(source)
      if (issuer !== undefined && issuer.users === 0) this.#end(source, issuer)
    }
  }

  /** A token has an unknown key. Resolves when the keys have been read; at once if they were read a moment ago. Never rejects. */
  async readAgain(source: string): Promise<void> {
    const issuer = this.#issuers.get(source)
    await issuer?.keys.refetch()
    if (issuer !== undefined && this.#issuers.get(source) === issuer) issuer.publishIfNew()
  }

  /** undefined = the cluster names none. */
  ofCluster(cluster: string): readonly IssuerFact[] | undefined {
    return this.#clusters.get(cluster)?.flatMap((source) => this.#issuers.get(source)?.fact ?? [])
  }

  all(): readonly IssuerState[] {
    return Array.from(this.#issuers.values(), ({ state }) => state)
  }

  stop(): void {
    void this.#reads.stop()
    for (const { keys } of this.#issuers.values()) keys.stop()
  }

  async #read(key: string): Promise<ReconcileOutcome> {
    await this.#byKey.get(key)?.keys.fetchNow()
    const issuer = this.#byKey.get(key)
    if (issuer === undefined) return 'done'
    issuer.publishIfNew()
    this.#reads.add(key, issuer.keys.nextMs)
    return 'done'
  }

  #use(issuer: CompiledIssuer): void {
    const known = this.#issuers.get(issuer.keys)
    if (known !== undefined) {
      known.users++
      return
    }
    const fresh = new FollowedIssuer(String(++this.#made), issuer, this.#deps)
    this.#issuers.set(issuer.keys, fresh)
    this.#byKey.set(fresh.key, fresh)
    this.#reads.add(fresh.key)
  }

  #forget(cluster: string, before: Set<string>): void {
    for (const source of this.#clusters.get(cluster) ?? []) {
      before.add(source)
      const issuer = this.#issuers.get(source)
      if (issuer !== undefined) issuer.users--
    }
    this.#clusters.delete(cluster)
  }

  #end(source: string, { key, keys }: FollowedIssuer): void {
    this.#issuers.delete(source)
    this.#byKey.delete(key)
    this.#reads.forget(key)
    keys.stop()
    this.#deps.publish({ source, keys: undefined })
  }
}

class FollowedIssuer {
  readonly key: string
  readonly keys: IssuerKeys
  readonly #issuer: CompiledIssuer
  readonly #publish: FollowedIssuersDeps['publish']
  #published: readonly SigningKey[] | undefined
  readonly #counts = { fetched: 0, notFetched: 0 }
  /** Entries of clusters that name it. */
  users = 1

  constructor(key: string, issuer: CompiledIssuer, { guard, clock, log, publish, fetch }: FollowedIssuersDeps) {
    this.key = key
    this.#issuer = issuer
    this.#publish = publish
    const { rules, discoveryUrl, ca } = issuer
    this.keys = new IssuerKeys({
      issuer: rules.issuer,
      discoveryUrl,
      ca: () => (ca === '' ? undefined : ca),
      guard,
      keepMs: KEEP_KEYS_MS,
      log,
      monotonic: () => clock.monotonic(),
      onFetched: (succeeded) => {
        if (succeeded) this.#counts.fetched++
        else this.#counts.notFetched++
      },
      ...(fetch !== undefined && { fetch }),
    })
  }

  publishIfNew(): void {
    const { keys } = this.keys
    if (keys === this.#published) return
    this.#published = keys
    this.#publish({ source: this.#issuer.keys, keys: keys.map(({ jwk }) => jwk) })
  }

  get fact(): IssuerFact {
    const { keys, message } = this.keys
    const { fetched, notFetched } = this.#counts
    return { issuer: this.#issuer.rules.issuer, keys: keys.length, asked: fetched + notFetched > 0, message }
  }

  get state(): IssuerState {
    return { issuer: this.#issuer.rules.issuer, keys: this.keys.keys.length, ...this.#counts }
  }
}
