// `npm run build`: the program as JavaScript, in dist/. Everything that it loads is in there (decision 22), so that Node 24 runs it
// from anywhere; `--out DIR` builds somewhere else.

import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { BUNDLE_OPTIONS } from './bundle.ts'
import { buildConstants } from './constants.ts'
import { writeDashboard } from './dashboard.ts'
import { bundledPackages, licencesText } from './licences.ts'
import { sbomText } from './sbom.ts'

const ROOT = resolve(import.meta.dirname, '..')
const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } })
await buildInto(resolve(ROOT, values.out))

async function buildInto(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const built = buildConstants()
  const { metafile } = await build({
    ...BUNDLE_OPTIONS,
    outdir: out,
    define: { PORTCULLIS_BUILD: JSON.stringify(built) },
  })
  cpSync(join(ROOT, 'config'), join(out, 'config'), { recursive: true })
  const dashboard = await writeDashboard(join(out, 'dashboard'))
  const packages = bundledPackages(dashboard === undefined ? [metafile] : [metafile, dashboard], ROOT)
  writeFileSync(join(out, 'THIRD_PARTY_LICENSES'), licencesText(packages))
  writeFileSync(join(out, 'sbom.cdx.json'), sbomText(packages, built, ROOT))
  process.stdout.write(`${relative(process.cwd(), out) || '.'}: ${packages.length} packages bundled\n`)
}
