// The page of Headlamp, as a bundle for browsers: Headlamp's own modules for lists and watches, from its package for plugins. Its backend is a Go module that
// the module proxy refuses; of requests for a cluster it only takes the prefix away, which `kubectl proxy` does as well.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { cacheFolder } from '../binaries.ts'

const run = promisify(execFile)
const NAME = '@kinvolk/headlamp-plugin'
/** By itself: all that plugins may be built with is among its dependencies, of which the page needs those of page/package.json. */
const PACKAGE = `${NAME}@0.14.0`
const INTEGRITY = 'sha512-oVIqpSzf2zZfZG44gwrGI8xTLImCIKupUJ26k7ZhVrFSUBY9Ga+R66tfCdN4Q/ShYha/8J+qlpy5ac9PjRq2KA=='
const OWN = join(import.meta.dirname, 'page')
const OWN_FILES = ['page.js', 'package.json', 'package-lock.json']
const QUIET = ['--ignore-scripts', '--no-audit', '--no-fund']
const HTML =
  '<!doctype html><title>Headlamp</title><div id="page"></div><script type="module" src="page.js"></script>\n'

/** What is only to be looked at, and how pages are found: lists and watches do without. */
const LOOKS: Plugin = {
  name: 'looks',
  setup(bundle) {
    bundle.onResolve({ filter: /^\./ }, ({ path, importer }) => {
      const isLooks = importer.includes(NAME) && /\/(components|router|plugin)\//.test(path)
      return isLooks ? { path, namespace: 'looks' } : undefined
    })
    bundle.onLoad({ filter: /./, namespace: 'looks' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** The folder with index.html. The first call on a machine installs and bundles. */
export async function headlampPage(): Promise<string> {
  const hash = createHash('sha256')
    .update(INTEGRITY)
    .update(readFileSync(import.meta.filename))
  for (const file of OWN_FILES) hash.update(readFileSync(join(OWN, file)))
  const folder = join(cacheFolder(), `headlamp-${hash.digest('hex').slice(0, 12)}`)
  if (existsSync(folder)) return folder
  const unfinished = `${folder}.${process.pid}`
  const packages = `${unfinished}.packages`
  try {
    await install(packages)
    await bundleTo(unfinished, packages)
    // Another test process may have been first.
    if (!existsSync(folder)) renameSync(unfinished, folder)
  } finally {
    for (const rest of [unfinished, packages]) rmSync(rest, { recursive: true, force: true })
  }
  return folder
}

async function install(folder: string): Promise<void> {
  const target = join(folder, 'node_modules', NAME)
  mkdirSync(folder, { recursive: true })
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(OWN, file), join(folder, file))
  }
  await run('npm', ['ci', ...QUIET], { cwd: folder })
  const { stdout } = await run('npm', ['pack', PACKAGE, '--json'], { cwd: folder })
  const [{ filename, integrity }] = JSON.parse(stdout) as [{ filename: string; integrity: string }]
  const file = join(folder, filename)
  const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
  if (found !== INTEGRITY)
    throw new Error(`${PACKAGE} is not the one that is pinned: ${found}, said to be ${integrity}`)
  mkdirSync(target, { recursive: true })
  await run('tar', ['-xzf', file, '--strip-components=1', '-C', target])
}

async function bundleTo(folder: string, packages: string): Promise<void> {
  await build({
    entryPoints: [join(OWN, 'page.js')],
    outfile: join(folder, 'page.js'),
    nodePaths: [join(packages, 'node_modules')],
    bundle: true,
    format: 'esm',
    logLevel: 'silent',
    define: { 'import.meta.env': '{}', 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
    plugins: [LOOKS],
  })
  writeFileSync(join(folder, 'index.html'), HTML)
}
