// The gateway's view of the local switches, stored beside their files: it tells the command whether a switch is in force, and the gateway, after a
// restart, which mode the object had when it was set.

import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { controlPaths } from '../../../gateway/io/listener/control-paths.ts'
import { isRecord, recordsOf } from '../../../kit/api/json/object-shape.ts'
import { makePrivateDirectory, replaceFile } from '../../../pki/io/pki-files.ts'
import { type LocalSwitch, switchDirectory } from './switch-file.ts'

/** The object when the switch was set. */
export interface SwitchBase {
  readonly uid: string
  /** spec.degrade. */
  readonly degrade: unknown
}

export interface SwitchState extends LocalSwitch {
  /** RFC 3339: when it was in force in all threads; '' = not yet. */
  readonly inForceAt: string
  /** Why it has no effect, or cannot be written to the object; '' = no problem. */
  readonly problem: string
  readonly base?: SwitchBase
}

/** A switch that is no longer needed. */
export interface EndedSwitch {
  readonly cluster: string
  readonly at: string
  readonly by: string
  readonly outcome: string
}

interface SwitchStates {
  readonly switches: readonly SwitchState[]
  /** Newest last. */
  readonly ended: readonly EndedSwitch[]
  /** Keyed by file. */
  readonly errors: Readonly<Record<string, string>>
}

/** @throws {UserError} */
export function writeSwitchStates(dataDir: string, states: SwitchStates): void {
  makePrivateDirectory(switchDirectory(dataDir))
  replaceFile(stateFile(dataDir), `${JSON.stringify(states, null, 2)}\n`, 0o600)
}

/**
 * Why no gateway with this data directory reads local switches; '' = one does, or did when it last ran. Such a gateway writes the states when it
 * starts.
 */
export function whyUnread(dataDir: string): string {
  const reader = statSync(stateFile(dataDir), { throwIfNoEntry: false })
  const embedded = statSync(controlPaths(dataDir).store, { throwIfNoEntry: false }) !== undefined
  // Written at each start with --source embedded; the directory may have a new owner since.
  const address = statSync(controlPaths(dataDir).address, { throwIfNoEntry: false })
  if (reader !== undefined && (address === undefined || address.mtimeMs < reader.mtimeMs)) return ''
  return embedded
    ? 'the objects of its gateway are in its own API server (--source embedded), which reads no local switches'
    : 'no gateway with --source kubernetes has run with it, and no other reads local switches'
}

/** Empty if there are none, or they are unreadable. */
export function readSwitchStates(dataDir: string): SwitchStates {
  try {
    const value: unknown = JSON.parse(readFileSync(stateFile(dataDir), 'utf8'))
    if (!isRecord(value)) return NO_STATES
    const { switches, ended, errors } = value
    return {
      switches: recordsOf(switches).map((one) => one as unknown as SwitchState),
      ended: recordsOf(ended).map((one) => one as unknown as EndedSwitch),
      errors: isRecord(errors) ? (errors as Record<string, string>) : {},
    }
  } catch {
    return NO_STATES
  }
}

const NO_STATES: SwitchStates = { switches: [], ended: [], errors: {} }

function stateFile(dataDir: string): string {
  return join(switchDirectory(dataDir), 'state.json')
}
