// The packages whose code is in the bundle, and the licences under which it may be passed on: all of them ask that their text comes
// along. A licence that was not reviewed ends the build.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'

export interface BundledPackage {
  readonly name: string
  readonly version: string
  /** From the root, as package-lock.json names it: `node_modules/undici`. */
  readonly folder: string
  /** SPDX. */
  readonly licence: string
  /** Its own files, LICENSE and NOTICE; '' = the package has none. */
  readonly text: string
}

/** They ask for nothing but that text. */
const ACCEPTED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  // pako: both apply.
  '(MIT AND Zlib)',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
])
/** node-forge: either may be chosen. */
const CHOSEN: Readonly<Record<string, string>> = { '(BSD-3-Clause OR GPL-2.0)': 'BSD-3-Clause' }

/** Those of which at least a byte is in the output, by name. */
export function bundledPackages(metafiles: readonly Metafile[], root: string): readonly BundledPackage[] {
  const folders = new Set<string>()
  for (const { inputs } of metafiles.flatMap(({ outputs }) => Object.values(outputs))) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
      if (folder !== undefined && bytesInOutput > 0) folders.add(folder)
    }
  }
  return [...folders].map((folder) => packageAt(root, folder)).sort((a, b) => (a.name < b.name ? -1 : 1))
}

function packageAt(root: string, folder: string): BundledPackage {
  const path = join(root, folder)
  const manifest: unknown = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
  const field = (name: string): string => {
    const value: unknown = typeof manifest === 'object' && manifest !== null ? Reflect.get(manifest, name) : undefined
    return typeof value === 'string' ? value : ''
  }
  const declared = field('license')
  const licence = CHOSEN[declared] ?? declared
  if (!ACCEPTED.has(licence))
    throw new Error(`${field('name')} is bundled under "${declared}": read it, then accept it here`)
  const files = readdirSync(path).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
  const text = files.sort().map((name) => readFileSync(join(path, name), 'utf8').trim())
  return { name: field('name'), version: field('version'), folder, licence, text: text.join('\n\n') }
}

export function licencesText(packages: readonly BundledPackage[]): string {
  const rule = '='.repeat(100)
  const parts = packages.map(
    ({ name, version, licence, text }) => `${rule}\n${name} ${version}: ${licence}\n\n${text || noText(licence)}\n`,
  )
  return `Portcullis contains code of ${packages.length} packages. Their licences:\n\n${parts.join('\n')}`
}

function noText(licence: string): string {
  return `The package comes without a licence text; it declares ${licence}.`
}
