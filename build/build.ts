// `npm run build`: the program as JavaScript, in dist/. Everything that it loads is in there (decision 22), so that Node 24 runs it
// from anywhere; `--out DIR` builds somewhere else.

import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import type { BuildConstants } from '../src/io/program/build.ts'
import { writeDashboard } from './dashboard.ts'
import { bundledPackages, licencesText } from './licences.ts'
import { sbomText } from './sbom.ts'

const ROOT = resolve(import.meta.dirname, '..')
/** Modules that are started or loaded by their path (PROGRAM_FILES); their names stand there, too. */
const ENTRY_POINTS = {
  main: 'src/main.ts',
  'gateway-thread': 'src/app/threads/thread/entry.ts',
  // Of the package only what reads kubeconfigs; its index loads the types of the whole API.
  'client-node': '@kubernetes/client-node/dist/config.js',
}
/** Packages in CommonJS call `require` for Node's modules; ES modules have none. */
const REQUIRE = `import { createRequire as createRequireOfBundle } from 'node:module'
const require = createRequireOfBundle(import.meta.url)`

const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } })
await buildInto(resolve(ROOT, values.out))

async function buildInto(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const built = constants()
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRY_POINTS,
    outdir: out,
    outExtension: { '.js': '.mjs' },
    // All in one folder: PROGRAM_FILES goes by it.
    chunkNames: '[name]-[hash]',
    bundle: true,
    // What a command does not need is in a file that it does not read.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    banner: { js: REQUIRE },
    define: { PORTCULLIS_BUILD: JSON.stringify(built) },
    sourcemap: 'linked',
    sourcesContent: true,
    // node_modules may be a link; its packages are still named from here.
    preserveSymlinks: true,
    metafile: true,
    logLevel: 'warning',
    logOverride: { 'direct-eval': 'error' },
  })
  cpSync(join(ROOT, 'config'), join(out, 'config'), { recursive: true })
  const dashboard = await writeDashboard(join(out, 'dashboard'))
  const packages = bundledPackages([metafile, dashboard], ROOT)
  writeFileSync(join(out, 'THIRD_PARTY_LICENSES'), licencesText(packages))
  writeFileSync(join(out, 'sbom.cdx.json'), sbomText(packages, built, ROOT))
  process.stdout.write(`${relative(process.cwd(), out) || '.'}: ${packages.length} packages bundled\n`)
}

function constants(): BuildConstants {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const version = typeof manifest === 'object' && manifest !== null ? String(Reflect.get(manifest, 'version')) : ''
  // An image is built without .git; whoever builds it says what it is built from.
  const { PORTCULLIS_COMMIT: given = '', PORTCULLIS_COMMIT_DATE: givenDate = '' } = process.env
  if (given !== '') return { version, commit: given, modified: false, date: givenDate }
  const commit = git('rev-parse', 'HEAD')
  if (commit === '') return { version, commit, modified: false, date: '' }
  const date = git('show', '--no-patch', '--format=%ct', 'HEAD')
  return {
    version,
    commit,
    modified: git('status', '--porcelain') !== '',
    // Not the time of the build: the same sources give the same files.
    date: new Date(Number(date) * 1000).toISOString().replace('.000', ''),
  }
}

/** '' where there is no git, or no checkout. */
function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}
