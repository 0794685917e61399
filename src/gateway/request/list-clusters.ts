// `GET /clusters`: the clusters that accept the credential of this request, so that a user needs no rights on UpstreamClusters to know them. No cluster
// is asked, so those that verify tokens themselves are missing, and the answer says so.

import type { Refusal } from '../../kit/core/refusal/refusal.ts'
import { readIdToken } from '../../pki/io/id-tokens/verify-id-token.ts'
import { type ParsedChain, parseChain } from '../../pki/io/x509-chain.ts'
import { refuseUnauthorized } from '../core/admission/steps.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { readBearerToken } from '../core/request/websocket-token.ts'
import { tokenHashes } from '../io/reviews/credential-hashes.ts'
import { takeSteps } from '../io/scheduling/sliced-steps.ts'
import { type AcceptingCluster, acceptingClusters, checkSignatures, type SignedToken } from './accepting-clusters.ts'
import { MAX_BEARER_LENGTH, refuseCertificate } from './authenticate.ts'
import { fail, refuseBlocked, refuseBlockedToken, refuseFailed, trialPassed } from './blocked-address.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { Authenticated } from './exchange/identity.ts'
import { respondWith } from './exchange/respond.ts'

/** Charges the sender, who is now known. */
type Identify = (requester: Authenticated, cluster: CompiledCluster) => Refusal | undefined

/** The credentials of the request; only the handshake has been verified. */
interface Presented {
  readonly chain: ParsedChain | undefined
  /** '' = none. */
  readonly token: string
  /** It may try, although its address is blocked. */
  readonly isTrial: boolean
}

/** Faults of a token that no honest client sends. */
const FORGED: ReadonlySet<string | undefined> = new Set(['unknown-key', 'algorithm', 'malformed'])

/** @returns a refusal that is still to be sent */
export function listClusters(exchange: Exchange, identify: Identify): Refusal | Promise<Refusal | undefined> {
  const presented = readCredentials(exchange)
  return 'refused' in presented ? presented : list(exchange, presented, identify)
}

function readCredentials(exchange: Exchange): Presented | Refusal {
  const { peer } = exchange
  const parsed = peer.certificate && parseChain(peer.certificate)
  const chain = parsed === undefined || 'error' in parsed ? undefined : parsed
  const bearer = readBearerToken(exchange.list)
  if (bearer.kind === 'token' && bearer.token.length <= MAX_BEARER_LENGTH) {
    const { token } = bearer
    // No reviews: nothing is known of it here.
    const blocked = chain === undefined ? refuseBlockedToken(exchange, token, () => 'unknown') : undefined
    return blocked === undefined || blocked === 'trial' ? { chain, token, isTrial: blocked === 'trial' } : blocked
  }
  if (chain !== undefined) return { chain, token: '', isTrial: false }
  if (bearer.kind !== 'none') return refuseFailed(exchange)
  const blocked = refuseBlocked(exchange)
  if (blocked !== undefined) return blocked
  return peer.certificate === undefined ? refuseUnauthorized() : refuseCertificate(exchange, refuseUnauthorized())
}

async function list(
  exchange: Exchange,
  { chain, token, isTrial }: Presented,
  identify: Identify,
): Promise<Refusal | undefined> {
  const isOver = (): boolean => exchange.gone
  const signed = token === '' ? undefined : await readSigned(exchange, token)
  const listing = new Listing(exchange, chain, signed)
  await takeSteps(exchange.charge, listing.untilFirst(), isOver)
  const { first } = listing
  if (exchange.gone) return gone(exchange)
  if (first === undefined) return refuseBlocked(exchange) ?? refuseUnauthorized()
  const { requester, cluster } = first
  if (requester.kind === 'token') {
    const [hash] = requester.hashes
    if (hash !== undefined) exchange.gw.failures?.acceptedToken(hash)
    if (isTrial) trialPassed(exchange)
  }
  const refusal = identify(requester, cluster)
  if (refusal !== undefined) return refusal
  await takeSteps(exchange.charge, listing.rest(), isOver)
  if (exchange.gone) return gone(exchange)
  if (listing.isFull) return exchange.buffered?.refusal()
  // Any cluster that is missing might accept the token by asking its API server: whether there is one is not said.
  const body = Buffer.from(listing.json(token !== ''))
  respondWith(exchange, 200, ['content-type', 'application/json'], body, [])
  return undefined
}

function gone(exchange: Exchange): undefined {
  exchange.record.aborted = 'client'
  exchange.end()
}

/** undefined = no issuer has signed it; a forged one counts as a failed login. */
async function readSigned(exchange: Exchange, token: string): Promise<SignedToken | undefined> {
  const jwt = readIdToken(token)
  if (jwt === undefined) return undefined
  const checked: Parameters<typeof checkSignatures>[2] = []
  await takeSteps(exchange.charge, checkSignatures(exchange, jwt, checked), () => exchange.gone)
  const keys = new Set<string>()
  let isForged = false
  for (const [source, pending] of checked) {
    const fault = await pending
    if (fault === undefined) keys.add(source)
    else isForged ||= FORGED.has(fault)
  }
  if (keys.size > 0) return { jwt, hashes: tokenHashes(token), keys }
  if (isForged) fail(exchange)
  return undefined
}

/** The answer, cluster by cluster. */
class Listing {
  readonly #exchange: Exchange
  readonly #steps: Generator<AcceptingCluster | undefined>
  #first: AcceptingCluster | undefined
  /** JSON of each. */
  readonly #entries: string[] = []
  /** The sender has no more memory. */
  isFull = false

  constructor(exchange: Exchange, chain: ParsedChain | undefined, token: SignedToken | undefined) {
    this.#exchange = exchange
    this.#steps = acceptingClusters(exchange, chain, token)
  }

  /** The sender, as a cluster knows it. */
  get first(): AcceptingCluster | undefined {
    return this.#first
  }

  *untilFirst(): Generator<undefined> {
    for (let next = this.#steps.next(); next.done !== true; next = this.#steps.next()) {
      if (next.value !== undefined) {
        this.#first = next.value
        return
      }
      yield undefined
    }
  }

  *rest(): Generator<undefined> {
    this.#add(this.#first)
    for (const one of this.#steps) {
      this.#add(one)
      if (this.isFull) return
      yield undefined
    }
  }

  /** @param isIncomplete clusters that the sender may reach may be missing */
  json(isIncomplete: boolean): string {
    return `{"kind":"ReachableClusters","incomplete":${isIncomplete},"clusters":[${this.#entries.join(',')}]}\n`
  }

  #add(one: AcceptingCluster | undefined): void {
    if (one === undefined) return
    const entry = JSON.stringify({ name: one.cluster.name })
    if (this.#exchange.takeMemory(entry.length)) this.#entries.push(entry)
    else this.isFull = true
  }
}
