// What `portcullis degrade` takes.

import type { ControlPlaneOptions } from '../client/control-plane.ts'

export interface DegradeOptions extends ControlPlaneOptions {
  readonly cluster: string
  /** A DegradeMode, case-insensitive; default: unchanged. */
  readonly mode?: string
  /** Required with every mode but Off. */
  readonly reason?: string
  /** A Go duration; default: until it is switched off. */
  readonly ttl?: string
  /** With a mode: refuse nothing, only count and warn. Default false, which ends shadow mode. */
  readonly shadow?: boolean
  /** Throw the switch although a guard rail speaks against it. Default false. */
  readonly force?: boolean
  /** URL of the API server, where `client` is given. Default: not known. */
  readonly server?: string
  /** Wait until it is in force everywhere, and show where. */
  readonly status: boolean
  /** Begin a recovery by steps from the mode that is set. Default false. */
  readonly recover?: boolean
  /** With `recover`, Go durations. Default: those of the schema. */
  readonly hold?: string
  readonly ramp?: string
  /** With `status`: follow a recovery until it is over. Default false. */
  readonly watch?: boolean
  /** Between two looks of `watch`. Default 1 s. */
  readonly pollMs?: number
  /** How long to wait. Default 30s. */
  readonly timeout?: string
  /** On this machine, without the API server (local.ts). Default false. */
  readonly local?: boolean
  /** With `local`: lift the switch that was thrown so. Default false. */
  readonly off?: boolean
  /** With `local`: that of the gateway. Default `data`. */
  readonly dataDir?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
