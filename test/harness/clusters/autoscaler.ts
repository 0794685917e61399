// What a cluster-autoscaler writes of itself, as recorded, with other times: every write has new ones (clusterstate/utils/status.go).

import { readFileSync } from 'node:fs'
import { LAST_UPDATED } from '../../../src/gateway/core/autoscaler-status/status.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'

/** @param nowMs milliseconds since the epoch */
export function recordedStatus(nowMs: number): string {
  const text = readFileSync(new URL('../../data/autoscaler-status/1.30.yaml', import.meta.url), 'utf8')
  const iso = new Date(nowMs).toISOString()
  const [date = '', time = ''] = iso.replace('Z', '').split('T')
  return text
    .replaceAll(/^( *lastProbeTime: ).*$/gm, `$1"${iso}"`)
    .replace(/^(time: )[^:]*:[^:]*:[^:\n]*/, `$1${date} ${time}000000 +0000 UTC`)
}

export function statusConfigMap(status: string, nowMs: number): JsonObject {
  const [date = '', time = ''] = new Date(nowMs).toISOString().replace('Z', '').split('T')
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'cluster-autoscaler-status',
      namespace: 'kube-system',
      annotations: { [LAST_UPDATED]: `${date} ${time}000000 +0000 UTC` },
    },
    data: { status },
  }
}

/** The same with every group out of backoff. */
export function withoutBackoff(status: string): string {
  return status.replace(/status: Backoff\n +backoffInfo:\n.*\n.*\n/, 'status: NoActivity\n')
}
