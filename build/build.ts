// `npm run build`: the program as JavaScript, in dist/. Everything that it loads is in there (decision 22), so that Node 24 runs it
// from anywhere; `--out DIR` builds somewhere else.

import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import type { BuildConstants } from '../src/kit/io/program/build.ts'
import { BUNDLE_OPTIONS } from './bundle.ts'
import { writeDashboard } from './dashboard.ts'
import { bundledPackages, licencesText } from './licences.ts'
import { sbomText } from './sbom.ts'

const ROOT = resolve(import.meta.dirname, '..')
const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } })
await buildInto(resolve(ROOT, values.out))

async function buildInto(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const built = constants()
  const { metafile } = await build({
    ...BUNDLE_OPTIONS,
    outdir: out,
    define: { PORTCULLIS_BUILD: JSON.stringify(built) },
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
  // An image is built without .git; the builder says what it is built from.
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
