// A controller of controller-runtime and a dashboard with a backend of its own, as a process (test/harness/go/readers): what they have in the end.

import { readFileSync } from 'node:fs'
import { rareBinary } from '../binaries.ts'
import type { Version } from '../informers/informers.ts'
import { type LineProgram, startLineProgram } from '../line-program.ts'

export interface SeenByReader {
  /** `controller`, `dashboard`, `headlamp` */
  readonly reader: string
  /** As of informers, or what else it looks at. */
  readonly resource: string
  /** `namespace/name` -> uid and resourceVersion. */
  readonly store: Readonly<Record<string, string>>
  readonly problems: readonly string[]
  /** Those of its lists, in order. */
  readonly versions: readonly Version[]
  /** Objects whose new version is a lower number than the one before. */
  readonly fallen: readonly { readonly key: string; readonly from: Version; readonly to: Version }[]
  /** How often what has happened: what it was answered, and what its watches brought. */
  readonly counts: Readonly<Record<string, number>>
}

export interface Readers extends LineProgram<object> {
  /** @param file that it may write */
  report(file: string): Promise<readonly SeenByReader[]>
}

/** Resolves when they are ready to be started by the command `start`. */
export async function startReaders(kubeconfig: string): Promise<Readers> {
  const program = await startLineProgram<object>('readers', await rareBinary('readers'), [`-kubeconfig=${kubeconfig}`])
  return {
    ...program,
    async report(file) {
      await program.command(`report ${file}`)
      return JSON.parse(readFileSync(file, 'utf8')) as readonly SeenByReader[]
    },
  }
}
