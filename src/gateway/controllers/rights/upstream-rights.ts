// Checks whether the gateway's credential has the rights it needs in each cluster: when a cluster or its credential is new, when
// upstream's refusals suggest a missing right, and every few minutes. Each replica checks for itself: it may have another version of
// the credential, and its own log should explain why its requests fail.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { Queued } from '../../../kit/core/queues/round-robin-queue.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import { REVIEW } from '../../../kube/core/answers/answer-limits.ts'
import { KubeCallError } from '../../../kube/core/answers/call-errors.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import {
  type GatewayRight,
  gatewayRights,
  isProtectionRight,
  requestsStillPass,
} from '../../core/identity/gateway-rights.ts'
import { contentHash } from '../../io/sources/files/content-hash.ts'
import { type CallOneOf, callOneOf, type KubeAnswer } from '../../io/upstream/kube-call.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import { createProbeGate, type ProbeGate } from '../probes/probe-gate.ts'
import { askRights, type RightsAnswer } from './ask-rights.ts'

/** `unasked` = no answer from the cluster yet. */
export type RightsState = RightsAnswer | { readonly kind: 'unasked' }

export interface UpstreamRights {
  /** Last known state. */
  get(cluster: string): RightsState
  /** Applies a change of the cluster table. */
  change(changed: readonly CompiledCluster[], removed: readonly string[]): void
  /** Something may have changed in the cluster: an endpoint came up, or requests are refused. */
  checkNow(cluster: string): void
  stop(): void
}

interface UpstreamRightsDeps {
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly upstreams: Pick<Upstreams, 'get'>
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  /** The state of a cluster or its message has changed. */
  onChange(cluster: string, state: RightsState): void
  readonly pace?: Partial<RightsPace>
}

interface RightsPace {
  /** Between two checks while nothing is missing. Default 5 min: a revoked right breaks requests, which triggers a check. */
  readonly everyMs: number
  /** Longest wait between two checks while something is missing, since an operator is likely to fix it. Default 15 s. */
  readonly missingMs: number
  /** Half of the wait after the first failed check; doubles up to `missingMs` or `everyMs`. Default 1 s. */
  readonly retryMs: number
  /** `checkNow` never checks sooner than this after the last check. Default 15 s. */
  readonly cooldownMs: number
}

const DEFAULT_PACE: RightsPace = { everyMs: 300_000, missingMs: 15_000, retryMs: 1_000, cooldownMs: 15_000 }
/** Each wait varies by this fraction, so that many gateways don't ask at the same moment. */
const JITTER = 0.1
const TIMEOUT_MS = 5_000
/** Consecutive failed checks after which the known state is dropped. */
const FORGIVEN = 3
const UNASKED: RightsState = { kind: 'unasked' }

export function startUpstreamRights(deps: UpstreamRightsDeps): UpstreamRights {
  const pace = { ...DEFAULT_PACE, ...deps.pace }
  const gate = createProbeGate<RightsChecker>((one) => void one.ask())
  const all = new Map<string, RightsChecker>()
  return {
    get: (cluster) => all.get(cluster)?.state ?? UNASKED,
    change(changed, removed) {
      for (const name of removed) {
        all.get(name)?.stop()
        all.delete(name)
      }
      for (const compiled of changed) {
        const known = all.get(compiled.name)
        if (known === undefined) all.set(compiled.name, new RightsChecker(compiled, deps, pace, gate))
        else known.follow(compiled)
      }
    },
    checkNow: (cluster) => all.get(cluster)?.checkNow(),
    stop() {
      for (const one of all.values()) one.stop()
      all.clear()
    },
  }
}

