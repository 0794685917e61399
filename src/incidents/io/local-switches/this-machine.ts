// What a command on the gateway's machine needs to know about the machine.

import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import process from 'node:process'

/** The OS user that runs this process; under sudo, the original user. */
export function machineUser(): string {
  const uid = process.getuid?.() ?? -1
  const { SUDO_USER: before = '' } = process.env
  return `${userName()} (uid ${uid})${before === '' ? '' : `, as sudo of ${before}`}`
}

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the user may have no name.
    return 'user'
  }
}
