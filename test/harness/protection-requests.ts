// Deletions of pods as the ledger is asked about them, and its verdicts.

import type { PodFacts, ProtectionRequest, ProtectionVerdict } from '../../src/api/protection.ts'

/** Of an available pod in the namespace `shop`, by a node of `prod`. */
export function deletionOf(name: string, fields: Partial<ProtectionRequest> = {}): ProtectionRequest {
  const pod: PodFacts = {
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
  }
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
