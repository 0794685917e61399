// A degrade switch set or lifted on this machine, as an audit event: like a patch of the object by an OS user of the machine.

import { randomUUID } from 'node:crypto'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import { auditLine } from '../../../kube/io/audit/audit-event.ts'
import type { LocalSwitch } from './switch-file.ts'

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
