// `portcullis control rotate-key`: another key for what is encrypted in the store of the embedded API server.

import { UserError } from '../../api/validation/field-errors.ts'
import { controlPaths } from '../../io/listener/control-paths.ts'
import { rotateStoreKey } from '../../io/store/rotation.ts'

export interface RotateKeyOptions {
  /** `--data-dir` of the gateway. */
  readonly dataDir: string
  /** Its `--store-key-file`. Default: the one in the data directory. */
  readonly storeKeyFile?: string | undefined
  /** Where the new key is, or goes. Default: in the place of the old one, which is kept beside it. */
  readonly newKeyFile?: string | undefined
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** The exit code. */
export function rotateKey({ dataDir, storeKeyFile, newKeyFile, out, err }: RotateKeyOptions): number {
  const { store: file, storeKey } = controlPaths(dataDir)
  const keyFile = storeKeyFile ?? storeKey
  try {
    const { bodies, keyId, oldKeyFile, leftover } = rotateStoreKey({ file, keyFile, newKeyFile })
    const where = newKeyFile ?? keyFile
    out(`${bodies} encrypted objects, old versions included, are under the key ${keyId} in ${where}\n`)
    if (newKeyFile !== undefined) out(`start the gateway with --store-key-file ${newKeyFile}\n`)
    out(`backups made until now need ${oldKeyFile}: keep it with them, and away from here\n`)
    if (leftover !== '')
      err(`note: pages of the file that are free may still hold bytes under the old key: ${leftover}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    err(`error: ${error.message}; ${error.fix}\n`)
    return 1
  }
}
