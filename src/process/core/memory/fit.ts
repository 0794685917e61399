// Makes the ceiling fit a limit: defaults are lowered together, by the same factor, as HAProxy derives its maxconn from -m. Explicit
// settings are left unchanged.

import { type MemoryCeiling, type MemoryLever, type MemorySettings, memoryCeiling } from './ceiling.ts'

/** A lowered default. */
interface LoweredSetting {
  readonly setting: MemoryLever
  readonly from: number
  readonly to: number
}

export interface FittedMemory {
  readonly settings: MemorySettings
  readonly ceiling: MemoryCeiling
  readonly lowered: readonly LoweredSetting[]
}

/** A gateway with less would refuse clients of small clusters: defaults are not lowered further. */
export const LEAST: Readonly<Record<MemoryLever, number>> = {
  maxConnections: 1000,
  maxRequestsInflight: 256,
  maxWatches: 2000,
  maxBufferedBytes: 32 * 1024 * 1024,
}

/**
 * Lowers defaults until the ceiling is within the limit, or until they reach their minimum. @param isDefault levers that are not set
 * explicitly
 */
export function fitMemory(
  settings: MemorySettings,
  isDefault: ReadonlySet<MemoryLever>,
  limitBytes: number,
): FittedMemory {
  const ceiling = memoryCeiling(settings)
  if (ceiling.unbounded.length > 0 || ceiling.bytes <= limitBytes || isDefault.size === 0) {
    return { settings, ceiling, lowered: [] }
  }
  // Linear in each lever, so two points determine what fits.
  const least = scaled(settings, isDefault, 0)
  const fixed = memoryCeiling(least).bytes
  const part = Math.max(0, (limitBytes - fixed) / (ceiling.bytes - fixed))
  const lower = scaled(settings, isDefault, part)
  const fitted = memoryCeiling(lower)
  const lowered = [...isDefault].flatMap((setting): LoweredSetting[] => {
    const [from, to] = [settings[setting], lower[setting]]
    return to < from ? [{ setting, from, to }] : []
  })
  return { settings: lower, ceiling: fitted, lowered }
}

/** Interpolates between the minimum and the default. */
function scaled(settings: MemorySettings, levers: ReadonlySet<MemoryLever>, part: number): MemorySettings {
  const lowered: Partial<Record<MemoryLever, number>> = {}
  for (const lever of levers) {
    const least = Math.min(settings[lever], LEAST[lever])
    lowered[lever] = least + Math.floor((settings[lever] - least) * part)
  }
  return { ...settings, ...lowered }
}
