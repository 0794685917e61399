// How checks of several settings together tell what they have found.

import type { Setting, SettingsReader } from './settings-reader.ts'

export function addProblem(reader: SettingsReader, at: Setting, message: string, fix: string): void {
  reader.problems.push({ where: reader.where(at), message, fix })
}

/** Whether something has been said about its value already. */
export function isWrong(reader: SettingsReader, setting: Setting): boolean {
  return reader.problems.some((known) => known.where === reader.where(setting))
}

/** All the ways to give it. */
export function namesOf(setting: Setting): string {
  return `${setting.flag}, ${setting.env} or ${setting.name} in the configuration file`
}
