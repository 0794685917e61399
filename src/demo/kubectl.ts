// Which kubectl the demo's reader has: one on the PATH, else the one that the tests have built for themselves.

import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

/** `folder`: it is not on the PATH, but there. */
export type Kubectl = { readonly where: 'path' | 'nowhere' } | { readonly where: 'folder'; readonly folder: string }

/** `env`: PATH, XDG_CACHE_HOME. `home`: of the user, default the process's own. */
export function findKubectl(env: Readonly<Record<string, string | undefined>>, home: string = homedir()): Kubectl {
  const folders = (env['PATH'] ?? '').split(delimiter)
  if (folders.some((folder) => folder !== '' && hasKubectl(folder))) return { where: 'path' }
  const built = builtFolders(join(env['XDG_CACHE_HOME'] || join(home, '.cache'), 'portcullis-test'))
  const [folder] = built.filter(hasKubectl).sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  return folder === undefined ? { where: 'nowhere' } : { where: 'folder', folder }
}

/** As test/harness/binaries.ts names them: one for each version. */
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
