// A bundle of the sources, made at the start of `test/run.ts`, whose tests start the program some hundreds of times: from the sources each
// start computes two seconds longer, most of it to find and read a thousand modules in every thread. Threads of gateways inside a test process come from it, too.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import process from 'node:process'
import { build, type Plugin } from 'esbuild'
import { BUNDLE_OPTIONS } from '../../build/bundle.ts'
import { PROGRAM_VARIABLE } from './program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** As deep as src/kit/io/program/, so that what is found from there is found from here: package.json, config/ and the like. */
const BUNDLE = join(ROOT, 'node_modules/.cache/portcullis/program')

/** Bundles the sources as they are now. @returns variables for test processes, by which their `MAIN` is the bundle */
export async function bundleProgram(): Promise<Readonly<Record<string, string>>> {
  const plugins = [...BUNDLE_OPTIONS.plugins, OWN_MODULES]
  const { outputFiles } = await build({ ...BUNDLE_OPTIONS, outdir: BUNDLE, write: false, plugins })
  mkdirSync(BUNDLE, { recursive: true })
  // Another run may be using the same files.
  for (const { path, contents } of outputFiles) {
    if (holds(path, contents)) continue
    const unfinished = join(BUNDLE, `.${process.pid}-${basename(path)}`)
    writeFileSync(unfinished, contents)
    renameSync(unfinished, path)
  }
  return { [PROGRAM_VARIABLE]: join(BUNDLE, 'main.mjs') }
}

/** The bundle that `test/run.ts` has made; where a file runs without it, one that is made now. @returns the path of the entry point */
export async function bundledMain(): Promise<string> {
  const main = process.env[PROGRAM_VARIABLE] ?? (await bundleProgram())[PROGRAM_VARIABLE]
  if (main === undefined) throw new Error('the bundle has no entry point')
  return main
}

/** In all but these it says and does what the sources do: it names itself `bin/portcullis`, and no commit. */
const REPLACED: Readonly<Record<string, string>> = {
  '../../../program/threads/thread/entry.ts': 'gateway-thread.mjs',
  '@kubernetes/client-node': './client-node.mjs',
}

const OWN_MODULES: Plugin = {
  name: 'own modules',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/kit\/io\/program\/build\.ts$/ }, ({ path }) => {
      let contents = readFileSync(path, 'utf8')
      for (const [source, bundled] of Object.entries(REPLACED)) {
        if (!contents.includes(`'${source}'`)) throw new Error(`${path} does not name ${source}`)
        contents = contents.replace(`'${source}'`, `'${bundled}'`)
      }
      return { contents, loader: 'ts' }
    })
  },
}

function holds(path: string, contents: Uint8Array): boolean {
  try {
    return readFileSync(path).equals(contents)
  } catch {
    return false
  }
}
