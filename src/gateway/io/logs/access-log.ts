// The access log: one JSON line per request, with the names that `portcullis explain --stdin` reads, so that a log can be replayed against a changed
// configuration. Serialized by hand: it runs for every request.

import { identityJson, quote } from '../../../kit/core/text/json-quote.ts'
import { rfc3339Micro } from '../../../kit/io/world/timestamp.ts'
import type { RequestRecord } from '../../api/request-record.ts'
import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'

/**
 * A function that writes the line of a finished request, subject to the switches of its cluster and policy. Create it only if the gateway's own
 * switch is on.
 */
export function createAccessLog(write: (line: string) => void): (record: RequestRecord) => void {
  return (record) => {
    if (accessLogEnabled(true, record.clusterLogMode, record.policyLogMode)) write(formatAccessLine(record))
  }
}

/** The line of a request, without the line end. */
export function formatAccessLine(record: RequestRecord): string {
  let line = `{"time":"${rfc3339Micro(exactStart(record))}","auditID":${quote(record.auditId)}`
  line += `,"cluster":${quote(record.cluster)}`
  if (record.federation !== '') line += `,"federation":${quote(record.federation)}`
  line += `,"host":${quote(record.host)}`
  line += `,"method":${quote(record.method)},"target":${quote(record.target)}`
  line += `,"protocol":"${record.protocol}","user":${quote(record.user)},"groups":${identityJson(record.groups)}`
  if (record.uid !== '') line += `,"uid":${quote(record.uid)}`
  if (record.impersonator !== '') line += `,"impersonator":${quote(record.impersonator)}`
  if (record.accessGrant !== '') line += `,"accessGrant":${quote(record.accessGrant)}`
  line += `,"userAgent":${quote(record.userAgent)},"remoteAddress":${quote(record.remoteAddress)}`
  if (record.proxyAddress !== '') line += `,"proxyAddress":${quote(record.proxyAddress)}`
  line += `,"localAddress":${quote(record.localAddress)},"localPort":${record.localPort}`
  line += `,"verb":${quote(record.verb)}`
  if (record.isResourceRequest) line += resourceFields(record)
  line += `,"policy":${indexOrNull(record.policy)},"rule":${indexOrNull(record.rule)}`
  if (record.flowControl !== '') line += `,"flowControl":${quote(record.flowControl)}`
  if (record.endpoint !== '') line += `,"endpoint":${quote(record.endpoint)},"attempts":${record.attempts}`
  line += `,"code":${record.code}`
  if (record.refusal !== '') line += refusalFields(record)
  if (record.shadow.length > 0) line += `,"shadow":${JSON.stringify(record.shadow)}`
  if (record.protection !== '') line += `,"protection":"${record.protection}"`
  if (record.aborted !== '') line += `,"aborted":"${record.aborted}"`
  line += `,"requestBytes":${record.requestBytes},"responseBytes":${record.responseBytes}`
  line += `,"latencyMs":${milliseconds(record.durationMs)},"ttfbMs":${milliseconds(record.ttfbMs)}`
  return `${line},"upstreamMs":${milliseconds(record.upstreamMs)}}`
}

/** From the monotonic clock to the wall clock; reset when they drift apart. */
let offsetMs = 0
/** Maximum drift between them, beyond the wall clock's resolution. */
const MAX_DRIFT_MS = 1

/**
 * Milliseconds since the epoch, with fractions: the wall clock only has whole milliseconds, and a replay must order requests within one. The
 * monotonic clock provides that.
 */
function exactStart({ startMs, startWallMs }: RequestRecord): number {
  const exact = startMs + offsetMs
  if (exact >= startWallMs - MAX_DRIFT_MS && exact < startWallMs + 1 + MAX_DRIFT_MS) return exact
  offsetMs = startWallMs + 0.5 - startMs
  return startWallMs + 0.5
}

function resourceFields(record: RequestRecord): string {
  let fields = `,"apiGroup":${quote(record.apiGroup)},"apiVersion":${quote(record.apiVersion)}`
  fields += `,"resource":${quote(record.resource)}`
  if (record.subresource !== '') fields += `,"subresource":${quote(record.subresource)}`
  if (record.namespace !== '') fields += `,"namespace":${quote(record.namespace)}`
  if (record.name !== '') fields += `,"name":${quote(record.name)}`
  return fields
}

function refusalFields(record: RequestRecord): string {
  const rule = record.refusalRule === '' ? '' : `,"refusedBy":${quote(record.refusalRule)}`
  return `,"reason":${quote(record.refusal)}${rule},"message":${quote(record.message)}`
}

function indexOrNull(index: number): string {
  return index < 0 ? 'null' : String(index)
}

/** Microsecond resolution; null = not reached. */
function milliseconds(value: number): string {
  return value < 0 ? 'null' : String(Math.round(value * 1000) / 1000)
}

/**
 * Whether a request is written to the access log, by three switches, for gateway, cluster and policy. The gateway's switch must be on. Then `off` in the policy or the cluster wins, and at least one of the two must say `on`. Off applies to
 * every request, slow ones and 5xx included.
 */
export function accessLogEnabled(gateway: boolean, cluster: LogMode, policy: LogMode): boolean {
  if (!gateway || cluster === 'off' || policy === 'off') return false
  return cluster === 'on' || policy === 'on'
}
