// The flags of `portcullis degrade`, and the changes that they make to an UpstreamCluster.

import { type ControlPlaneOptions, readPositiveDuration } from '../../cli/client/control-plane.ts'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'

/** In a merge patch, null removes a field. */
export interface SwitchChange {
  readonly mode: DegradeMode
  readonly reason: string | null
  readonly expiresAt: string | null
  /** Always written: a shadow mode left over from an earlier trial must not disarm this mode. */
  readonly shadow: true | null
  /** Start of the ramp of Limited. */
  readonly since: string | null
  /** Setting a mode by hand ends a recovery. */
  readonly recovery: null
}

export function readChange({
  mode: text,
  reason = '',
  ttl,
  shadow = false,
  recover = false,
  status,
  now,
}: SwitchFlags): SwitchChange | undefined {
  if (text === undefined) {
    if (reason !== '' || ttl !== undefined || shadow)
      throw new UserError('--reason, --ttl and --shadow need --mode', `name one: ${DEGRADE_MODES.join(', ')}`)
    if (!status && !recover)
      throw new UserError(
        'nothing to do',
        'give --mode MODE to set the mode, --recover to lift it by steps, or --status to see it',
      )
    return undefined
  }
  const mode = DEGRADE_MODES.find((known) => known.toLowerCase() === text.toLowerCase())
  if (mode === undefined) {
    const meant = nearestName(text, DEGRADE_MODES)
    const fix = `${meant === '' ? '' : `did you mean ${meant}? `}modes are ${DEGRADE_MODES.join(', ')}`
    throw new UserError(`${JSON.stringify(text)} is not a mode`, fix)
  }
  if (mode === 'Off') {
    if (ttl !== undefined) throw new UserError('Off does not expire', 'leave --ttl out')
    if (shadow) throw new UserError('Off refuses nothing', 'leave --shadow out')
    return { mode, reason: reason === '' ? null : reason, expiresAt: null, shadow: null, since: null, recovery: null }
  }
  if (reason.trim() === '')
    throw new UserError(`${mode} needs a reason`, 'give --reason TEXT: every refused client reads it')
  const ttlMs = ttl === undefined ? undefined : readPositiveDuration('--ttl', ttl, parseDuration)
  const expiresAt = ttlMs === undefined ? null : expiryOf(now() + ttlMs)
  const since = mode === 'Limited' ? metaTime(now()) : null
  return { mode, reason, expiresAt, shadow: shadow ? true : null, since, recovery: null }
}

function expiryOf(atMs: number): string {
  // RFC 3339 ends with the year 9999.
  if (atMs >= Date.UTC(10_000, 0))
    throw new UserError('--ttl is too long', 'leave it out: the mode then does not expire')
  return metaTime(atMs)
}

export interface DegradeOptions extends SwitchFlags {
  readonly cluster: string
}

/** The flags, whichever clusters they are about. */
export interface SwitchFlags extends ControlPlaneOptions {
  /** A DegradeMode, case-insensitive; default: unchanged. */
  readonly mode?: string
  /** Required with every mode but Off. */
  readonly reason?: string
  /** A Go duration; default: until it is switched off. */
  readonly ttl?: string
  /** With a mode: refuse nothing, only count and warn. Default false, which ends shadow mode. */
  readonly shadow?: boolean
  /** Override a guard rail that advises against it. Default false. */
  readonly force?: boolean
  /** URL of the API server, if `client` is given. Default: unknown. */
  readonly server?: string
  /** Wait until it is in force everywhere, and show where. */
  readonly status: boolean
  /** Start a recovery by steps from the mode that is set. Default false. */
  readonly recover?: boolean
  /** With `recover`, Go durations. Default: those of the schema. */
  readonly hold?: string
  readonly ramp?: string
  /** With `status`: follow a recovery until it is over. Default false. */
  readonly watch?: boolean
  /** Between two polls of `watch`. Default 1 s. */
  readonly pollMs?: number
  /** Timeout. Default 30s. */
  readonly timeout?: string
  /** On this machine, without the API server (local.ts). Default false. */
  readonly local?: boolean
  /** With `local`: lift the local switch. Default false. */
  readonly off?: boolean
  /** With `local`: the gateway's data directory. Default `data`. */
  readonly dataDir?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
