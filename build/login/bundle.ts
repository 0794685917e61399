// The program for laptops in one file of JavaScript: an executable has no folder to load others from.

import { resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import type { BuildConstants } from '../../src/kit/io/program/build.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** Where a file of a checkout would lie: nothing is read from there. */
const URL_OF_BUNDLE = "const urlOfBundle = require('node:url').pathToFileURL(process.execPath).href"

/** CommonJS, the form of a main script that Node 24 takes into an executable. */
export async function bundleLogin(built: BuildConstants): Promise<{ text: string; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/login/app/main.ts'],
    outfile: 'login.cjs',
    write: false,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    tsconfigRaw: {},
    banner: { js: URL_OF_BUNDLE },
    define: { PORTCULLIS_BUILD: JSON.stringify(built), 'import.meta.url': 'urlOfBundle' },
    minifySyntax: true,
    preserveSymlinks: true,
    metafile: true,
    logLevel: 'warning',
    logOverride: { 'direct-eval': 'error' },
  })
  const [file] = outputFiles
  if (file === undefined) throw new Error('esbuild wrote no file')
  return { text: file.text, metafile }
}
