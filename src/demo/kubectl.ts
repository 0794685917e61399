// Finds the kubectl of the demo's reader: one on the PATH, else one built by the tests.

import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

/** `folder`: it is there, but not on the PATH. */
export type Kubectl = { readonly where: 'path' | 'nowhere' } | { readonly where: 'folder'; readonly folder: string }

/** `env`: PATH, XDG_CACHE_HOME. `home`: the user's, default the process's. */
export function findKubectl(env: Readonly<Record<string, string | undefined>>, home: string = homedir()): Kubectl {
  const folders = (env['PATH'] ?? '').split(delimiter)
  if (folders.some((folder) => folder !== '' && hasKubectl(folder))) return { where: 'path' }
  const built = builtFolders(join(env['XDG_CACHE_HOME'] || join(home, '.cache'), 'portcullis-test'))
  const [folder] = built.filter(hasKubectl).sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  return folder === undefined ? { where: 'nowhere' } : { where: 'folder', folder }
}

/** As named by test/harness/binaries.ts: one per version. */
function builtFolders(cache: string): string[] {
  try {
    return readdirSync(cache).flatMap((name) => (name.startsWith('kubectl-') ? [join(cache, name)] : []))
  } catch {
    return []
  }
}

function hasKubectl(folder: string): boolean {
  try {
    accessSync(join(folder, 'kubectl'), constants.X_OK)
    return statSync(join(folder, 'kubectl')).isFile()
  } catch {
    return false
  }
}
