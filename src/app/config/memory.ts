// The settings of memory: how much there is, and how much of it for what clusters say of themselves. Other settings that have their defaults may be lowered at the start, so that all of it fits.

import { MEMORY_LEVERS, type MemoryLever } from '../../core/memory/ceiling.ts'
import { CLIENT_LIMITS } from './client-limits.ts'
import { bytes, settings, type ValuesOf } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const MIB = 1024 * 1024

export const MEMORY = settings({
  /** Bytes; 0 = what the system says. */
  memoryLimit: bytes(
    '',
    64 * MIB,
    2 ** 50,
    'memory that the process may take; defaults of other settings are lowered to fit; default: the limit of its control group, else half of the machine',
  ),
  /** Bytes; 0 = an eighth of the memory limit. */
  maxFollowedBytes: bytes(
    '',
    MIB,
    2 ** 50,
    'memory for what is kept of the objects of clusters (pods, nodes, workloads), divided among clusters; default: an eighth of the memory limit',
  ),
})

export interface MemoryConfig extends ValuesOf<typeof MEMORY> {
  /** Settings that the ceiling grows with, and that nobody has set. */
  readonly memoryDefaults: readonly MemoryLever[]
}

export function readMemory(reader: SettingsReader): MemoryConfig {
  return {
    ...reader.read(MEMORY),
    memoryDefaults: MEMORY_LEVERS.filter((lever) => reader.isDefault(CLIENT_LIMITS[lever])),
  }
}
