// Helpers for checks of combinations of settings.

import type { Setting } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

export function addProblem(reader: SettingsReader, at: Setting, message: string, fix: string): void {
  reader.problems.push({ where: reader.where(at), message, fix })
}

/** Whether a problem with its value has already been reported. */
export function isWrong(reader: SettingsReader, setting: Setting): boolean {
  return reader.problems.some((known) => known.where === reader.where(setting))
}

/** All ways to set it. */
export function namesOf(setting: Setting): string {
  return `${setting.flag}, ${setting.env} or ${setting.name} in the configuration file`
}
