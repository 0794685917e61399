// `portcullis completion bash|zsh` and what its scripts call, `portcullis __complete`.

import type { CommandUnknownOpts } from 'commander'
import { UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import { SILENT } from '../../api/ports/ports.ts'
import { DEGRADE_MODES } from '../../api/upstream-cluster/degrade-modes.ts'
import { createKubeClient } from '../../io/kube/client.ts'
import { metadataOf } from '../client/control-plane.ts'
import { complete, completionText } from './complete.ts'
import { SCRIPTS } from './scripts.ts'

/** Somebody waits with a finger on the key. */
const TIMEOUT_MS = 2000

/** The exit code: always 0, a shell has no place for errors. */
export async function completeWords(
  program: CommandUnknownOpts,
  words: readonly string[],
  out: (text: string) => void,
): Promise<number> {
  out(completionText(await complete(program, words, { values: { '--mode': DEGRADE_MODES }, clusters })))
  return 0
}

/** @returns the exit code */
export function completionScript(shell: 'bash' | 'zsh', out: (text: string) => void): number {
  out(SCRIPTS[shell])
  return 0
}

async function clusters(flags: ReadonlyMap<string, string>): Promise<readonly string[]> {
  try {
    const context = flags.get('--context')
    const client = createKubeClient({
      kubeconfigFile: flags.get('--kubeconfig') ?? '',
      log: SILENT,
      timeoutMs: TIMEOUT_MS,
      ...(context !== undefined && { context }),
    })
    try {
      const { items } = await client.list(UPSTREAM_CLUSTERS, '')
      return items.map((item) => metadataOf(item).name)
    } finally {
      await client.close()
    }
  } catch {
    // No kubeconfig, no right, no answer: no names.
    return []
  }
}
