// The attacks of the corpus folder, by file name: a new one is a file.

import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Attack } from './attack.ts'

const FOLDER = join(import.meta.dirname, 'corpus')

/** In the order of their names. Throws when a file exports no attack. */
export async function loadCorpus(): Promise<ReadonlyMap<string, Attack>> {
  const attacks = new Map<string, Attack>()
  for (const file of readdirSync(FOLDER).sort()) {
    const { attack } = (await import(pathToFileURL(join(FOLDER, file)).href)) as { readonly attack?: Attack }
    if (attack === undefined) throw new Error(`test/attacks/corpus/${file} exports no attack`)
    attacks.set(basename(file, '.ts'), attack)
  }
  return attacks
}
