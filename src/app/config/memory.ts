// The setting of memory: how much there is. Other settings that have their defaults may be lowered at the start, so that all of it fits.

import { MEMORY_LEVERS, type MemoryLever } from '../../core/memory/ceiling.ts'
import { CLIENT_LIMITS_TABLE } from './client-limits.ts'
import { bytesBetween } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface MemoryConfig {
  /** Bytes; 0 = what the system says. */
  readonly memoryLimit: number
  /** Settings that the ceiling grows with, and that nobody has set. */
  readonly memoryDefaults: readonly MemoryLever[]
}

const MIB = 1024 * 1024

export const MEMORY_TABLE: { readonly memoryLimit: Setting<number> } = {
  memoryLimit: setting(
    'memoryLimit',
    '<bytes>',
    '',
    bytesBetween(64 * MIB, 2 ** 50),
    'memory that the process may take; defaults of other settings are lowered to fit; default: the limit of its control group, else half of the machine',
  ),
}

export function readMemory(reader: SettingsReader): MemoryConfig {
  return {
    memoryLimit: reader.take(MEMORY_TABLE.memoryLimit, 0),
    memoryDefaults: MEMORY_LEVERS.filter((lever) => reader.isDefault(CLIENT_LIMITS_TABLE[lever])),
  }
}
