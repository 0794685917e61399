// The dashboard's files as they are served: bundled, with a hash of their content in their names. `npm run build` writes them into
// dist/dashboard/; a gateway that runs from its sources runs this file, and reads the same as JSON from its output.

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { build, type Metafile } from 'esbuild'

const ROOT = resolve(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src/insight/dashboard')
const HASH_LENGTH = 12

export interface DashboardFiles {
  /** By name: `index.html`, `main-0123456789ab.js`, ... */
  readonly files: ReadonlyMap<string, string>
  /** Source maps, by name. */
  readonly maps: ReadonlyMap<string, string>
  /** By which it is known what is in them. */
  readonly metafile: Metafile
}

/** The same sources give the same bytes. */
export async function dashboardFiles(): Promise<DashboardFiles> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: {
      main: 'src/insight/dashboard/main.tsx',
      style: 'src/insight/dashboard/style.css',
      login: 'src/insight/dashboard/login.css',
    },
    outdir: 'dashboard',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome123', 'firefox128', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
    legalComments: 'none',
    preserveSymlinks: true,
    // For readers of a bundle, and for the test of the bill of materials; not served.
    sourcemap: 'external',
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
  })
  const files = new Map<string, string>()
  const names = new Map<string, string>()
  const add = (name: string, text: string): void => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH)
    const dot = name.lastIndexOf('.')
    names.set(name, `${name.slice(0, dot)}-${hash}${name.slice(dot)}`)
    files.set(names.get(name) ?? name, text)
  }
  const maps = new Map<string, string>()
  for (const { path, text } of outputFiles) {
    const name = path.slice(path.lastIndexOf('/') + 1)
    if (name.endsWith('.map')) maps.set(name, text)
    else add(name, text)
  }
  add('icon.svg', readFileSync(join(SOURCE, 'icon.svg'), 'utf8'))
  names.set('icon', names.get('icon.svg') ?? '')
  for (const page of ['index.html', 'login.html']) {
    const text = readFileSync(join(SOURCE, page), 'utf8')
    files.set(
      page,
      text.replace(/\{\{([^}]+)\}\}/g, (whole, name: string) => names.get(name) ?? whole),
    )
  }
  return { files, maps, metafile }
}

/** @returns what is in them; undefined = there is no dashboard, as its subject is left out */
export async function writeDashboard(out: string): Promise<Metafile | undefined> {
  if (!existsSync(SOURCE)) return undefined
  const { files, maps, metafile } = await dashboardFiles()
  mkdirSync(out, { recursive: true })
  for (const [name, text] of [...files, ...maps]) writeFileSync(join(out, name), text)
  return metafile
}

if (import.meta.main) {
  const { files } = await dashboardFiles()
  process.stdout.write(JSON.stringify(Object.fromEntries(files)))
}
