// spec.degrade in modes NoDisruption and Limited: which requests are examined, and how disruptive ones are refused. The request path finds
// out what they do (incidents/request/); `explain` knows only the head.

import { type Refusal, type RefusalCause, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import { rateAt, secondsToRamped } from '../limits/ramped-bucket.ts'
import { degradeMessage, effectiveMode, isExempt } from '../policy/degrade.ts'
import { type Disruption, disruptionOf, isEviction } from '../policy/disruption.ts'
import { comeBackText } from '../policy/traffic-messages.ts'
import type { Admission } from './filter.ts'
import { degradeCauses } from './rule-filters.ts'

/** What a request may disrupt, if the mode guards against it; undefined = it passes. Cheap when no such mode is set. */
export function guardedDisruption(admission: Admission): Disruption | undefined {
  const { cluster, info, user, userAgent, moment } = admission
  const { degrade } = cluster
  if (!degrade.guardsDisruption || effectiveMode(degrade, moment.nowMs) === 'Off') return undefined
  const disruption = disruptionOf(info, user)
  if (disruption === undefined || isExempt(degrade, info, user, userAgent)) return undefined
  return disruption
}

/** Refuses permanently. @param what it does, if only its body says so: `adds NoExecute taint x to node n1`; '' = its head says so */
export function refuseDisruption(admission: Admission, what: string): Refusal {
  const { cluster, info } = admission
  const mode: DegradeMode = 'NoDisruption'
  const reason = isEviction(info) ? 'eviction-refused' : 'disruption-refused'
  const message = `${degradeMessage(cluster.name, cluster.degrade, mode)}${whatText(what)}`
  return refuse(reason, message, { rule: mode, causes: causesOf(admission, mode, what), object: objectOf(admission) })
}

/** Refuses for now: mode Limited admits no more at the moment. */
export function limitDisruption(admission: Admission, what: string): Refusal {
  const { cluster, moment } = admission
  const { ramp } = cluster.degrade
  const mode: DegradeMode = 'Limited'
  const seconds = secondsToRamped(ramp, moment.nowMs)
  const rate = `${Math.floor(rateAt(ramp, moment.nowMs) * 10) / 10} a second`
  const message = `${degradeMessage(cluster.name, cluster.degrade, mode)}${whatText(what)}; now ${rate}${comeBackText(seconds)}`
  const causes = causesOf(admission, mode, what)
  causes.push({ reason: 'DegradeRate', message: rate, field: 'spec.degrade.limited' })
  return refuse('disruption-limited', message, {
    rule: mode,
    causes,
    retryAfterSeconds: seconds,
    object: objectOf(admission),
  })
}

function whatText(what: string): string {
  return what === '' ? '' : `; this request ${what}`
}

function causesOf(admission: Admission, mode: DegradeMode, what: string): RefusalCause[] {
  const causes = degradeCauses(admission.cluster, mode)
  if (what !== '') causes.push({ reason: 'Disruption', message: what, field: '' })
  return causes
}

function objectOf({ info }: Admission): { readonly kind: string; readonly name: string } {
  return { kind: info.resource, name: info.name }
}
