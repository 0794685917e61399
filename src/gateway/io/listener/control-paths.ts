// Paths of the embedded control plane's files, below --data-dir.

import { join } from 'node:path'

interface ControlPaths {
  readonly dir: string
  /** CA, certificates, the token key, admin.kubeconfig. */
  readonly pki: string
  /** SQLite. */
  readonly store: string
  /** The key that encrypts Secrets and other sensitive objects, unless --store-key-file names another. */
  readonly storeKey: string
  readonly caCertificate: string
  /** URL by which commands on this machine reach the API server while it runs. */
  readonly address: string
}

export function controlPaths(dataDir: string): ControlPaths {
  const dir = join(dataDir, 'control')
  const pki = join(dir, 'pki')
  return {
    dir,
    pki,
    store: join(dir, 'objects.db'),
    storeKey: join(dir, 'store.key'),
    caCertificate: join(pki, 'ca.crt'),
    address: join(dir, 'address'),
  }
}