class RightsChecker extends Queued {
  state: RightsState = UNASKED
  readonly #name: string
  readonly #deps: UpstreamRightsDeps
  readonly #pace: RightsPace
  readonly #gate: ProbeGate<RightsChecker>
  #fingerprint: string
  #rights: readonly GatewayRight[]
  #timer: NodeJS.Timeout | undefined
  #dueMs = Number.POSITIVE_INFINITY
  #askedMs = Number.NEGATIVE_INFINITY
  #running = false
  /** Whether another check must follow the running one: the credential has changed, or `checkNow` was called. */
  #again: 'no' | 'soon' | 'now' = 'no'
  /** Consecutive checks without an answer. */
  #unanswered = 0
  /** Negative answers since the rights were last granted. */
  #negatives = 0
  /** This credential had all of these rights before. */
  #wasGranted = false
  #stopped = false

  constructor(compiled: CompiledCluster, deps: UpstreamRightsDeps, pace: RightsPace, gate: ProbeGate<RightsChecker>) {
    super()
    this.#name = compiled.name
    this.#deps = deps
    this.#pace = pace
    this.#gate = gate
    this.#rights = gatewayRights(compiled)
    this.#fingerprint = fingerprintOf(compiled, this.#rights)
    this.#enter()
  }

  /** Drops a state known for another credential or other rights, unless everything needed now was granted. */
  follow(compiled: CompiledCluster): void {
    const rights = gatewayRights(compiled)
    const fingerprint = fingerprintOf(compiled, rights)
    if (fingerprint === this.#fingerprint) return
    // Computed with the previous rights, to tell whether the credential is the same.
    const isSubset = fingerprintOf(compiled, this.#rights) === this.#fingerprint && areAmong(rights, this.#rights)
    this.#fingerprint = fingerprint
    this.#rights = rights
    if (isSubset && this.state.kind === 'granted') return
    this.#unanswered = 0
    this.#negatives = 0
    this.#wasGranted = false
    this.#become(UNASKED)
    if (this.#running) this.#again = 'now'
    else this.#enter()
  }

  checkNow(): void {
    if (this.#running) {
      if (this.#again === 'no') this.#again = 'soon'
      return
    }
    const { kind } = this.state
    const waits = kind !== 'unasked' && kind !== 'unanswered'
    const waitMs = waits ? this.#askedMs + this.#pace.cooldownMs - this.#deps.clock.monotonic() : 0
    this.#schedule(Math.max(0, waitMs), true)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#gate.leave(this)
  }

  #enter(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
    if (!this.#stopped) this.#gate.enter(this)
  }

  /** @param earlier true = don't postpone a check that is due earlier */
  #schedule(delayMs: number, earlier = false): void {
    if (this.#stopped) return
    const dueMs = this.#deps.clock.monotonic() + delayMs
    if (earlier && dueMs >= this.#dueMs) return
    clearTimeout(this.#timer)
    this.#dueMs = dueMs
    this.#timer = setTimeout(() => this.#enter(), delayMs)
    this.#timer.unref()
  }

  /** Called by the gate. Never rejects. */
  async ask(): Promise<void> {
    this.#running = true
    this.#again = 'no'
    this.#askedMs = this.#deps.clock.monotonic()
    const fingerprint = this.#fingerprint
    // `checkNow` is called when an endpoint becomes healthy.
    if (this.state.kind === 'unasked' && this.#available().length === 0) {
      this.#gate.leave(this)
      this.#running = false
      this.#schedule(this.#pace.missingMs)
      return
    }
    const answer = await askRights((path, body) => this.#call(path, body), this.#rights)
    this.#gate.leave(this)
    this.#running = false
    if (this.#stopped) return
    if (fingerprint !== this.#fingerprint) this.#enter()
    else this.#settle(answer)
  }

  #settle(answer: RightsAnswer): void {
    const { everyMs, missingMs, retryMs, cooldownMs } = this.#pace
    this.#unanswered = answer.kind === 'unanswered' ? this.#unanswered + 1 : 0
    if (answer.kind === 'missing' || answer.kind === 'rejected') this.#negatives++
    if (answer.kind === 'granted') {
      this.#negatives = 0
      this.#wasGranted = true
    }
    if (!this.#isUnconfirmed(answer)) this.#become(answer)
    const failures = this.#unanswered + this.#negatives
    const longestMs = answer.kind === 'unanswered' ? everyMs : Math.min(missingMs, everyMs)
    const waitMs = answer.kind === 'granted' ? everyMs : Math.min(longestMs, retryMs * 2 ** Math.min(failures, 20))
    this.#schedule(waitMs * (1 - JITTER + 2 * JITTER * this.#deps.random()))
    if (this.#again !== 'no') this.#schedule(cooldownMs, true)
  }

  /**
   * A single unanswered check changes nothing. A lost right or a rejected credential is checked twice: an API server that has
   * just started knows neither RBAC rules nor service accounts, whether its restart was noticed or not.
   */
  #isUnconfirmed({ kind }: RightsAnswer): boolean {
    if (kind === 'unanswered') return this.state.kind !== 'unasked' && this.#unanswered < FORGIVEN
    return kind !== 'granted' && this.#wasGranted && this.#negatives < 2
  }

  #become(state: RightsState): void {
    const before = this.state
    if (before.kind === state.kind && messageOf(before) === messageOf(state)) return
    this.state = state
    const { log, onChange } = this.#deps
    const cluster = this.#name
    const why = messageOf(state)
    if (state.kind === 'missing') log.warn(missingText(state.missing), { cluster, why })
    if (state.kind === 'rejected') log.warn('a cluster does not accept the credential of the gateway', { cluster, why })
    if (state.kind === 'unanswered') log.warn('the rights of the gateway in a cluster are unknown', { cluster, why })
    if (state.kind === 'granted') log.info('the gateway has all rights that it needs in a cluster', { cluster })
    onChange(cluster, state)
  }

  #available(): readonly Endpoint[] {
    const { clusters, clock } = this.#deps
    const endpoints = clusters.get(this.#name)?.endpoints
    const nowMs = clock.monotonic()
    return endpoints?.all.filter((_, i) => endpoints.available(i, nowMs)) ?? []
  }

  async #call(path: string, body: string): Promise<KubeAnswer> {
    const { clusters, upstreams, random } = this.#deps
    const live = clusters.get(this.#name)
    if (live === undefined) throw new KubeCallError('the cluster no longer exists')
    const oneOf: CallOneOf = {
      endpoints: this.#available(),
      connections: (url) => upstreams.get(this.#name, url),
      random,
      timeoutMs: () => TIMEOUT_MS,
      testsCredential: true,
    }
    const token = live.compiled.client.bearerToken
    return callOneOf(oneOf, { method: 'POST', path, body, token, limits: REVIEW, payer: clusterCharge(this.#name) })
  }
}

function missingText(missing: readonly GatewayRight[]): string {
  if (!requestsStillPass(missing)) return 'the gateway lacks rights in a cluster: its requests are refused'
  const what = missing.some(isProtectionRight) ? 'pod protection' : 'its work beyond forwarding requests'
  return `the gateway lacks rights that ${what} needs in a cluster`
}

/** Why user requests are refused; '' = not because of missing rights. */
export function requestFault(state: RightsState): string {
  if (state.kind === 'rejected') return state.message
  return state.kind === 'missing' && !requestsStillPass(state.missing) ? state.message : ''
}

function messageOf(state: RightsState): string {
  return 'message' in state ? state.message : ''
}

function areAmong(rights: readonly GatewayRight[], known: readonly GatewayRight[]): boolean {
  const texts = new Set(known.map((right) => JSON.stringify(right)))
  return rights.every((right) => texts.has(JSON.stringify(right)))
}

/** Changes whenever the answer may change. */
function fingerprintOf(
  { client, endpoints }: Pick<CompiledCluster, 'client' | 'endpoints'>,
  rights: readonly GatewayRight[],
): string {
  const { cert, key, bearerToken, ca, serverName, insecure } = client
  const servers = endpoints.map(({ url }) => url)
  const all = JSON.stringify([cert, key, bearerToken, ca, serverName, insecure, servers, rights])
  return contentHash(Buffer.from(all))
}
