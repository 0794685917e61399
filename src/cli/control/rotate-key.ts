// `portcullis control rotate-key`: encrypts the store of the embedded API server with another key.

import { controlPaths } from '../../io/listener/control-paths.ts'
import { rotateStoreKey } from '../../io/store/rotation.ts'
import { type Output, reportUserErrors } from '../command/output.ts'

export interface RotateKeyOptions extends Output {
  /** `--data-dir` of the gateway. */
  readonly dataDir: string
  /** Its `--store-key-file`. Default: the one in the data directory. */
  readonly storeKeyFile?: string | undefined
  /** File of the new key; created if missing. Default: replaces the old one, which is kept beside it. */
  readonly newKeyFile?: string | undefined
}

/** The exit code. */
export function rotateKey({ dataDir, storeKeyFile, newKeyFile, out, err }: RotateKeyOptions): number {
  const { store: file, storeKey } = controlPaths(dataDir)
  const keyFile = storeKeyFile ?? storeKey
  return reportUserErrors(err, () => {
    const { bodies, keyId, oldKeyFile, leftover } = rotateStoreKey({ file, keyFile, newKeyFile })
    const where = newKeyFile ?? keyFile
    out(`${bodies} objects, old versions included, are encrypted with key ${keyId} in ${where}\n`)
    if (newKeyFile !== undefined) out(`start the gateway with --store-key-file ${newKeyFile}\n`)
    out(`backups made so far need ${oldKeyFile}: keep it with them, not here\n`)
    if (leftover !== '')
      err(`note: free pages of the file may still hold bytes encrypted with the old key: ${leftover}\n`)
    return 0
  })
}
