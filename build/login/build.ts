// `npm run build:login -- --all`: the login for laptops as one executable for each platform, in archives with their checksums; with `--uri URL`, from
// where they are downloaded, also the manifest for Krew. `--node PLATFORM=FILE` is `node` of nodejs.org's archive, in the place of npm's package.

import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { tarOf } from '../../src/kit/core/text/tar.ts'
import { buildConstants } from '../constants.ts'
import { bundledPackages, licencesText } from '../licences.ts'
import { bundleLogin } from './bundle.ts'
import { checkNode, PLATFORMS, type Platform, prepareBlob, writeExecutable } from './executable.ts'
import { type LoginArchive, loginManifest } from './krew.ts'
import { downloadNode } from './npm-node.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const USAGE = `usage: npm run -s build:login -- [--all] [--node PLATFORM=FILE]... [--uri URL] [--out DIR]
PLATFORM: ${PLATFORMS.map(({ name }) => name).join(', ')}; without --all and --node: this Node, for this machine`

try {
  await buildLogin()
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`)
  process.exitCode = 1
}

async function buildLogin(): Promise<void> {
  const { values } = parseArgs({
    options: {
      all: { type: 'boolean', default: false },
      node: { type: 'string', multiple: true },
      uri: { type: 'string' },
      out: { type: 'string', default: 'dist-login' },
    },
  })
  const { uri } = values
  // Krew downloads by https only.
  if (uri !== undefined && !(URL.canParse(uri) && new URL(uri).protocol === 'https:')) {
    throw new Error(
      `--uri ${JSON.stringify(uri)} is not an https:// URL: the folder from which users download the archives`,
    )
  }
  const given = values.node ?? (values.all ? [] : [`${process.platform}-${process.arch}=${process.execPath}`])
  const nodes = given.map(chosenNode)
  const out = resolve(ROOT, values.out)
  const built = buildConstants()
  const { text, metafile } = await bundleLogin(built)
  const licences = `${licencesText(bundledPackages([metafile], ROOT))}\nIt contains Node.js ${process.version}; its licence is at https://github.com/nodejs/node/blob/${process.version}/LICENSE\n`
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-build-login-'))
  try {
    const left = PLATFORMS.filter((one) => values.all && !nodes.some(({ platform }) => platform === one))
    for (const platform of left) nodes.push({ platform, node: checkNode(downloadNode(platform, dir), platform) })
    const blob = prepareBlob(text, dir)
    rmSync(out, { recursive: true, force: true })
    mkdirSync(out, { recursive: true })
    const archives: LoginArchive[] = []
    for (const { platform, node } of nodes) {
      const program = platform.os === 'windows' ? 'portcullis.exe' : 'portcullis'
      const executable = join(out, platform.name, program)
      mkdirSync(join(out, platform.name))
      await writeExecutable(executable, node, blob, platform)
      archives.push(writeArchive(out, platform, program, licences, built))
    }
    writeFileSync(join(out, 'SHA256SUMS'), archives.map(({ sha256, name }) => `${sha256}  ${name}\n`).join(''))
    if (uri !== undefined)
      writeFileSync(join(out, 'portcullis-login.yaml'), loginManifest(built.version, uri, archives))
    process.stdout.write(`${values.out}: ${archives.map(({ name }) => name).join(', ')}\n`)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function chosenNode(text: string): { platform: Platform; node: Buffer } {
  const [, name = '', file = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
  const platform = PLATFORMS.find((one) => one.name === name)
  if (platform === undefined) throw new Error(`--node ${text} is not PLATFORM=FILE`)
  return { platform, node: checkNode(file, platform) }
}

function writeArchive(
  out: string,
  platform: Platform,
  program: string,
  licences: string,
  { version, date }: { readonly version: string; readonly date: string },
): LoginArchive {
  const files = [
    { name: program, text: readFileSync(join(out, platform.name, program)), mode: 0o755 },
    { name: 'LICENSE', text: readFileSync(join(ROOT, 'LICENSE')), mode: 0o644 },
    { name: 'THIRD_PARTY_LICENSES', text: licences, mode: 0o644 },
  ]
  const bytes = gzipSync(tarOf(files, date === '' ? 0 : Date.parse(date) / 1000))
  const name = `portcullis-login-${version}-${platform.name}.tar.gz`
  writeFileSync(join(out, name), bytes)
  return { platform, name, program, sha256: createHash('sha256').update(bytes).digest('hex') }
}
