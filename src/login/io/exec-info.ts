// What the client that runs this program as a credential plugin says in its environment.

import process from 'node:process'
import { EXEC_INFO } from '../core/exec-credential.ts'

/** '' = no client does. */
export function execInfo(): string {
  return process.env[EXEC_INFO] ?? ''
}
