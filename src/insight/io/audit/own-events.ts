// Audit events of what is not a request: a degrade switch on this machine, and the end of a tap.

import { randomUUID } from 'node:crypto'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import type { LocalSwitch } from '../../../incidents/io/local-switches/switch-file.ts'
import { auditLine } from '../../../kube/io/audit/audit-event.ts'

// A degrade switch set or lifted on this machine, as an audit event: like a patch of the object by an OS user of the machine.

/** Without the line end. */
export function localSwitchLine(
  { cluster, mode, reason, by, at }: LocalSwitch,
  lifted: boolean,
  nowMs: number,
): string {
  const { group, version, plural } = UPSTREAM_CLUSTERS
  return auditLine({
    auditId: randomUUID(),
    stage: 'ResponseComplete',
    requestURI: `/apis/${group}/${version}/${plural}/${cluster}`,
    verb: 'patch',
    user: { name: `local:${by}`, uid: '', groups: ['portcullis:local'] },
    impersonatedUser: undefined,
    sourceIP: '',
    userAgent: 'portcullis degrade --local',
    object: { resource: plural, namespace: '', name: cluster, apiGroup: group, apiVersion: version, subresource: '' },
    response: { code: 200 },
    receivedMs: nowMs,
    stageMs: nowMs,
    annotations: {
      'portcullis.io/local-degrade': lifted ? `${mode} lifted` : mode,
      'portcullis.io/local-degrade-at': at,
      ...(reason !== '' && { 'portcullis.io/reason': reason }),
    },
  })
}

// The end of a tap as an audit event: who watched whose requests, with which filter, from when to when, and how many were shown.
interface AuditedTap {
  readonly auditId: string
  /** The name is '' if the admin listener requires no login. */
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly remoteAddress: string
  /** As requested. */
  readonly query: string
  /** Wall clock, milliseconds since the epoch. */
  readonly beganMs: number
  readonly nowMs: number
  /** Events. */
  readonly shown: number
  readonly dropped: number
}

/** Without the line end. */
export function tapAuditLine(tap: AuditedTap): string {
  const { auditId, user, remoteAddress, query, beganMs, nowMs, shown, dropped } = tap
  return auditLine({
    auditId,
    stage: 'ResponseComplete',
    requestURI: `/api/v1/tap${query === '' ? '' : `?${query}`}`,
    verb: 'get',
    user: { name: user.name, uid: '', groups: user.groups },
    impersonatedUser: undefined,
    sourceIP: remoteAddress,
    userAgent: '',
    object: undefined,
    response: { code: 200 },
    receivedMs: beganMs,
    stageMs: nowMs,
    annotations: {
      'portcullis.io/listener': 'admin',
      'portcullis.io/tap-shown': String(shown),
      'portcullis.io/tap-dropped': String(dropped),
    },
  })
}
