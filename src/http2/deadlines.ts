// Deadlines of a connection: SETTINGS and their acknowledgement, the end of a frame or header block, and any
// sign of life, which PING requests.

import type { Http2Counters } from './counters.ts'
import { ENHANCE_YOUR_CALM, NO_ERROR, SETTINGS_TIMEOUT } from './frames.ts'
import type { Http2Limits } from './limits.ts'
import type { PeerSettings } from './peer-settings.ts'
import type { Sender } from './sender.ts'

/** The connection. */
export interface DeadlinesHost {
  /** Streams that count as open for the peer, as far as we know. */
  readonly takenStreams: number
  /** When the incomplete frame or header block began; -1 = none. */
  readonly heldSinceMs: number
  /** A deadline has passed. */
  end(code: number, message: string): void
}

/** Message of `onClosed` for a peer that doesn't answer; with code NO_ERROR, as for a clean end. */
export const PING_UNANSWERED = 'no answer to PING'
/** Payload of keepalive PINGs. */
const PING_KEEPALIVE = 0x706f7274

export class Deadlines {
  readonly #host: DeadlinesHost
  readonly #limits: Http2Limits
  readonly #counters: Http2Counters
  readonly #settings: PeerSettings
  readonly #sender: Sender
  readonly #startedMs: number
  /** When the peer last sent anything. */
  lastReceivedMs: number
  #pingSentMs = -1

  constructor(
    host: DeadlinesHost,
    limits: Http2Limits,
    counters: Http2Counters,
    settings: PeerSettings,
    sender: Sender,
    nowMs: number,
  ) {
    this.#host = host
    this.#limits = limits
    this.#counters = counters
    this.#settings = settings
    this.#sender = sender
    this.#startedMs = nowMs
    this.lastReceivedMs = nowMs
  }

  /** Call it about every second while the connection is open. */
  tick(nowMs: number): void {
    const limits = this.#limits
    if (!this.#settings.received && nowMs - this.#startedMs > limits.headTimeoutMs) {
      this.#counters.slowPreface++
      this.#host.end(SETTINGS_TIMEOUT, 'no SETTINGS in time')
    } else if (!this.#settings.acknowledged && nowMs - this.#startedMs > limits.settingsTimeoutMs) {
      this.#counters.settingsTimeouts++
      this.#host.end(SETTINGS_TIMEOUT, 'SETTINGS were not acknowledged')
    } else if (this.#isHeadLate(nowMs)) {
      this.#counters.slowPreface++
      this.#host.end(ENHANCE_YOUR_CALM, 'a frame or header block was not completed in time')
    } else this.#checkPeer(nowMs)
  }

  #isHeadLate(nowMs: number): boolean {
    const sinceMs = this.#host.heldSinceMs
    return sinceMs >= 0 && sinceMs < nowMs - this.#limits.headTimeoutMs
  }

  #checkPeer(nowMs: number): void {
    const limits = this.#limits
    if (this.#pingSentMs >= 0) {
      if (this.lastReceivedMs >= this.#pingSentMs) this.#pingSentMs = -1
      else if (nowMs - this.#pingSentMs > limits.pingTimeoutMs) {
        this.#counters.pingTimeouts++
        this.#host.end(NO_ERROR, PING_UNANSWERED)
      }
      return
    }
    if (this.#host.takenStreams === 0 || nowMs - this.lastReceivedMs < limits.pingIntervalMs) return
    this.#pingSentMs = nowMs
    this.#sender.ping(PING_KEEPALIVE, 0, false)
  }
}
