// Reverts the failed part of a scale-up: marks the machines, then lowers the target. Each write is guarded by the version that was
// evaluated: a concurrent change leads to another evaluation.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { ResourceKind } from '../../../kube/api/resource-kind.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { patchAsSeen } from '../../../kube/controllers/kernel/object-patch.ts'
import type { MachineState } from '../../core/guard/machine-failure.ts'
import type { FoundGroup } from '../../core/guard/machine-groups.ts'

export interface Correction {
  readonly found: FoundGroup
  readonly machines: readonly MachineState[]
  /** The target to write. */
  readonly replicas: number
}

interface CorrectionDeps {
  readonly client: ObjectClient
  /** API group of Cluster API. */
  readonly group: string
  readonly groupKind: ResourceKind
  readonly machineKind: ResourceKind
  /** Checked before each write. */
  mayWrite(): boolean
}

/** `stale`: changed since it was evaluated. */
export type CorrectionResult = 'done' | 'stale' | 'failed'

const MANAGER = 'portcullis'

/** Never rejects. @returns the result and a human-readable error; '' = none */
export async function correctGroup(
  { found, machines, replicas }: Correction,
  { client, group, groupKind, machineKind, mayWrite }: CorrectionDeps,
): Promise<{ readonly result: CorrectionResult; readonly message: string }> {
  const { namespace, name, resourceVersion } = found.facts
  try {
    for (const { uid, name: machine } of machines) {
      const facts = found.machines.get(uid)
      if (facts === undefined) continue
      if (!mayWrite()) return { result: 'stale', message: '' }
      // A machine that has become a node meanwhile has another version.
      const annotations = { [`${group}/delete-machine`]: MANAGER }
      const seen = { metadata: { namespace, name: machine, resourceVersion: facts.resourceVersion } }
      await patchAsSeen({ client, kind: machineKind, fieldManager: MANAGER }, seen, { metadata: { annotations } })
    }
    if (!mayWrite()) return { result: 'stale', message: '' }
    const target = { client, kind: groupKind, fieldManager: MANAGER, subresource: 'scale' } as const
    await patchAsSeen(target, { metadata: { namespace, name, resourceVersion } }, { spec: { replicas } })
    return { result: 'done', message: '' }
  } catch (error) {
    const message = errorMessage(error)
    const isStale = error instanceof StatusError && (error.reason === 'Conflict' || error.code === 404)
    return { result: isStale ? 'stale' : 'failed', message }
  }
}
