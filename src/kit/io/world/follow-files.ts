// Whether files have changed, by looking: names may be links to links, as in a mounted Secret (`..data`), whose targets are exchanged
// without an event for the file, and a file system may be one of another machine, which sends none.

import { stat } from 'node:fs/promises'

export interface FollowedFiles {
  stop(): void
}

/** Milliseconds between two looks. */
const LOOK_MS = 1000

/**
 * Calls `changed` once the files have been the same for two looks and are others than at the last call, and in any case once after the
 * start: whoever has read them before may have read older ones. Two files that belong together are thus seldom seen half-way.
 */
export function followFiles(files: readonly string[], changed: () => void, lookMs: number = LOOK_MS): FollowedFiles {
  let [told, last] = ['', '']
  let stopped = false
  let timer: NodeJS.Timeout
  const later = (): NodeJS.Timeout => setTimeout(() => void look(), lookMs).unref()
  const look = async (): Promise<void> => {
    const now = (await Promise.all(files.map(identityOf))).join(' ')
    if (stopped) return
    if (now === last && now !== told) {
      told = now
      changed()
    }
    last = now
    timer = later()
  }
  timer = later()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Another text after each change of the content; files are rewritten or replaced, and both show here. */
async function identityOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch (error) {
    return String(error instanceof Error && Reflect.get(error, 'code'))
  }
}
