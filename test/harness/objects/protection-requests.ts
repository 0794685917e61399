// Deletions of pods as requests to the ledger, and its verdicts.

import type { PodFacts, ProtectionRequest, ProtectionVerdict } from '../../../src/protection/api/protection.ts'

/** An available one in the namespace `shop`. */
export function podOf(name: string, fields: Partial<PodFacts> = {}): PodFacts {
  return {
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: {},
    forceDelete: false,
    criterion: 'Available',
    terminating: false,
    scheduled: true,
    running: true,
    ready: true,
    readySinceMs: 1,
    startedMs: 1,
    createdMs: 1,
    readyWrittenMs: 1,
    ...fields,
  }
}

/** The deletion of an available pod, by a node of `prod`. */
export function deletionOf(name: string, fields: Partial<ProtectionRequest> = {}): ProtectionRequest {
  const pod = podOf(name)
  const common = {
    cell: 'prod',
    cause: 'DeletePod',
    via: 'filter',
    criterion: undefined,
    user: 'system:node:n1',
  } as const
  return { ...common, pod, dryRun: false, shadow: false, timeoutMs: 1000, ...fields }
}

export function verdictOf(status: ProtectionVerdict['status']): ProtectionVerdict {
  const admitted = status === 'AdmittedAll'
  const nothing = { overridden: '', protector: '', message: '', causes: [], retryAfterSeconds: 0 } as const
  return { ...nothing, status, admitted, freePass: false, reservation: undefined }
}
