// What spec.podProtection.admissionOrder and hints mean for one deletion, for filter and webhook alike.

import type { ProtectionRequest } from '../../../api/ports/protection.ts'
import type { CompiledProtection } from '../../cluster/compiled-cluster.ts'

type OrderSettings = Pick<CompiledProtection, 'admissionOrder' | 'gather' | 'hints'>

/** Whether pods are read with what orders deletions. */
export function ranksPods({ admissionOrder, hints }: OrderSettings): boolean {
  return admissionOrder === 'DeletionOrder' || hints.enabled
}

export function orderOf({ admissionOrder, gather }: OrderSettings): Pick<ProtectionRequest, 'order'> {
  return admissionOrder === 'DeletionOrder' ? { order: gather } : {}
}

/** A collection names no pods that could go instead: its answer has many refusals already. */
export function hintsOf({ hints }: OrderSettings): Pick<ProtectionRequest, 'hints'> {
  return hints.enabled ? { hints: hints.max } : {}
}
