// Detects file changes by polling: names may be links to links, as in a mounted Secret (`..data`), whose targets are swapped without an event for the
// file, and a network file system may send no events.

import { stat } from 'node:fs/promises'

export interface FollowedFiles {
  stop(): void
}

/** Milliseconds between two checks. */
const LOOK_MS = 1000

/**
 * Calls `changed` once the files have been stable for two checks and differ from the last call, and in any case once after the start: the caller may
 * have read older versions before. Two files that belong together are thus rarely seen halfway.
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

/** Differs after each change of the content, whether files are rewritten or replaced. */
async function identityOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch (error) {
    return String(error instanceof Error && Reflect.get(error, 'code'))
  }
}
